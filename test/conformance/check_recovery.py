# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Missing and damaged checkpoints, expired sessions, and restarts of the server."""

import numpy as np
import tinker
from tinker import types

from check_sampling import QUESTION
from harness import check, require, require_close, require_equal, require_raises
from environment import observe, prompt, sample, session_of, settled, train

MISSING = (tinker.NotFoundError, tinker.RequestFailedError)


@check()
def missing_checkpoints(env):
    """The use of a checkpoint that expired after its listing raises a precise error."""
    trainer = env.trainer()
    paths = [trainer.save_state(env.name("vanish")).result().path for _ in range(2)]
    resume = env.service.create_training_client_from_state_with_optimizer
    env.simulator.expire(paths[0])
    require_raises(MISSING, lambda: settled(resume(paths[0])))
    with env.simulator.faults({"op": "load_weights", "do": "missing"}):
        require_raises(MISSING, lambda: settled(resume(paths[1])))
    with env.simulator.faults({"op": "load_weights", "do": "corrupt"}):
        error = require_raises(tinker.RequestFailedError, lambda: settled(resume(paths[1])))
    require_equal(error.category, types.RequestErrorCategory.Server, "the category of damage")
    require_close(observe(settled(resume(paths[1]))), observe(trainer), "the model, in the end", relative=1e-6)


@check()
def lost_optimizer_state(env):
    """If a server loses the optimizer's state without an error, the next step differs."""
    live = env.trainer()
    train(live, steps=2)
    path = live.save_state(env.name("cold")).result().path
    with env.simulator.faults({"op": "load_weights", "do": "cold_adam"}):
        resumed = settled(env.service.create_training_client_from_state_with_optimizer(path))
    require_equal(observe(resumed), observe(live), "the model after the load")
    for trainer in (live, resumed):
        train(trainer, seed=9)
    require(np.abs(observe(resumed) - observe(live)).max() > 1e-4, "the third step is that of a warm optimizer")


@check()
def ignored_seed(env):
    """If a server ignores seeds, two requests with the same seed return different tokens."""
    client = env.base_sampler()
    with env.simulator.faults({"op": "asample", "do": "ignore_seed", "count": -1}):
        drawn = [sample(client, QUESTION, count=4, max_tokens=8, seed=5) for _ in range(2)]
    found = [[list(one.tokens) for one in response.sequences] for response in drawn]
    require(found[0] != found[1], "the same seed draws the same")


@check()
def expired_sessions(env):
    """A session without heartbeats expires, with its models and samplers."""
    service = env.new_service()
    trainer = settled(service.create_lora_training_client(base_model=env.model, rank=2))
    client = settled(service.create_sampling_client(base_model=env.model))
    env.simulator.request("DELETE", f"/admin/sessions/{session_of(client)}")
    require_raises(tinker.NotFoundError, lambda: trainer.save_state(env.name("late")).result())
    require_raises(tinker.NotFoundError, lambda: client.compute_logprobs(prompt(QUESTION)).result())


@check()
def restarts(env):
    """A restart forgets models and sessions, and keeps runs and checkpoints."""
    trainer = env.trainer()
    train(trainer, steps=2)
    before = observe(trainer)
    path = trainer.save_state(env.name("restart")).result().path
    env.simulator.request("POST", "/admin/restart")
    require_raises(tinker.NotFoundError, lambda: observe(trainer))
    env.reset_clients()
    resumed = settled(env.service.create_training_client_from_state_with_optimizer(path))
    require_equal(observe(resumed), before, "the model after the restart")
    run = env.rest.get_training_run(trainer.model_id).result()
    require_equal(run.last_checkpoint.tinker_path, path, "the newest state of the run before")
