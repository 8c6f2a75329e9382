# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Records which public methods of the SDK's clients the checks call."""

import functools
import inspect
import pathlib
import sys

import tinker
from tinker.lib.public_interfaces.rest_client import RestClient

CLIENTS = (tinker.ServiceClient, tinker.TrainingClient, tinker.SamplingClient, RestClient)

# Public methods that no check calls, and the reasons.
EXCEPTIONS = {
    "ServiceClient.holder": "internals of the SDK, kept for old callers; the suite reads the session's id there",
    "SamplingClient.create": "what ServiceClient.create_sampling_client is made of; takes the SDK's internals",
    "SamplingClient.on_queue_state_change": "the SDK calls it itself; the check of paused states listens there",
    "ServiceClient.create_custom_loss": "traces with torch.fx, which the stand-in for torch cannot; "
    "losses made with it run on the client by forward_backward_custom, which is checked",
}

_HERE = str(pathlib.Path(__file__).resolve().parent)


class Coverage:
    """Records which check calls each public method of the clients."""

    def __init__(self):
        self.current = ""  # the check that runs
        self._seen: dict[str, set[str]] = {}
        self._passed: set[str] = set()

    def watch(self) -> None:
        """Wrap every public method."""
        for client in CLIENTS:
            for name in public_names(client):
                member = inspect.getattr_static(client, name)
                if isinstance(member, staticmethod):
                    setattr(client, name, staticmethod(self._watched(client, name, member.__func__)))
                elif inspect.isfunction(member):
                    setattr(client, name, self._watched(client, name, member))

    def _watched(self, client, name, method):
        call = f"{client.__name__}.{name}"

        @functools.wraps(method)
        def watcher(*args, **kwargs):
            if sys._getframe(1).f_code.co_filename.startswith(_HERE):  # not the SDK calling itself
                self._seen.setdefault(call, set()).add(self.current)
            return method(*args, **kwargs)

        return watcher

    def passed(self, check: str) -> None:
        """Record that a check passed: only such checks count as coverage."""
        self._passed.add(check)

    def table(self) -> list[tuple[str, str]]:
        """Return a row for every public method: the call, and its checks or the reason for its exception."""
        rows = []
        for client in CLIENTS:
            for name in public_names(client):
                call = f"{client.__name__}.{name}"
                checks = sorted(self._seen.get(call, set()) & self._passed)
                if checks:
                    rows.append((call, ", ".join(checks)))
                elif call in EXCEPTIONS:
                    rows.append((call, f"not called: {EXCEPTIONS[call]}"))
                else:
                    rows.append((call, ""))
        return rows


def public_names(client: type) -> list[str]:
    """Return the names of a client's public methods and properties."""
    return [name for name, _ in inspect.getmembers_static(client) if not name.startswith("_")]
