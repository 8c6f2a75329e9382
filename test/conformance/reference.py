# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the Tinker API in NumPy, in double precision and from the published formulas.

Shapes: a datum has N targets; log-probabilities, and whatever goes with them, have shape (N,), or
(N, K) for cross entropy with K targets a position. A loss is the sum over all targets.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

Arrays = Mapping[str, np.ndarray]

DEFAULTS = {
    "cross_entropy": {},
    "importance_sampling": {},
    "ppo": {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2},
    "cispo": {"clip_low_threshold": 0.0, "clip_high_threshold": 4.0},
    "gspo": {"clip_low_threshold": 0.8, "clip_high_threshold": 1.2},
    "dro": {"beta": 0.05},
}


def loss(name: str, logprobs: np.ndarray, inputs: Arrays, config: Mapping[str, float] | None = None):
    """Return the loss of a datum and its derivatives by the log-probabilities."""
    settings = {**DEFAULTS[name], **(config or {})}
    own = np.asarray(logprobs, dtype=np.float64)
    if name == "cross_entropy":
        weights = np.asarray(inputs.get("weights", np.ones_like(own)), dtype=np.float64)
        return float(-(weights * own).sum()), -weights
    sampled = np.asarray(inputs["logprobs"], dtype=np.float64)
    advantages = np.asarray(inputs["advantages"], dtype=np.float64)
    if name == "dro":
        gap = own - sampled
        value = advantages * own - settings["beta"] / 2 * gap**2
        return float(-value.sum()), -(advantages - settings["beta"] * gap)
    ratio = np.exp(own - sampled)
    if name == "gspo":
        mask = np.asarray(inputs.get("sequence_ratio_mask", np.ones_like(own)), dtype=np.float64)
        ratio = np.full_like(own, np.exp((mask * (own - sampled)).sum() / mask.sum()))
    if name == "importance_sampling":
        return float(-(ratio * advantages).sum()), -ratio * advantages
    low = np.asarray(inputs.get("clip_low_threshold", settings["clip_low_threshold"]), dtype=np.float64)
    high = np.asarray(inputs.get("clip_high_threshold", settings["clip_high_threshold"]), dtype=np.float64)
    clipped = np.minimum(np.maximum(ratio, low), high)
    if name == "cispo":
        return float(-(clipped * advantages * own).sum()), -clipped * advantages
    plain, bounded = ratio * advantages, clipped * advantages
    return float(-np.minimum(plain, bounded).sum()), np.where(plain <= bounded, -plain, 0.0)


@dataclasses.dataclass
class AdamW:
    """Adam with decoupled weight decay and a bound on the norm of the gradient."""

    parameters: np.ndarray
    first: np.ndarray | float = 0.0
    second: np.ndarray | float = 0.0
    steps: int = 0

    def step(
        self,
        gradient: np.ndarray,
        learning_rate: float,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        grad_clip_norm: float,
    ) -> np.ndarray:
        """Make one step and return the new parameters."""
        norm = np.sqrt((gradient**2).sum())
        if 0 < grad_clip_norm < norm:
            gradient = gradient * (grad_clip_norm / norm)
        self.steps += 1
        self.first = beta1 * self.first + (1 - beta1) * gradient
        self.second = beta2 * self.second + (1 - beta2) * gradient**2
        direction = (self.first / (1 - beta1**self.steps)) / (np.sqrt(self.second / (1 - beta2**self.steps)) + eps)
        self.parameters = self.parameters - learning_rate * (direction + weight_decay * self.parameters)
        return self.parameters
