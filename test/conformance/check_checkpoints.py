# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Saving, loading, resuming and expiring checkpoints."""

import datetime
import time

import numpy as np
import tinker
from tinker import types

from harness import check, require, require_close, require_different, require_equal, require_raises
from environment import awaited, observe, settled, tokens, train


def _third_step(trainer) -> np.ndarray:
    """Take the step that all models of a comparison take, and return the log-probabilities."""
    train(trainer, seed=9)
    return observe(trainer)


def _saved(env):
    """Return a model of two steps and the path of its state."""
    trainer = env.trainer()
    train(trainer, steps=2)
    return trainer, trainer.save_state(env.name("resume")).result().path


def _resumed(env, way: str, path: str):
    """Return a model that was loaded from a state in one of the ways of the SDK."""
    if way.startswith("create"):
        method = {
            "create": env.service.create_training_client_from_state,
            "create_with_optimizer": env.service.create_training_client_from_state_with_optimizer,
        }[way]
        return settled(method(path))
    trainer = env.trainer(seed=99)
    method = {"load": trainer.load_state, "load_with_optimizer": trainer.load_state_with_optimizer}[way]
    method(path).result()
    return trainer


def _compare(env, way: str) -> None:
    live, path = _saved(env)
    before = observe(live)
    resumed = _resumed(env, way, path)
    require_close(observe(resumed), before, "the model after the load", relative=1e-6)
    want, got = _third_step(live), _third_step(resumed)
    if way.endswith("with_optimizer"):
        require_close(got, want, "the third step with the optimizer restored", relative=1e-6)
    else:
        require_different(got, want, "the third step without the optimizer's state")
        require(np.abs(got - want).max() > 1e-4, "the optimizer was restored all the same")
    if env.simulator is None:
        return
    same = np.array_equal(env.parameters(resumed), env.parameters(live))
    require_equal(same, way.endswith("with_optimizer"), "that the parameters are the same bits")


@check("resume: new client with optimizer")
def resume_with_optimizer(env):
    _compare(env, "create_with_optimizer")


@check("resume: new client, weights only")
def resume_weights_only(env):
    _compare(env, "create")


@check("resume: load_state_with_optimizer")
def load_with_optimizer(env):
    _compare(env, "load_with_optimizer")


@check("resume: load_state, weights only")
def load_weights_only(env):
    _compare(env, "load")


@check("resume: async")
async def resume_async(env):
    live, path = _saved(env)
    before = observe(live)
    made = [
        await env.service.create_training_client_from_state_async(path),
        await env.service.create_training_client_from_state_with_optimizer_async(path),
        env.trainer(seed=98),
        env.trainer(seed=97),
    ]
    await awaited(made[2].load_state_async(path))
    await awaited(made[3].load_state_with_optimizer_async(path))
    for trainer in made:
        require_close(observe(trainer), before, "the model after the load", relative=1e-6)
    want = _third_step(live)
    for trainer, warm in zip(made, (False, True, False, True), strict=True):
        close = bool(np.abs(_third_step(trainer) - want).max() < 1e-5)
        require_equal(close, warm, "that the third step is that of the live model")


@check("resume: the new run has its own metadata")
def resume_metadata(env):
    _, path = _saved(env)
    resumed = settled(env.service.create_training_client_from_state(path, user_metadata={"from": "state"}))
    run = env.rest.get_training_run(resumed.model_id).result()
    require_equal(run.user_metadata, {"from": "state"}, "the metadata")
    require_equal(run.lora_rank, 4, "the rank")


@check()
def a_load_comes_first(env):
    """As on the hosted service, a load must be the first operation of a model."""
    trainer, path = _saved(env)
    error = require_raises(tinker.BadRequestError, lambda: trainer.load_state(path).result())
    require("not permitted" in str(error), f"the error does not say so: {error}")


@check("save: a name in use is rejected")
def names_in_use(env):
    trainer, name = env.trainer(), env.name("taken")
    trainer.save_state(name).result()
    error = require_raises(tinker.RequestFailedError, lambda: trainer.save_state(name).result())
    require_equal(error.category, types.RequestErrorCategory.User, "the category")


@check("save: overwrite")
def names_are_overwritten(env):
    trainer, name = env.trainer(), env.name("again")
    trainer.save_state(name).result()
    train(trainer)
    path = trainer.save_state(name, overwrite=True).result().path
    resumed = settled(env.service.create_training_client_from_state(path))
    require_close(observe(resumed), observe(trainer), "the model of the second save", relative=1e-6)


@check("save: async")
async def save_async(env):
    trainer = env.trainer()
    state = await awaited(trainer.save_state_async(env.name("async")))
    weights = await awaited(trainer.save_weights_for_sampler_async(env.name("async")))
    require_equal(state.path.split("/")[2:4], [trainer.model_id, "weights"], "the path of a state")
    require_equal(weights.path.split("/")[2:4], [trainer.model_id, "sampler_weights"], "the path of weights")


@check()
def names_are_checked(env):
    error = require_raises(tinker.RequestFailedError, lambda: env.trainer().save_state("no spaces").result())
    require_equal(error.category, types.RequestErrorCategory.User, "the category")


@check("sampler weights: named")
def sampler_weights_named(env):
    trainer = env.trainer()
    train(trainer, steps=3)
    path = trainer.save_weights_for_sampler(env.name("named")).result().path
    ids = tokens(24, seed=99)
    want = observe(trainer, ids)
    for client in (env.service.create_sampling_client(model_path=path), trainer.create_sampling_client(path)):
        found = settled(client).compute_logprobs(types.ModelInput.from_ints(ids)).result()
        require_close(found[1:], want, "log-probabilities of the sampler", relative=0.02, absolute=0.02)


@check("sampler weights: ephemeral")
def sampler_weights_ephemeral(env):
    """Ephemeral weights are those at the time of the save, and are not listed."""
    trainer = env.trainer()
    ids = tokens(24, seed=99)
    samplers, wants = [], []
    for _ in range(2):
        train(trainer, steps=2)
        samplers.append(env.sampler_of(trainer))
        wants.append(observe(trainer, ids))
    require_different(wants[0], wants[1], "two more steps")
    for sampler, want in zip(samplers, wants, strict=True):
        found = sampler.compute_logprobs(types.ModelInput.from_ints(ids)).result()
        require_close(found[1:], want, "log-probabilities of the sampler", relative=0.02, absolute=0.02)
    listed = env.rest.list_checkpoints(trainer.model_id).result().checkpoints
    require_equal([one.tinker_path for one in listed], [], "the checkpoints that are listed")


def _expiry(env, path: str) -> datetime.datetime | None:
    run = path.split("/")[2]
    listed = env.rest.list_checkpoints(run).result().checkpoints
    found = [one.expires_at for one in listed if one.tinker_path == path]
    require_equal(len(found), 1, f"how often {path} is listed")
    return found[0]


def _require_expiry(env, path: str, seconds: int, what: str) -> None:
    left = (_expiry(env, path) - datetime.datetime.now(datetime.UTC)).total_seconds()
    require(seconds - 60 <= left <= seconds + 60, f"{what} expires in {left:.0f} s, want {seconds}")


@check("TTL: given with a save")
def ttl_with_a_save(env):
    trainer = env.trainer()
    state = trainer.save_state(env.name("ttl"), ttl_seconds=7200).result().path
    weights = trainer.save_weights_for_sampler(env.name("ttl"), ttl_seconds=3600).result().path
    _require_expiry(env, state, 7200, "the state")
    _require_expiry(env, weights, 3600, "the sampler's weights")


@check("TTL: set and removed")
async def ttl_set(env):
    path = env.trainer().save_state(env.name("ttl")).result().path
    require_equal(_expiry(env, path), None, "the expiry of a save without a TTL")
    env.rest.set_checkpoint_ttl_from_tinker_path(path, 5000).result()
    _require_expiry(env, path, 5000, "the checkpoint")
    await env.rest.set_checkpoint_ttl_from_tinker_path_async(path, 9000)
    _require_expiry(env, path, 9000, "the checkpoint")
    env.rest.set_checkpoint_ttl_from_tinker_path(path, None).result()
    require_equal(_expiry(env, path), None, "the expiry after the TTL was removed")


@check()
def checkpoints_expire(env):
    """An expired checkpoint is not listed, and cannot be loaded or sampled from."""
    trainer = env.trainer()
    state = trainer.save_state(env.name("brief"), ttl_seconds=1).result().path
    weights = trainer.save_weights_for_sampler(env.name("brief"), ttl_seconds=1).result().path
    sampler = settled(env.service.create_sampling_client(model_path=weights))
    deadline = time.monotonic() + 120
    while env.rest.list_checkpoints(trainer.model_id).result().checkpoints:
        require(time.monotonic() < deadline, "the checkpoints are still listed")
        time.sleep(0.1)
    missing = (tinker.NotFoundError, tinker.RequestFailedError)
    require_raises(missing, lambda: settled(env.service.create_training_client_from_state(state)))
    require_raises(tinker.NotFoundError, lambda: settled(env.service.create_sampling_client(model_path=weights)))
    prompt = types.ModelInput.from_ints(tokens(8))
    require_raises(tinker.NotFoundError, lambda: sampler.compute_logprobs(prompt).result())


@check("metadata of checkpoints", needs="checkpoint_metadata")
def checkpoint_metadata(env):
    trainer, name = env.trainer(), env.name("metadata")

    def listed() -> dict:
        found = env.rest.list_checkpoints(trainer.model_id).result().checkpoints
        return {one.checkpoint_type: one.user_metadata or {} for one in found}

    trainer.save_state(name, user_metadata={"step": "7", "of": "a check"}).result()
    trainer.save_weights_for_sampler(name, user_metadata={"step": "8"}).result()
    require_equal(listed(), {"training": {"step": "7", "of": "a check"}, "sampler": {"step": "8"}}, "the metadata")
    trainer.save_state(name, overwrite=True).result()
    require_equal(listed()["training"], {}, "the metadata after a save without any that overwrites")
