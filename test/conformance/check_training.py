# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The training client as a whole: async, pipelines, chunks, info."""

import numpy as np
from tinker import types

from check_losses import require_same_step
from harness import check, require, require_close, require_equal
from environment import awaited, datum, logprobs, observe, tokens


@check("training: async")
async def training_async(env):
    """The async methods do what the sync ones do."""
    trainer, twin = env.trainer(), env.trainer()
    data, adam = [datum(tokens(16))], types.AdamParams(learning_rate=1e-2)
    ahead = await awaited(trainer.forward_async(data, "cross_entropy"))
    done = await awaited(trainer.forward_backward_async(data, "cross_entropy"))
    require_close(done.metrics["loss:sum"], ahead.metrics["loss:sum"], "the loss")
    await awaited(trainer.optim_step_async(adam))
    twin.forward_backward(data, "cross_entropy").result()
    twin.optim_step(adam).result()
    require_close(observe(trainer), observe(twin), "the model", relative=1e-6)


@check("training: pipelined steps keep their order")
def pipelines(env):
    """Ten operations submitted at once have the same effect as one after the other."""
    trainer, twin = env.trainer(), env.trainer()
    batches = [[datum(tokens(16, seed=number))] for number in range(5)]
    adam = types.AdamParams(learning_rate=1e-2)
    futures = []
    for data in batches:
        futures += [trainer.forward_backward(data, "cross_entropy"), trainer.optim_step(adam)]
    losses = [future.result().metrics["loss:sum"] for future in futures[::2]]
    for data, loss in zip(batches, losses, strict=True):
        want = twin.forward_backward(data, "cross_entropy").result().metrics["loss:sum"]
        require_close(loss, want, "the loss of a pipelined step", relative=1e-6)
        twin.optim_step(adam).result()
    require_close(observe(trainer), observe(twin), "the model", relative=1e-6)


def _compare_chunks(env, data: list[types.Datum], half: int) -> None:
    """Check that a batch of several chunks is the sum of its halves."""
    trainer, twin = env.trainer(), env.trainer()
    done = trainer.forward_backward(data, "cross_entropy").result()
    parts = [twin.forward_backward(part, "cross_entropy").result() for part in (data[:half], data[half:])]
    require_equal(len(done.loss_fn_outputs), len(data), "the number of outputs")
    want = sum(part.metrics["loss:sum"] for part in parts)
    require_close(done.metrics["loss:sum"], want, "the loss", relative=1e-5)
    for index in (0, half - 1, half, len(data) - 1):
        part, at = (parts[0], index) if index < half else (parts[1], index - half)
        require_close(
            logprobs(done)[index], logprobs(part)[at], f"the log-probabilities of datum {index}", relative=1e-6
        )
    require_same_step(env, trainer, twin, "the gradient of several chunks")


@check("batches of over 1,024 datums")
def chunks_by_count(env):
    weights = np.full(3, 1e-2)
    data = [datum(tokens(4, seed=number), weights=weights) for number in range(1100)]
    _compare_chunks(env, data, 550)


@check("batches of over 5 MB")
def chunks_by_size(env):
    """27 datums of 200 kB: 64 positions with 260 targets, each an int64 and a float32."""
    rng = np.random.default_rng(2)
    data = []
    for number in range(27):
        targets = rng.integers(32, 127, size=(64, 260))
        weights = rng.uniform(0, 1e-3, size=(64, 260))
        data.append(datum(tokens(65, seed=number), target_tokens=targets, weights=weights))
    size = sum(tensor._numpy.nbytes for one in data for tensor in one.loss_fn_inputs.values())
    require(size > 5_000_000, f"the batch has {size} bytes only")
    _compare_chunks(env, data, 13)


@check()
def large_results_come_in_two_steps(env):
    """The suite's tinkersim announces results of over 1 MB before it returns them; these are two of 2 MB."""
    targets = np.tile(np.arange(260), (256, 1))
    data = [datum(tokens(257, seed=number), target_tokens=targets) for number in range(14)]
    trainer = env.trainer()
    before = env.simulator.counts()["calls"]["retrieve_future"]
    done = trainer.forward(data, "cross_entropy").result()
    polls = env.simulator.counts()["calls"]["retrieve_future"] - before
    require(polls >= 4, f"two results came with {polls} polls")
    found = logprobs(done)
    require_equal({array.shape for array in found}, {(256, 260)}, "the shapes")
    total = np.exp(np.stack(found).astype(np.float64)).sum(axis=2)
    require_close(total, np.ones_like(total), "the sum of the probabilities", relative=1e-5)


@check()
def info_says_what_the_model_is(env):
    trainer = env.trainer(rank=8)
    info = trainer.get_info()
    require_equal(
        (info.model_id, info.lora_rank, info.model_data.tokenizer_id), (trainer.model_id, 8, env.model), "the model"
    )
