# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Losses and their gradients, against reference.py and against finite differences."""

import numpy as np
import tinker
from tinker import types

import reference
import torchlike
from harness import check, require, require_close, require_different, require_equal, require_raises
from environment import awaited, datum, logprobs, observe, plain_steps, text, tokens, train

# What the datums of a batch say.
LINES = ("User: What is 27 + 58?\n\nAssistant: 85", "What is 3?", "User: What is 99 + 1?\n\nAssistant: 90")

# The differences between log-probabilities and those at sampling: ratios are below, within and above every clip,
# and none is near one.
LEADS = (-0.5, 0.02, 0.5, 1.6)


def batch_for(name: str, trainer, per_token: dict[str, tuple[float, float]] | None = None):
    """Return a batch with ratios on both sides of every clip: datums, their tokens, and their inputs as arrays.

    per_token gives the ranges of further inputs.
    """
    rng = np.random.default_rng(5)
    sequences = [text(line) for line in LINES]
    before = logprobs(trainer.forward([datum(ids) for ids in sequences], "cross_entropy").result())
    inputs = []
    for own in before:
        if name == "cross_entropy":
            arrays = {"weights": rng.uniform(-1, 2, own.size)}
        else:
            arrays = {
                "logprobs": own - rng.choice(LEADS, own.size),
                "advantages": rng.normal(size=own.size),
            }
        for key, (low, high) in (per_token or {}).items():
            arrays[key] = rng.uniform(low, high, own.size)
        inputs.append({key: array.astype(np.float32) for key, array in arrays.items()})
    return [datum(ids, **arrays) for ids, arrays in zip(sequences, inputs, strict=True)], sequences, inputs


def loss_holds(env, name: str, config: dict[str, float] | None = None, per_token=None) -> None:
    """Check value, outputs and gradient of a loss.

    The gradient is checked against cross entropy: with the loss's derivatives by the
    log-probabilities as weights, negated, it has the same gradient by the parameters.
    """
    trainer, twin = env.trainer(), env.trainer()
    for client in (trainer, twin):
        train(client, steps=2)
    data, sequences, inputs = batch_for(name, trainer, per_token)
    ahead = trainer.forward(data, name, config).result()
    done = trainer.forward_backward(data, name, config).result()
    for one, other in zip(logprobs(ahead), logprobs(done), strict=True):
        require_close(other, one, "log-probabilities with a backward pass", relative=1e-6)
    require_equal(done.loss_fn_output_type, "ArrayRecord", "the type of the outputs")
    value, weights = 0.0, []
    for own, arrays in zip(logprobs(done), inputs, strict=True):
        part, slope = reference.loss(name, own, arrays, config)
        value += part
        weights.append(-slope)
    require_close(done.metrics["loss:sum"], value, f"the loss {name}", relative=2e-5)
    require_close(ahead.metrics["loss:sum"], value, f"the loss {name} of a forward pass", relative=2e-5)
    linear = [datum(ids, weights=array) for ids, array in zip(sequences, weights, strict=True)]
    twin.forward_backward(linear, "cross_entropy").result()
    require_same_step(env, trainer, twin, f"the gradient of {name}")


def require_same_step(env, trainer, twin, what: str, relative: float = 1e-4) -> None:
    """Subtract the gradients of both models, and compare the changes of the models."""
    start = observe(trainer)
    for client in (trainer, twin):
        client.optim_step(plain_steps(1e-3)).result()
    moved, wanted = observe(trainer) - start, observe(twin) - start
    require(np.abs(wanted).max() > 1e-4, f"{what} moves nothing")
    require_close(moved, wanted, f"what {what} does to log-probabilities", relative=max(relative, 1e-2))
    if env.simulator is None:
        return
    require_close(env.parameters(trainer), env.parameters(twin), f"the parameters after {what}", relative=relative / 10)


@check("loss cross_entropy")
def loss_cross_entropy(env):
    loss_holds(env, "cross_entropy")


@check("loss cross_entropy: no weights are ones")
def loss_cross_entropy_without_weights(env):
    trainer = env.trainer()
    ids = tokens(20)
    done = trainer.forward([datum(ids)], "cross_entropy").result()
    require_close(done.metrics["loss:sum"], -logprobs(done)[0].sum(dtype=np.float64), "the loss", relative=1e-5)


@check("loss cross_entropy: many targets")
def loss_cross_entropy_many_targets(env):
    trainer = env.trainer()
    ids, rng = tokens(12), np.random.default_rng(8)
    targets = rng.integers(32, 127, size=(11, 5))
    weights = rng.uniform(size=(11, 5)).astype(np.float32)
    done = trainer.forward_backward([datum(ids, target_tokens=targets, weights=weights)], "cross_entropy").result()
    found = logprobs(done)[0]
    require_equal(found.shape, (11, 5), "the shape of the log-probabilities")
    require_close(done.metrics["loss:sum"], reference.loss("cross_entropy", found, {"weights": weights})[0], "the loss")
    for column in range(5):
        alone = trainer.forward([datum(ids, target_tokens=targets[:, column])], "cross_entropy").result()
        require_close(found[:, column], logprobs(alone)[0], f"target {column}", relative=1e-5)


@check()
def probabilities_add_up(env):
    """The probabilities of a position sum to one over the vocabulary."""
    ids = text("User: What is 27 + 58?")
    everything = np.tile(np.arange(260), (len(ids) - 1, 1))
    done = env.trainer().forward([datum(ids, target_tokens=everything)], "cross_entropy").result()
    total = np.exp(logprobs(done)[0].astype(np.float64)).sum(axis=1)
    require_close(total, np.ones(len(ids) - 1), "the sum of the probabilities", relative=1e-5)


@check("loss importance_sampling")
def loss_importance_sampling(env):
    loss_holds(env, "importance_sampling")


@check("loss ppo")
def loss_ppo(env):
    loss_holds(env, "ppo")


@check("loss ppo: clip thresholds")
def loss_ppo_thresholds(env):
    loss_holds(env, "ppo", {"clip_low_threshold": 0.95, "clip_high_threshold": 1.4})


@check("loss ppo: thresholds per token")
def loss_ppo_thresholds_per_token(env):
    loss_holds(env, "ppo", per_token={"clip_low_threshold": (0.5, 0.95), "clip_high_threshold": (1.05, 1.5)})


@check("loss cispo")
def loss_cispo(env):
    loss_holds(env, "cispo")


@check("loss cispo: clip thresholds")
def loss_cispo_thresholds(env):
    loss_holds(env, "cispo", {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2})


@check("loss gspo", needs="newer_losses")
def loss_gspo(env):
    loss_holds(env, "gspo")


@check("loss gspo: clip thresholds and mask", needs="newer_losses")
def loss_gspo_thresholds(env):
    config = {"clip_low_threshold": 0.95, "clip_high_threshold": 1.4}
    loss_holds(env, "gspo", config, per_token={"sequence_ratio_mask": (0, 1)})


@check("loss dro")
def loss_dro(env):
    loss_holds(env, "dro")


@check("loss dro: beta")
def loss_dro_beta(env):
    loss_holds(env, "dro", {"beta": 0.7})


def _plain_gradient(env, trainer_of, data, name) -> np.ndarray:
    """Return the gradient of a loss by the parameters, measured from a step."""
    trainer = trainer_of()
    before = env.parameters(trainer).astype(np.float64)
    trainer.forward_backward(data, name).result()
    trainer.optim_step(plain_steps(1.0)).result()
    return before - env.parameters(trainer)


@check()
def gradients_are_finite_differences(env):
    """A loss changes along a direction as its gradient says.

    The direction is the gradient of another loss on other data, both ways, which is how a client can
    move a model wherever it wants to. Two step sizes, extrapolated, leave an error of the fourth order.
    cispo is left out: its ratio counts as a constant.
    """

    def trained():
        trainer = env.trainer()
        train(trainer, steps=3)
        return trainer

    ids = text("User: What is 44 + 8?\n\nAssistant: 52")
    pull = np.linspace(-1, 1, len(ids) - 1)
    aside = _plain_gradient(env, trained, [datum(ids, weights=pull)], "cross_entropy")

    def change(data, name: str, step: float) -> float:
        values = []
        for sign in (1, -1):
            moved = trained()
            moved.forward_backward([datum(ids, weights=sign * pull)], "cross_entropy").result()
            moved.optim_step(plain_steps(step)).result()
            values.append(moved.forward(data, name).result().metrics["loss:sum"])
        return (values[1] - values[0]) / (2 * step)

    near = 7e-4 / float(np.linalg.norm(aside))
    for name in ("cross_entropy", "importance_sampling", "dro", "ppo"):
        data, _, _ = batch_for(name, trained())
        gradient = _plain_gradient(env, trained, data, name)
        slope = (4 * change(data, name, near) - change(data, name, 2 * near)) / 3
        require_close(slope, gradient @ aside, f"the change of {name} along another gradient", relative=1e-3)


@check("gradient accumulation")
def gradients_accumulate(env):
    trainer, twin = env.trainer(), env.trainer()
    one, two = datum(tokens(15, seed=1)), datum(tokens(21, seed=2))
    trainer.forward_backward([one], "cross_entropy").result()
    trainer.forward([two, two], "cross_entropy").result()  # adds nothing
    trainer.forward_backward([two], "cross_entropy").result()
    twin.forward_backward([one, two], "cross_entropy").result()
    require_same_step(env, trainer, twin, "the accumulated gradient")


@check("gradients are cleared by a step")
def gradients_are_cleared(env):
    trainer, twin = env.trainer(), env.trainer()
    for client in (trainer, twin):
        client.forward_backward([datum(tokens(15))], "cross_entropy").result()
        client.optim_step(plain_steps(1e-3)).result()
    before = observe(trainer)
    trainer.optim_step(plain_steps(1e-3)).result()
    require_close(observe(trainer), before, "a step without a gradient", relative=1e-6)


@check("what is malformed is refused")
def malformed_data_is_rejected(env):
    """Malformed data is rejected as the caller's error, and adds nothing to the gradient."""
    trainer, twin = env.trainer(), env.trainer()
    ids = tokens(10)
    short, nine = np.ones(8), np.ones(9)
    cases = {
        "weights of another length": ("cross_entropy", datum(ids, weights=short), None),
        "a missing input": ("importance_sampling", datum(ids, logprobs=nine), None),
        "an unknown setting": ("dro", datum(ids, logprobs=nine, advantages=nine), {"no_such_setting": 1.0}),
        "a token beyond the vocabulary": ("cross_entropy", datum([10**7, *ids]), None),
        "not a number": ("cross_entropy", datum(ids, weights=np.full(9, np.nan)), None),
    }
    for what, (name, wrong, config) in cases.items():
        try:
            trainer.forward_backward([datum(ids), wrong], name, config).result()
        except tinker.RequestFailedError as error:
            require_equal(error.category, types.RequestErrorCategory.User, f"the category for {what}")
        else:
            require(False, f"{what} is accepted")
    for client in (trainer, twin):
        client.forward_backward([datum(ids)], "cross_entropy").result()
    require_same_step(env, trainer, twin, "the gradient after refusals")


@check(needs="newer_losses")
def losses_without_a_formula_are_rejected(env):
    """stable_reinforce has no published formula, so the server must reject it."""
    ids, nine = tokens(10), np.ones(9)
    data = [datum(ids, logprobs=-nine, advantages=nine)]
    error = require_raises(
        tinker.RequestFailedError, lambda: env.trainer().forward(data, "stable_reinforce").result()
    )
    require("stable_reinforce" in str(error), f"the error does not name the loss: {error}")


def _squares(data, found):
    """The loss is half the square of each log-probability; its derivative is the log-probability."""
    total = sum((own * own * 0.5).sum() for own in found)
    return total, {"datums": float(len(data))}


@check("forward_backward_custom")
async def custom_loss(env):
    data = [datum(ids) for ids in (tokens(11), tokens(19))]
    with torchlike.installed():
        for asynchronous in (False, True):
            trainer, twin = env.trainer(), env.trainer()
            if asynchronous:
                done = await awaited(trainer.forward_backward_custom_async(data, _squares))
            else:
                done = await trainer.forward_backward_custom(data, _squares)
            found = logprobs(trainer.forward(data, "cross_entropy").result())
            require_equal(done.metrics["datums"], 2.0, "the metric of the loss")
            if "surrogate_loss:sum" in done.metrics:
                value = sum(float((own.astype(np.float64) ** 2).sum()) / 2 for own in found)
                require_close(done.metrics["loss:sum"], value, "the loss", relative=1e-4)
            linear = [datum(ids, weights=-own) for ids, own in zip((tokens(11), tokens(19)), found, strict=True)]
            twin.forward_backward(linear, "cross_entropy").result()
            require_same_step(env, trainer, twin, "the gradient of a custom loss")


@check("a batch decides nothing for a datum")
def datums_are_independent(env):
    trainer = env.trainer()
    train(trainer)
    ids = tokens(18, seed=4)
    alone = observe(trainer, ids)
    others = [datum(tokens(length, seed=length)) for length in (3, 40, 7)]
    among = logprobs(trainer.forward([*others, datum(ids)], "cross_entropy").result())
    require_close(among[-1], alone, "log-probabilities among other datums", relative=1e-6)
    require_different(among[0], among[2][: among[0].size], "other datums")
