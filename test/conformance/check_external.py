# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights in the format of other programs: safetensors with the configuration of a PEFT adapter."""

import datetime
import json
import struct
import urllib.error
import urllib.request

import numpy as np
import tinker

from harness import check, require, require_equal, require_raises
from environment import awaited, observe, train

FILES = ["adapter_config.json", "adapter_model.safetensors"]


def safetensors(data: bytes) -> dict[str, np.ndarray]:
    """Decode a file of float32 tensors."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    require(length % 8 == 0, f"the header has {length} bytes, so that the tensors are not aligned")
    found, end = {}, 0
    for name, row in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        require_equal((row["dtype"], row["data_offsets"][0]), ("F32", end), f"type and offset of {name}")
        begin, end = row["data_offsets"]
        values = np.frombuffer(data[8 + length + begin : 8 + length + end], dtype="<f4")
        found[name] = values.reshape(row["shape"])
    require_equal(end, len(data) - 8 - length, "the end of the last tensor")
    return found


def require_adapter(config: dict, tensors: dict[str, np.ndarray], *, model: str, rank: int, changed: bool) -> None:
    """Check that the files are a LoRA adapter as PEFT reads it: a pair of matrices for each module."""
    require_equal((config["peft_type"], config["task_type"], config["bias"]), ("LORA", "CAUSAL_LM", "none"), "the adapter")
    require_equal((config["base_model_name_or_path"], config["r"]), (model, rank), "base model and rank")
    require(config["lora_alpha"] > 0 and not config["fan_in_fan_out"], f"the scale {config['lora_alpha']}")
    modules = {name.removesuffix(".lora_A.weight") for name in tensors if name.endswith(".lora_A.weight")}
    require_equal(sorted(tensors), sorted(f"{m}.lora_{x}.weight" for m in modules for x in "AB"), "the tensors")
    for module in modules:
        require(module.startswith("base_model.model."), f"PEFT does not find {module}")
        require(module.rpartition(".")[2] in config["target_modules"], f"{module} is not in target_modules")
        down, up = tensors[f"{module}.lora_A.weight"], tensors[f"{module}.lora_B.weight"]
        require_equal((down.shape[0], up.shape[1]), (rank, rank), f"the rank of {module}")
        require(np.isfinite(down).all() and np.isfinite(up).all(), f"{module} has numbers that are not finite")
        require_equal(bool(np.abs(up).max() > 0), changed, f"that {module} changes the model")
    found = {module.rpartition(".")[2] for module in modules}
    require_equal(found, set(config["target_modules"]), "the trained modules")


def fetch(url: str) -> bytes:
    """Fetch a signed URL, which needs no key."""
    return urllib.request.urlopen(url, timeout=60).read()


@check("save_weights_external, external_weights_urls", needs="external_weights")
async def external_weights(env):
    trainer = env.trainer(rank=4)
    train(trainer, steps=2)
    before, name = observe(trainer), env.name("external")
    path = trainer.save_weights_external(name, ttl_seconds=7200).result().path
    require_equal(path, f"tinker://{trainer.model_id}/external_weights/{name}", "the path")
    require_equal(observe(trainer).tolist(), before.tolist(), "the model after the save")
    signed = env.rest.get_external_weights_urls(path).result()
    require_equal(sorted(signed.urls), FILES, "the files")
    require(signed.expires > datetime.datetime.now(datetime.UTC), f"the URLs expired at {signed.expires}")
    again = await awaited(env.rest.get_external_weights_urls_async(path))
    files = {file: fetch(url) for file, url in again.urls.items()}
    config, tensors = json.loads(files[FILES[0]]), safetensors(files[FILES[1]])
    require_adapter(config, tensors, model=env.model, rank=4, changed=True)
    listed = env.rest.list_checkpoints(trainer.model_id).result().checkpoints
    require_equal([(one.checkpoint_type, one.tinker_path) for one in listed], [("external", path)], "the listing")
    require(listed[0].expires_at is not None, "the checkpoint never expires")
    require_raises(tinker.TinkerError, lambda: trainer.save_weights_external(name).result())
    require_raises(tinker.TinkerError, lambda: trainer.load_state(path).result())
    env.rest.delete_checkpoint_from_tinker_path(path).result()
    require_raises(tinker.NotFoundError, lambda: env.rest.get_external_weights_urls(path).result())


@check("save_weights_external of some modules", needs="external_weights")
async def external_weights_of_modules(env):
    trainer = env.trainer(rank=2, train_mlp=False, train_unembed=False)
    saved = await awaited(trainer.save_weights_external_async(env.name("external")))
    urls = env.rest.get_external_weights_urls(saved.path).result().urls
    config, tensors = json.loads(fetch(urls[FILES[0]])), safetensors(fetch(urls[FILES[1]]))
    require_adapter(config, tensors, model=env.model, rank=2, changed=False)
    require(all("attn" in name for name in tensors), f"tensors of modules that are not trained: {sorted(tensors)}")


@check(needs="external_weights")
def external_weights_are_not_encrypted(env):
    """A recipient cannot be ignored: the files would be readable for others."""
    trainer = env.trainer()
    error = require_raises(
        tinker.TinkerError, lambda: trainer.save_weights_external("x", age_encryption_recipients=["age1x"]).result()
    )
    require("age_encryption_recipients" in str(error), f"the error does not name the field: {error}")


@check(needs="external_weights")
def unsigned_urls_are_rejected(env):
    path = env.trainer().save_weights_external(env.name("external")).result().path
    url = next(iter(env.rest.get_external_weights_urls(path).result().urls.values()))
    error = require_raises(urllib.error.HTTPError, lambda: fetch(url[:-4] + "AAAA"))
    require_equal(error.code, 403, "the status")
