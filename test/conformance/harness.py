# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks, and the assertions that they make about numbers and errors."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


class Differs(AssertionError):
    """The response of the server violates the API."""


class Refused(Exception):
    """A request was rejected or failed, as reported by something other than the SDK."""


class Untested(Exception):
    """The check cannot run here, for a reason that does not concern the server."""


@dataclasses.dataclass(frozen=True)
class Check:
    """One check. It receives an Environment and raises an error if it fails."""

    name: str
    run: Callable[[Any], Any]
    # The name of the check in the support table; None if the check needs tinkersim.
    feature: str | None
    # The trait of the SDK that the check needs; see versions.py.
    needs: str | None


CHECKS: list[Check] = []


def check(feature: str | None = None, *, needs: str | None = None):
    """Register the decorated function, sync or async, as a check under its own name."""

    def register(function):
        CHECKS.append(Check(function.__name__, function, feature, needs))
        return function

    return register


def require(condition: bool, message: str) -> None:
    """Raise Differs with the message unless the condition holds."""
    if not condition:
        raise Differs(message)


def require_equal(got: Any, want: Any, what: str) -> None:
    """Raise Differs unless the two are the same; arrays to the bit, not-a-number included."""
    if isinstance(got, np.ndarray) or isinstance(want, np.ndarray):
        got, want = np.asarray(got), np.asarray(want)
        same = got.shape == want.shape and np.array_equal(got, want, equal_nan=got.dtype.kind == "f")
    else:
        same = got == want
    require(same, f"{what} is {_short(got)}, want {_short(want)}")


def require_different(got: Any, other: Any, what: str) -> None:
    """Raise Differs if the two arrays are the same to the bit."""
    require(not np.array_equal(np.asarray(got), np.asarray(other)), f"{what}: the same, want a difference")


def require_close(got: Any, want: Any, what: str, relative: float = 1e-5, absolute: float = 0.0) -> None:
    """Raise Differs unless |got - want| <= absolute + relative * max|want| everywhere.

    The bound is relative to the largest element, as rounding errors of a sum are.
    """
    got, want = np.asarray(got, dtype=np.float64), np.asarray(want, dtype=np.float64)
    require_equal(got.shape, want.shape, f"the shape of {what}")
    require(bool(np.isfinite(got).all()), f"{what} is not finite: {_short(got)}")
    if want.size == 0:
        return
    bound = absolute + relative * np.abs(want).max()
    error = np.abs(got - want)
    at = np.unravel_index(error.argmax(), error.shape)
    require(
        error[at] <= bound,
        f"{what} is {got[at]:.9g}, want {want[at]:.9g} (off by {error[at]:.3g} at {tuple(map(int, at))}, "
        f"allowed are {bound:.3g})",
    )


def require_raises(kinds: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], Any]) -> Any:
    """Return the error that the call raises, which must be one of the kinds."""
    try:
        got = call()
    except kinds as error:
        return error
    raise Differs(f"nothing was raised, want {kinds}; the call returned {_short(got)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "..."
