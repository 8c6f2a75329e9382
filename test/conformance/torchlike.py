# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the few names of torch that forward_backward_custom uses.

The package index has torch for CUDA only, six gigabytes with its libraries, which is too much for a
suite that runs on every change. What the check concerns is the SDK's own way of turning a custom loss
into requests, and that runs unmodified: it makes leaf tensors of log-probabilities, hands them to the
loss, calls backward on what it returns and sends the leaves' gradients. Tensors here can do what that
and the check's loss need, and no more. With torch installed (`make conformance-cookbook` has it) the
same check uses torch.
"""

import contextlib
import importlib

import numpy as np

try:
    import torch as _torch
except ImportError:
    _torch = None


class Tensor:
    """An array that remembers how to pass a gradient on to what it was computed from."""

    def __init__(self, data, origin=()):
        self._data = np.asarray(data, dtype=np.float64)
        self._origin = origin  # pairs of a tensor and the function from our gradient to its
        self.grad = None

    def reshape(self, *shape):
        return Tensor(self._data.reshape(*shape))

    def clone(self):
        return Tensor(self._data.copy())

    detach = clone

    def requires_grad_(self, _wanted=True):
        return self

    def item(self):
        return self._data.item()

    def sum(self):
        shape = self._data.shape
        return Tensor(self._data.sum(), [(self, lambda g: np.broadcast_to(g, shape))])

    def __add__(self, other):
        if isinstance(other, Tensor):
            return Tensor(self._data + other._data, [(self, lambda g: g), (other, lambda g: g)])
        return Tensor(self._data + other, [(self, lambda g: g)])

    __radd__ = __add__

    def __mul__(self, other):
        if isinstance(other, Tensor):
            return Tensor(
                self._data * other._data,
                [(self, lambda g: g * other._data), (other, lambda g: g * self._data)],
            )
        return Tensor(self._data * other, [(self, lambda g: g * other)])

    __rmul__ = __mul__

    def backward(self):
        self._receive(np.ones_like(self._data))

    def _receive(self, gradient):
        if self._origin:
            for tensor, pass_on in self._origin:
                tensor._receive(pass_on(gradient))
            return
        gradient = gradient.astype(np.float32)
        self.grad = gradient if self.grad is None else self.grad + gradient


def tensor(data):
    """Make a leaf, as torch.tensor does."""
    return Tensor(data)


@contextlib.contextmanager
def installed():
    """Let the SDK find torch, or else this module, where its training client looks for it."""
    client = importlib.import_module("tinker.lib.public_interfaces.training_client")
    before = client.torch
    client.torch = _torch or importlib.import_module(__name__)
    try:
        yield
    finally:
        client.torch = before
