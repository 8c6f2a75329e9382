# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""optim_step and each field of AdamParams."""

import numpy as np
import tinker
from tinker import types

import reference
from harness import check, require, require_close, require_different, require_equal, require_raises
from environment import datum, observe, plain_steps, tokens, train

FIELDS = ("learning_rate", "beta1", "beta2", "eps", "weight_decay", "grad_clip_norm")

# Settings of four successive steps; each differs from the defaults, and from step to step.
STEPS = (
    (3e-3, 0.9, 0.95, 1e-8, 0.0, 0.0),
    (1e-2, 0.8, 0.99, 1e-3, 0.1, 0.0),
    (5e-3, 0.5, 0.9, 1e-4, 0.0, 0.5),
    (2e-3, 0.95, 0.999, 1e-2, 0.3, 1e-2),
)


def settings(step: tuple[float, ...]) -> dict[str, float]:
    return dict(zip(FIELDS, step, strict=True))


@check()
def adam_is_adam(env):
    """Four steps result in the parameters that NumPy computes from the gradients of a second model."""
    trainer = env.trainer()
    adam = reference.AdamW(env.parameters(trainer).astype(np.float64))
    for number, step in enumerate(STEPS):
        data = [datum(tokens(20, seed=number))]
        path = trainer.save_state(env.name("adam")).result().path
        twin = env.service.create_training_client_from_state(path)
        twin = twin.result() if hasattr(twin, "result") else twin
        before = env.parameters(twin).astype(np.float64)
        for client in (trainer, twin):
            client.forward_backward(data, "cross_entropy").result()
        twin.optim_step(plain_steps(1.0)).result()
        gradient = before - env.parameters(twin)
        done = trainer.optim_step(types.AdamParams(**settings(step))).result()
        norm = float(np.sqrt((gradient**2).sum()))
        require_close(done.metrics["unclipped_grad_l2:mean"], norm, f"the norm at step {number}", relative=1e-4)
        wanted = adam.step(gradient, **settings(step))
        moved = env.parameters(trainer) - before
        require_close(moved, wanted - before, f"step {number} of Adam", relative=5e-3, absolute=1e-7)
        adam.parameters = env.parameters(trainer).astype(np.float64)  # errors must not add up


def _move(env, step: dict[str, float]) -> float:
    """Return how far the third step of a model moves log-probabilities."""
    trainer = env.trainer()
    train(trainer, steps=2)
    before = observe(trainer)
    trainer.forward_backward([datum(tokens(20))], "cross_entropy").result()
    trainer.optim_step(types.AdamParams(**step)).result()
    return float(np.abs(observe(trainer) - before).max())


@check("Adam: learning_rate")
def adam_learning_rate(env):
    require_equal(_move(env, {"learning_rate": 0.0}) < 1e-6, True, "that a rate of zero moves nothing")
    require(
        _move(env, {"learning_rate": 1e-2}) > 2 * _move(env, {"learning_rate": 1e-3}), "a larger rate moves no further"
    )


@check("Adam: beta1")
def adam_beta1(env):
    """Momentum continues without a gradient, and is zero without beta1."""
    moves = {}
    for beta in (0.0, 0.9):
        trainer = env.trainer()
        trainer.forward_backward([datum(tokens(20))], "cross_entropy").result()
        trainer.optim_step(types.AdamParams(learning_rate=1e-2, beta1=beta, eps=1e-6)).result()
        before = observe(trainer)
        trainer.optim_step(types.AdamParams(learning_rate=1e-2, beta1=beta, eps=1e-6)).result()
        moves[beta] = float(np.abs(observe(trainer) - before).max())
    require(moves[0.0] < 1e-4, f"without beta1 a step without a gradient moves by {moves[0.0]:.3g}")
    require(moves[0.9] > 1e-3, f"with beta1 a step without a gradient moves by {moves[0.9]:.3g} only")


@check("Adam: beta2")
def adam_beta2(env):
    """After a large gradient, a small one moves the model further if beta2 is small."""
    moves = {}
    for beta in (0.0, 0.999):
        trainer = env.trainer()
        for weight, rate in ((10.0, 0.0), (0.1, 1e-2)):
            before = observe(trainer)
            data = [datum(tokens(20), weights=np.full(19, weight))]
            trainer.forward_backward(data, "cross_entropy").result()
            trainer.optim_step(types.AdamParams(learning_rate=rate, beta1=0.0, beta2=beta)).result()
        moves[beta] = float(np.abs(observe(trainer) - before).max())
    require(moves[0.0] > 3 * moves[0.999], f"beta2 makes no difference: {moves}")


@check("Adam: eps")
def adam_eps(env):
    far, near = (_move(env, {"learning_rate": 1e-3, "eps": eps}) for eps in (1e-8, 1e8))
    require(near < far / 100, f"a huge eps lets the step move by {near:.3g}, a tiny one by {far:.3g}")


@check("Adam: weight_decay")
def adam_weight_decay(env):
    """Scaling the parameters to a tenth scales the product of two matrices to a hundredth."""
    trainer = env.trainer()
    base = observe(trainer)
    train(trainer, steps=3)
    before = float(np.abs(observe(trainer) - base).max())
    trainer.optim_step(types.AdamParams(learning_rate=0.9, weight_decay=1.0, beta1=0.0, beta2=0.0, eps=1e8)).result()
    after = float(np.abs(observe(trainer) - base).max())
    require(after < before / 5, f"the adapter's effect went from {before:.3g} to {after:.3g} only")


@check("Adam: grad_clip_norm")
def adam_grad_clip_norm(env):
    moves = []
    for norm in (0.0, 1e-3):
        trainer = env.trainer()
        before = observe(trainer)
        trainer.forward_backward([datum(tokens(20))], "cross_entropy").result()
        step = plain_steps(1e-2).model_copy(update={"grad_clip_norm": norm})
        trainer.optim_step(step).result()
        moves.append(float(np.abs(observe(trainer) - before).max()))
    require(moves[0] > 1e-3, f"a plain step moves by {moves[0]:.3g} only")
    require(moves[1] < moves[0] / 10, f"a clipped step moves by {moves[1]:.3g}, an unclipped one by {moves[0]:.3g}")


@check()
def adam_settings_are_rejected(env):
    for field, value in (
        ("learning_rate", -1.0),
        ("beta1", 1.0),
        ("beta2", -0.1),
        ("eps", -1.0),
        ("grad_clip_norm", -2.0),
    ):
        trainer = env.trainer()
        params = types.AdamParams(**{field: value})
        error = require_raises(tinker.RequestFailedError, lambda: trainer.optim_step(params).result())
        require_equal(error.category, types.RequestErrorCategory.User, f"the category for {field}")


@check("a step without a gradient moves nothing")
def a_step_without_a_gradient(env):
    trainer = env.trainer()
    before = observe(trainer)
    trainer.optim_step(types.AdamParams(learning_rate=1e-2)).result()
    require_close(observe(trainer), before, "a step without a gradient", relative=1e-6)
    train(trainer)
    require_different(observe(trainer), before, "a step with one")
