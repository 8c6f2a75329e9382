# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The tinker command, in its own process."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import tinker

import check_external
from harness import Refused, check, require, require_equal
from environment import train


def command(env, *words: str, code: int = 0) -> str:
    """Run the command, which must end with the code, and return what it printed."""
    program = pathlib.Path(sys.executable).with_name("tinker")
    environment = {**os.environ, "TINKER_BASE_URL": env.url, "TINKER_API_KEY": env.key}
    done = subprocess.run([program, *words], env=environment, capture_output=True, text=True, timeout=240, check=False)
    if code == 0 and done.returncode != 0:
        raise Refused(f"tinker {' '.join(words[:4])} failed: {done.stderr.strip()[-300:]}")
    require_equal(done.returncode, code, f"the exit code of tinker {' '.join(words)}")
    return done.stdout if code == 0 else done.stderr


def answer(env, *words: str) -> dict:
    """Run the command and return the JSON that it printed."""
    return json.loads(command(env, "--format", "json", *words))


@check()
def command_version(env):
    require(tinker.__version__ in command(env, "version"), "the version is not printed")


@check("tinker run list, info")
def command_runs(env):
    trainer = env.trainer()
    train(trainer)
    listed = answer(env, "run", "list", "--limit", "3")["runs"]
    require_equal(listed[0]["training_run_id"], trainer.model_id, "the newest run")
    shown = answer(env, "run", "info", trainer.model_id)
    require(trainer.model_id in json.dumps(shown), f"the run is not shown: {shown}")
    require("ot found" in command(env, "run", "info", "no-such-run", code=1), "an unknown run is not called so")


@check("tinker checkpoint list, info")
def command_checkpoints(env):
    trainer = env.trainer()
    path = trainer.save_state(env.name("cli")).result().path
    of_run = answer(env, "checkpoint", "list", "--run-id", trainer.model_id)["checkpoints"]
    require_equal([one["tinker_path"] for one in of_run], [path], "the checkpoints of the run")
    newest = answer(env, "checkpoint", "list", "--limit", "1")["checkpoints"]
    require_equal([one["tinker_path"] for one in newest], [path], "the newest checkpoint")
    shown = answer(env, "checkpoint", "info", path)
    require_equal((shown["tinker_path"], shown["lora_rank"]), (path, 4), "the checkpoint")


@check("tinker checkpoint publish, set-ttl, delete")
def command_changes(env):
    trainer = env.trainer()
    path = trainer.save_state(env.name("cli")).result().path

    def shown() -> dict:
        return env.rest.list_checkpoints(trainer.model_id).result().checkpoints[0].model_dump()

    command(env, "checkpoint", "publish", path)
    require(shown()["public"], "publish did not")
    command(env, "checkpoint", "unpublish", path)
    require(not shown()["public"], "unpublish did not")
    command(env, "checkpoint", "set-ttl", path, "--ttl", "7200")
    require(shown()["expires_at"] is not None, "set-ttl --ttl did not")
    command(env, "checkpoint", "set-ttl", path, "--remove")
    require(shown()["expires_at"] is None, "set-ttl --remove did not")
    command(env, "checkpoint", "delete", path, "--yes")
    require_equal(env.rest.list_checkpoints(trainer.model_id).result().checkpoints, [], "what is left")


@check("tinker checkpoint download", needs="archive")
def command_download(env):
    path = env.trainer().save_weights_for_sampler(env.name("cli")).result().path
    with tempfile.TemporaryDirectory() as folder:
        command(env, "checkpoint", "download", path, "--output", folder)
        files = sorted(file.name for file in pathlib.Path(folder).rglob("*") if file.is_file())
    require_equal(files, ["adapter_config.json", "adapter_model.bin"], "the files")


@check("tinker checkpoint download of a state", needs="external_weights")
def command_download_state(env):
    trainer = env.trainer(rank=4)
    train(trainer)
    path = trainer.save_state(env.name("cli")).result().path
    with tempfile.TemporaryDirectory() as folder:
        command(env, "checkpoint", "download", path, "--output", folder)
        files = {file.name: file.read_bytes() for file in pathlib.Path(folder).rglob("*") if file.is_file()}
    require_equal(sorted(files), check_external.FILES, "the files")
    tensors = check_external.safetensors(files["adapter_model.safetensors"])
    config = json.loads(files["adapter_config.json"])
    check_external.require_adapter(config, tensors, model=env.model, rank=4, changed=True)
    listed = env.rest.list_user_checkpoints(limit=1000).result().checkpoints
    left = [one.tinker_path for one in listed if one.tinker_path.endswith("external_weights/download")]
    require_equal(left, [], "what is left of the temporary export")


@check("tinker model list", needs="rest_capabilities")
def command_models(env):
    listed = answer(env, "model", "list")["models"]
    require(env.model in [one["model_name"] for one in listed], f"{env.model} is not listed")
