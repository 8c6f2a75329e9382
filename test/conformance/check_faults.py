# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Rejections, pauses and failures, which tinkersim's fault rules cause.

If the SDK retries an operation, the model must be the same as without the fault.
"""

import threading

import tinker
from tinker import types
from tinker.lib.retryable_exception import RetryableException

from check_sampling import QUESTION
from harness import check, require, require_close, require_equal, require_raises
from environment import datum, observe, prompt, tokens

ADAM = types.AdamParams(learning_rate=1e-2)


def _step(trainer) -> None:
    """Take the step that every model of a comparison takes."""
    done = trainer.forward_backward([datum(tokens(16))], "cross_entropy")
    moved = trainer.optim_step(ADAM)
    done.result()
    moved.result()


def _check_unaffected(env, *rules: dict) -> None:
    """Check that two steps with faults equal two steps without them: none is lost or repeated."""
    trainer, twin = env.trainer(), env.trainer()
    _step(trainer)
    with env.simulator.faults(*rules):
        _step(trainer)
    _step(twin)
    _step(twin)
    require_equal(observe(trainer), observe(twin), "the model")
    require_equal(env.parameters(trainer), env.parameters(twin), "its parameters")


@check()
def failures_have_categories(env):
    categories = types.RequestErrorCategory
    for word, want in (("user", categories.User), ("server", categories.Server), ("unknown", categories.Unknown)):
        rule = {"op": "optim_step", "do": "fail", "category": word, "message": f"it is the {word}"}
        with env.simulator.faults(rule):
            error = require_raises(tinker.RequestFailedError, lambda: env.trainer().optim_step(ADAM).result())
        require_equal(error.category, want, "the category")
        require(f"it is the {word}" in str(error), f"the error does not name the category: {error}")


@check()
def too_many_requests(env):
    """429 on submissions, with and without Retry-After, and on polls."""
    _check_unaffected(
        env,
        {"op": "forward_backward", "do": "refuse", "status": 429, "retryAfterSeconds": 0.2, "count": 2},
        {"op": "optim_step", "do": "refuse", "status": 429},
        {"op": "retrieve_future", "do": "refuse", "status": 429, "count": 2},
    )


@check()
def too_many_samples(env):
    client = env.base_sampler()
    params = types.SamplingParams(max_tokens=4, seed=3)
    with env.simulator.faults({"op": "asample", "do": "refuse", "status": 429}):
        drawn = client.sample(prompt(QUESTION), 1, params).result()
    same = client.sample(prompt(QUESTION), 1, params).result()
    require_equal(list(drawn.sequences[0].tokens), list(same.sequences[0].tokens), "the tokens")


@check()
def payment_required(env):
    """402 is retried, on submissions and on polls."""
    _check_unaffected(
        env,
        {"op": "optim_step", "do": "refuse", "status": 402, "message": "no credit"},
        {"op": "retrieve_future", "do": "refuse", "status": 402, "message": "no credit"},
    )


@check()
def pauses_are_reported(env):
    """The SDK reports why a client waits."""
    client, reported, all_reported = env.base_sampler(), [], threading.Event()

    def listen(state, reason):
        reported.append((state.value, reason))
        if {value for value, _ in reported} >= {"paused_capacity", "paused_rate_limit"}:
            all_reported.set()

    client.on_queue_state_change = listen
    holds = [
        {
            "id": state,
            "op": "asample",
            "occurrence": number,
            "do": "hold",
            "queueState": state,
            "message": f"for {state}",
        }
        for number, state in enumerate(("paused_capacity", "paused_rate_limit"), start=1)
    ]
    with env.simulator.faults(*holds):
        params = types.SamplingParams(max_tokens=2, seed=1)
        waiting = [client.sample(prompt(QUESTION), 1, params) for _ in holds]
        require(all_reported.wait(120), f"reported were {reported}")
        for hold in holds:
            env.simulator.release(hold["id"])
        for future in waiting:
            require_equal(len(future.result().sequences), 1, "the samples after the pause")
    require(("paused_capacity", "for paused_capacity") in reported, f"the reason was not reported: {reported}")


@check()
def training_pauses_end(env):
    _check_unaffected(env, {"op": "forward_backward", "do": "pause", "seconds": 1.5, "queueState": "paused_capacity"})


@check()
def server_errors(env):
    """5xx on submissions and on polls."""
    _check_unaffected(
        env,
        {"op": "forward_backward", "do": "refuse", "status": 503},
        {"op": "optim_step", "do": "refuse", "status": 500},
        {"op": "retrieve_future", "do": "refuse", "status": 502, "count": 3},
    )


@check()
def lost_requests_and_responses(env):
    """Connections break before the execution and after it; no operation is executed twice."""
    _check_unaffected(
        env,
        {"op": "forward_backward", "do": "drop_answer"},
        {"op": "optim_step", "do": "drop_answer"},
        {"op": "optim_step", "occurrence": 2, "do": "drop_request"},
        {"op": "retrieve_future", "do": "drop_answer"},
    )


@check()
def saves_with_lost_responses(env):
    trainer = env.trainer()
    with env.simulator.faults(
        {"op": "save_weights", "do": "drop_answer"},
        {"op": "save_weights_for_sampler", "do": "drop_answer"},
        {"op": "create_model", "do": "drop_answer"},
    ):
        state = trainer.save_state(env.name("lost")).result().path
        client = env.sampler_of(trainer)
        other = env.trainer()
    listed = env.rest.list_checkpoints(trainer.model_id).result().checkpoints
    require_equal([one.tinker_path for one in listed], [state], "the checkpoints")
    require_close(
        client.compute_logprobs(prompt(QUESTION)).result()[1:], observe(other, QUESTION), "the base", absolute=0.05
    )


@check()
def slow_responses(env):
    """The server has latency, and responds at full seconds."""
    _check_unaffected(
        env,
        {"op": "forward_backward", "do": "delay", "seconds": 0.3},
        {"op": "optim_step", "do": "cycle", "seconds": 1},
    )


@check()
def lost_futures(env):
    """After 410 a sample is requested again, and a training operation raises."""
    client, params = env.base_sampler(), types.SamplingParams(max_tokens=4, seed=3)
    with env.simulator.faults({"op": "asample", "do": "lose_promise"}):
        drawn = client.sample(prompt(QUESTION), 1, params).result()
    same = client.sample(prompt(QUESTION), 1, params).result()
    require_equal(list(drawn.sequences[0].tokens), list(same.sequences[0].tokens), "the tokens")
    trainer = env.trainer()
    with env.simulator.faults({"op": "optim_step", "do": "lose_promise"}):
        require_raises(RetryableException, lambda: trainer.optim_step(ADAM).result())
    _step(trainer)


@check()
def one_chunk_of_two_fails(env):
    """The call fails, and the gradient has only the chunk that did not fail."""
    trainer, twin = env.trainer(), env.trainer()
    data = [datum(tokens(4, seed=number)) for number in range(1100)]
    with env.simulator.faults({"op": "forward_backward", "seq": 2, "do": "fail"}):
        error = require_raises(
            tinker.RequestFailedError, lambda: trainer.forward_backward(data, "cross_entropy").result()
        )
    require_equal(error.category, types.RequestErrorCategory.Server, "the category")
    twin.forward_backward(data[:1024], "cross_entropy").result()
    for client in (trainer, twin):
        client.optim_step(ADAM).result()
    require_equal(env.parameters(trainer), env.parameters(twin), "the parameters")


@check()
def results_can_be_waited_for_twice(env):
    """A result can be fetched after a wait that timed out."""
    trainer = env.trainer()
    with env.simulator.faults({"id": "slow", "op": "forward_backward", "do": "hold"}):
        future = trainer.forward_backward([datum(tokens(9))], "cross_entropy")
        env.simulator.await_holding("slow")
        require_raises(TimeoutError, lambda: future.result(timeout=0.2))
        env.simulator.release("slow")
        require(future.result().metrics["loss:sum"] > 0, "there is no loss")


@check()
def cancelled_futures(env):
    """A client can continue after it canceled a future; the server trains all the same."""
    client, trainer, twin = env.base_sampler(), env.trainer(), env.trainer()
    params = types.SamplingParams(max_tokens=4, seed=3)
    with env.simulator.faults(
        {"id": "sample", "op": "asample", "do": "hold"}, {"id": "train", "op": "forward_backward", "do": "hold"}
    ):
        waiting = [
            client.sample(prompt(QUESTION), 1, params),
            trainer.forward_backward([datum(tokens(16))], "cross_entropy"),
        ]
        for hold, future in zip(("sample", "train"), waiting, strict=True):
            env.simulator.await_holding(hold)
            plain = future.future() if hasattr(future, "future") else future
            require(plain.cancel(), f"the future of the held {hold} cannot be cancelled")
        env.simulator.release("sample")
        env.simulator.release("train")
    require_equal(len(client.sample(prompt(QUESTION), 1, params).result().sequences), 1, "the samples afterwards")
    trainer.optim_step(ADAM).result()
    _step(twin)
    require_equal(observe(trainer), observe(twin), "the model")


@check(needs="sample_cancel")
def cancelled_samples(env):
    """A client that cancels a future sends that to the server, which does not draw the samples."""
    client, params = env.base_sampler(), types.SamplingParams(max_tokens=4, seed=3)
    before = env.simulator.counts()
    with env.simulator.faults({"id": "sample", "op": "asample", "do": "hold"}):
        waiting = client.sample(prompt(QUESTION), 5, params)
        env.simulator.await_calls("retrieve_future", before)
        require(waiting.cancel(), "the future of the held samples cannot be cancelled")
        env.simulator.await_calls("cancel_future", before)
        env.simulator.release("sample")
    require_equal(len(client.sample(prompt(QUESTION), 1, params).result().sequences), 1, "the samples afterwards")
    require_equal(env.simulator.counts()["sampledRows"] - before["sampledRows"], 1, "the samples that were drawn")
