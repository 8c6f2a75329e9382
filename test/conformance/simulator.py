# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""What only tinkersim has: its admin endpoints, and the parameters of a model."""

import contextlib
import io
import json
import tarfile
import time
import urllib.request

import numpy as np

from harness import require

# The parts of tinkersim's adapter file around the parameters.
_MAGIC = b"tinkersim state 1\n"
_HEAD = len(_MAGIC) + 32 + 19  # digest of the base model; flags, rank, seed, steps
_TAIL = 32  # checksum


class Simulator:
    """A tinkersim that was started with --admin."""

    def __init__(self, url: str, key: str):
        self._url, self._key = url, key

    def request(self, method: str, path: str, body: object = None) -> bytes:
        """Send a request, follow redirects and return the body of the response."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data=data, method=method)
        request.add_unredirected_header("X-API-Key", self._key)
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read()

    def counts(self) -> dict:
        """Return how often each endpoint was called and each operation executed."""
        return json.loads(self.request("GET", "/admin/busy"))

    @contextlib.contextmanager
    def faults(self, *rules: dict):
        """Install fault rules for the body of a with statement. Each of them must have been applied by its end."""
        self.request("POST", "/admin/faults", {"faults": list(rules)})
        try:
            yield self
            for rule in self._rules():
                require(rule["hits"] > 0, f"the fault {rule} was never applied")
        finally:
            self.request("DELETE", "/admin/faults")

    def _rules(self) -> list[dict]:
        return json.loads(self.request("GET", "/admin/faults"))["faults"]

    def release(self, rule: str) -> None:
        """Release the requests that a rule holds."""
        self.request("POST", f"/admin/faults/{rule}/release")

    def await_holding(self, rule: str, patience: float = 120.0) -> None:
        """Wait until a rule holds a request."""
        deadline = time.monotonic() + patience
        while not any(state["id"] == rule and state["holding"] for state in self._rules()):
            require(time.monotonic() < deadline, f"the rule {rule} held no request within {patience} s")
            time.sleep(0.02)

    def await_calls(self, endpoint: str, before: dict, patience: float = 120.0) -> None:
        """Wait until an endpoint was called more often than in earlier counts."""
        deadline = time.monotonic() + patience
        while self.counts()["calls"].get(endpoint, 0) <= before["calls"].get(endpoint, 0):
            require(time.monotonic() < deadline, f"nobody called {endpoint} within {patience} s")
            time.sleep(0.02)

    def expire(self, path: str) -> None:
        """Expire a checkpoint."""
        self.request("POST", "/admin/checkpoints", {"path": f"^{path}$", "do": "expire"})

    def parameters(self, path: str) -> np.ndarray:
        """Return the LoRA parameters of a training state as a flat vector of float32."""
        run, kind, name = path.removeprefix("tinker://").split("/")
        archive = self.request("GET", f"/api/v1/training_runs/{run}/checkpoints/{kind}/{name}/archive")
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            data = files.extractfile("adapter_model.bin").read()
        require(data.startswith(_MAGIC), f"the archive of {path} does not hold an adapter of tinkersim")
        return np.frombuffer(data[_HEAD:-_TAIL], dtype="<f4")
