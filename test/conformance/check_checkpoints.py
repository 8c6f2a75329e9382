# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Saving, loading, resuming; the life of a checkpoint."""

import datetime
import time

import numpy as np
import tinker
from tinker import types

from harness import check, require, require_close, require_different, require_equal, require_raises
from lab import awaited, observe, settled, tokens, train


def _third_step(trainer) -> np.ndarray:
    """Make the step that all models of a comparison make, and look at the model."""
    train(trainer, seed=9)
    return observe(trainer)


def _saved(lab):
    """Return a model of two steps and the path of its state."""
    trainer = lab.trainer()
    train(trainer, steps=2)
    return trainer, trainer.save_state(lab.name("resume")).result().path


def _resumed(lab, way: str, path: str):
    """Return a model that was made from a state in one of the ways that the SDK has."""
    if way.startswith("create"):
        method = {
            "create": lab.service.create_training_client_from_state,
            "create_with_optimizer": lab.service.create_training_client_from_state_with_optimizer,
        }[way]
        return settled(method(path))
    trainer = lab.trainer(seed=99)
    method = {"load": trainer.load_state, "load_with_optimizer": trainer.load_state_with_optimizer}[way]
    method(path).result()
    return trainer


def _compare(lab, way: str) -> None:
    live, path = _saved(lab)
    before = observe(live)
    resumed = _resumed(lab, way, path)
    require_close(observe(resumed), before, "the model after the load", relative=1e-6)
    want, got = _third_step(live), _third_step(resumed)
    if way.endswith("with_optimizer"):
        require_close(got, want, "the third step with the optimizer restored", relative=1e-6)
    else:
        require_different(got, want, "the third step without the optimizer's state")
        require(np.abs(got - want).max() > 1e-4, "the optimizer was restored all the same")
    if lab.simulator is None:
        return
    same = np.array_equal(lab.parameters(resumed), lab.parameters(live))
    require_equal(same, way.endswith("with_optimizer"), "that the parameters are the same bits")


@check("resume: new client with optimizer")
def resume_with_optimizer(lab):
    _compare(lab, "create_with_optimizer")


@check("resume: new client, weights only")
def resume_weights_only(lab):
    _compare(lab, "create")


@check("resume: load_state_with_optimizer")
def load_with_optimizer(lab):
    _compare(lab, "load_with_optimizer")


@check("resume: load_state, weights only")
def load_weights_only(lab):
    _compare(lab, "load")


@check("resume: async")
async def resume_async(lab):
    live, path = _saved(lab)
    before = observe(live)
    made = [
        await lab.service.create_training_client_from_state_async(path),
        await lab.service.create_training_client_from_state_with_optimizer_async(path),
        lab.trainer(seed=98),
        lab.trainer(seed=97),
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
def resume_metadata(lab):
    _, path = _saved(lab)
    resumed = settled(lab.service.create_training_client_from_state(path, user_metadata={"from": "state"}))
    run = lab.rest.get_training_run(resumed.model_id).result()
    require_equal(run.user_metadata, {"from": "state"}, "the metadata")
    require_equal(run.lora_rank, 4, "the rank")


@check()
def a_load_comes_first(lab):
    """As on the hosted service, a model can be loaded into before anything else alone."""
    trainer, path = _saved(lab)
    error = require_raises(tinker.BadRequestError, lambda: trainer.load_state(path).result())
    require("not permitted" in str(error), f"the error does not say so: {error}")


@check("save: a taken name is refused")
def names_are_taken(lab):
    trainer, name = lab.trainer(), lab.name("taken")
    trainer.save_state(name).result()
    error = require_raises(tinker.RequestFailedError, lambda: trainer.save_state(name).result())
    require_equal(error.category, types.RequestErrorCategory.User, "the category")


@check("save: overwrite")
def names_are_overwritten(lab):
    trainer, name = lab.trainer(), lab.name("again")
    trainer.save_state(name).result()
    train(trainer)
    path = trainer.save_state(name, overwrite=True).result().path
    resumed = settled(lab.service.create_training_client_from_state(path))
    require_close(observe(resumed), observe(trainer), "the model of the second save", relative=1e-6)


@check("save: async")
async def save_async(lab):
    trainer = lab.trainer()
    state = await awaited(trainer.save_state_async(lab.name("async")))
    weights = await awaited(trainer.save_weights_for_sampler_async(lab.name("async")))
    require_equal(state.path.split("/")[2:4], [trainer.model_id, "weights"], "the path of a state")
    require_equal(weights.path.split("/")[2:4], [trainer.model_id, "sampler_weights"], "the path of weights")


@check()
def names_are_checked(lab):
    error = require_raises(tinker.RequestFailedError, lambda: lab.trainer().save_state("no spaces").result())
    require_equal(error.category, types.RequestErrorCategory.User, "the category")


@check("sampler weights: named")
def sampler_weights_named(lab):
    trainer = lab.trainer()
    train(trainer, steps=3)
    path = trainer.save_weights_for_sampler(lab.name("named")).result().path
    ids = tokens(24, seed=99)
    want = observe(trainer, ids)
    for client in (lab.service.create_sampling_client(model_path=path), trainer.create_sampling_client(path)):
        found = settled(client).compute_logprobs(types.ModelInput.from_ints(ids)).result()
        require_close(found[1:], want, "log-probabilities of the sampler", relative=0.02, absolute=0.02)


@check("sampler weights: ephemeral")
def sampler_weights_ephemeral(lab):
    """They are the weights of that moment, and are not listed."""
    trainer = lab.trainer()
    ids = tokens(24, seed=99)
    samplers, wants = [], []
    for _ in range(2):
        train(trainer, steps=2)
        samplers.append(lab.sampler_of(trainer))
        wants.append(observe(trainer, ids))
    require_different(wants[0], wants[1], "two more steps")
    for sampler, want in zip(samplers, wants, strict=True):
        found = sampler.compute_logprobs(types.ModelInput.from_ints(ids)).result()
        require_close(found[1:], want, "log-probabilities of the sampler", relative=0.02, absolute=0.02)
    listed = lab.rest.list_checkpoints(trainer.model_id).result().checkpoints
    require_equal([one.tinker_path for one in listed], [], "the checkpoints that are listed")


def _expiry(lab, path: str) -> datetime.datetime | None:
    run = path.split("/")[2]
    listed = lab.rest.list_checkpoints(run).result().checkpoints
    found = [one.expires_at for one in listed if one.tinker_path == path]
    require_equal(len(found), 1, f"how often {path} is listed")
    return found[0]


def _require_expiry(lab, path: str, seconds: int, what: str) -> None:
    left = (_expiry(lab, path) - datetime.datetime.now(datetime.UTC)).total_seconds()
    require(seconds - 60 <= left <= seconds + 60, f"{what} is over in {left:.0f} s, want {seconds}")


@check("TTL: given with a save")
def ttl_with_a_save(lab):
    trainer = lab.trainer()
    state = trainer.save_state(lab.name("ttl"), ttl_seconds=7200).result().path
    weights = trainer.save_weights_for_sampler(lab.name("ttl"), ttl_seconds=3600).result().path
    _require_expiry(lab, state, 7200, "the state")
    _require_expiry(lab, weights, 3600, "the sampler's weights")


@check("TTL: set and removed")
async def ttl_set(lab):
    path = lab.trainer().save_state(lab.name("ttl")).result().path
    require_equal(_expiry(lab, path), None, "the expiry of a save without a TTL")
    lab.rest.set_checkpoint_ttl_from_tinker_path(path, 5000).result()
    _require_expiry(lab, path, 5000, "the checkpoint")
    await lab.rest.set_checkpoint_ttl_from_tinker_path_async(path, 9000)
    _require_expiry(lab, path, 9000, "the checkpoint")
    lab.rest.set_checkpoint_ttl_from_tinker_path(path, None).result()
    require_equal(_expiry(lab, path), None, "the expiry after the TTL was removed")


@check()
def checkpoints_expire(lab):
    """A checkpoint whose time is over is not listed, not loaded and not sampled from."""
    trainer = lab.trainer()
    state = trainer.save_state(lab.name("brief"), ttl_seconds=1).result().path
    weights = trainer.save_weights_for_sampler(lab.name("brief"), ttl_seconds=1).result().path
    sampler = settled(lab.service.create_sampling_client(model_path=weights))
    deadline = time.monotonic() + 120
    while lab.rest.list_checkpoints(trainer.model_id).result().checkpoints:
        require(time.monotonic() < deadline, "the checkpoints are still listed")
        time.sleep(0.1)
    gone = (tinker.NotFoundError, tinker.RequestFailedError)
    require_raises(gone, lambda: settled(lab.service.create_training_client_from_state(state)))
    require_raises(tinker.NotFoundError, lambda: settled(lab.service.create_sampling_client(model_path=weights)))
    prompt = types.ModelInput.from_ints(tokens(8))
    require_raises(tinker.NotFoundError, lambda: sampler.compute_logprobs(prompt).result())
