# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that are gone or damaged, sessions that died, and a server that restarted."""

import numpy as np
import tinker
from tinker import types

from check_sampling import QUESTION
from harness import check, require, require_close, require_equal, require_raises
from lab import observe, prompt, sample, session_of, settled, train

GONE = (tinker.NotFoundError, tinker.RequestFailedError)


@check()
def checkpoints_vanish(lab):
    """A checkpoint that expires between its listing and its use is a clean error."""
    trainer = lab.trainer()
    paths = [trainer.save_state(lab.name("vanish")).result().path for _ in range(2)]
    resume = lab.service.create_training_client_from_state_with_optimizer
    lab.simulator.expire(paths[0])
    require_raises(GONE, lambda: settled(resume(paths[0])))
    with lab.simulator.faults({"op": "load_weights", "do": "missing"}):
        require_raises(GONE, lambda: settled(resume(paths[1])))
    with lab.simulator.faults({"op": "load_weights", "do": "corrupt"}):
        error = require_raises(tinker.RequestFailedError, lambda: settled(resume(paths[1])))
    require_equal(error.category, types.RequestErrorCategory.Server, "the category of damage")
    require_close(observe(settled(resume(paths[1]))), observe(trainer), "the model, in the end", relative=1e-6)


@check()
def a_cold_optimizer_shows(lab):
    """A server that forgets the optimizer's state without saying so is found out by the next step."""
    live = lab.trainer()
    train(live, steps=2)
    path = live.save_state(lab.name("cold")).result().path
    with lab.simulator.faults({"op": "load_weights", "do": "cold_adam"}):
        resumed = settled(lab.service.create_training_client_from_state_with_optimizer(path))
    require_equal(observe(resumed), observe(live), "the model after the load")
    for trainer in (live, resumed):
        train(trainer, seed=9)
    require(np.abs(observe(resumed) - observe(live)).max() > 1e-4, "the third step is that of a warm optimizer")


@check()
def an_ignored_seed_shows(lab):
    """A server that draws by seeds of its own is found out by asking twice."""
    client = lab.base_sampler()
    with lab.simulator.faults({"op": "asample", "do": "ignore_seed", "count": -1}):
        drawn = [sample(client, QUESTION, count=4, max_tokens=8, seed=5) for _ in range(2)]
    found = [[list(one.tokens) for one in answer.sequences] for answer in drawn]
    require(found[0] != found[1], "the same seed draws the same")


@check()
def dead_sessions(lab):
    """A session of which nothing was heard for too long is gone, with its models and samplers."""
    service = lab.new_service()
    trainer = settled(service.create_lora_training_client(base_model=lab.model, rank=2))
    client = settled(service.create_sampling_client(base_model=lab.model))
    lab.simulator.request("DELETE", f"/admin/sessions/{session_of(client)}")
    require_raises(tinker.NotFoundError, lambda: trainer.save_state(lab.name("late")).result())
    require_raises(tinker.NotFoundError, lambda: client.compute_logprobs(prompt(QUESTION)).result())


@check()
def restarts(lab):
    """A restart forgets models and sessions, and keeps runs and checkpoints."""
    trainer = lab.trainer()
    train(trainer, steps=2)
    look = observe(trainer)
    path = trainer.save_state(lab.name("restart")).result().path
    lab.simulator.request("POST", "/admin/restart")
    require_raises(tinker.NotFoundError, lambda: observe(trainer))
    lab.forget()
    resumed = settled(lab.service.create_training_client_from_state_with_optimizer(path))
    require_equal(observe(resumed), look, "the model after the restart")
    run = lab.rest.get_training_run(trainer.model_id).result()
    require_equal(run.last_checkpoint.tinker_path, path, "the newest state of the run before")
