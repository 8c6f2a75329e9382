# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""A run: what it has reached, and what can be done with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

from . import history
from .errors import Error, NotFound, RunFailed, WaitTimeout
from .manifest import GROUP, Object

if TYPE_CHECKING:
    import pandas

    from .client import Client

# Seconds between two looks at a run that is waited for.
LOOK_SECONDS = 2.0
# Labels of a run of a sweep that have its values begin with this.
LABEL_VALUE = "sweep." + GROUP + "/"
ANNOTATION_HELD = GROUP + "/sweep-held"


class Run:
    """A TrainingRun as it was when it was read last; refresh reads it again."""

    def __init__(self, client: Client, content: Object) -> None:
        self.client = client
        self.object = content

    def __repr__(self) -> str:
        return f"Run({self.name!r}, state={self.state!r}, step={self.step})"

    @property
    def name(self) -> str:
        """The name of the run."""
        return str(self.object["metadata"]["name"])

    @property
    def uid(self) -> str:
        """What tells the run from another one that had its name earlier."""
        return str(self.object["metadata"]["uid"])

    @property
    def spec(self) -> Object:
        """What the run is to do."""
        spec: Object = self.object.get("spec") or {}
        return spec

    @property
    def status(self) -> Object:
        """What the manager says of the run."""
        status: Object = self.object.get("status") or {}
        return status

    @property
    def state(self) -> str:
        """The state that kubectl get shows, such as Training; empty until a manager has seen the run."""
        return str(self.status.get("state", ""))

    @property
    def step(self) -> int:
        """How many steps are committed."""
        return int(self.status.get("step") or 0)

    @property
    def values(self) -> dict[str, str]:
        """The values that a sweep or search gave the run, by the names of their fields."""
        labels = self.object["metadata"].get("labels") or {}
        return {key.removeprefix(LABEL_VALUE): value for key, value in labels.items() if key.startswith(LABEL_VALUE)}

    def condition(self, kind: str) -> Object | None:
        """Returns a condition with its status, reason and message, or None while the run lacks it."""
        return next((c for c in self.status.get("conditions") or [] if c["type"] == kind), None)

    def is_true(self, kind: str) -> bool:
        """Says that a condition is True."""
        found = self.condition(kind)
        return found is not None and found["status"] == "True"

    def refresh(self) -> Run:
        """Reads the run again, and returns it. A run that was deleted and created again is an error."""
        found = self.client.read(self.name)
        if found["metadata"]["uid"] != self.uid:
            raise NotFound(f"run {self.name!r} was deleted, and another one has its name: get it with Client.get")
        self.object = found
        return self

    def wait(self, condition: str = "Complete", *, timeout: float | None = None) -> Run:
        """Waits until a condition is True, such as Complete, Suspended or Accepted, and returns the run.

        It raises RunFailed where the run ends before, and WaitTimeout after so many seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while not self.refresh().is_true(condition):
            if self.is_true("Failed"):
                raise RunFailed(f"run {self.name!r} has failed: {self._message('Failed')}: kubectl tinker why "
                                f"{self.name} explains it, and kubectl tinker retry {self.name} tries again")
            if self.is_true("Complete"):
                raise RunFailed(f"run {self.name!r} is complete, and {condition} is not True: wait for another "
                                "condition")
            if end is not None and time.monotonic() >= end:
                state = self.state or "not seen by a manager yet"
                raise WaitTimeout(f"run {self.name!r} is {state} after {timeout} s, and {condition} is not True: "
                                  f"{self._message('Stalled', 'Accepted', 'Progressing')}: "
                                  f"kubectl tinker why {self.name} says what it waits for")
            time.sleep(LOOK_SECONDS if end is None else max(0.0, min(LOOK_SECONDS, end - time.monotonic())))
        return self

    def rows(self) -> list[history.Row]:
        """Returns a dict for each step: step, attempt, time, lineage, and values by the names of metrics.

        A run of more than 512 steps has evenly spaced ones.
        """
        return history.read(self.name, self.uid, self.client.config_map)

    def metrics(self) -> pandas.DataFrame:
        """Returns the metrics of each step as a DataFrame: a column for each, indexed by step."""
        return _frame(self.rows())

    def evaluations(self) -> pandas.DataFrame:
        """Returns the metrics of held-out tasks as a DataFrame, with a row for each evaluation, indexed by step."""
        rows = []
        for row in self.rows():
            measured = {metric: value for metric, value in row.items() if metric.startswith("test/")}
            if measured:
                rows.append({"step": row["step"], **measured})
        return _frame(rows)

    def transcripts(self, step: int | None = None, *, evaluation: bool = False, failed: bool = False) -> Object:
        """Returns the conversations of a step with their rewards, or those of an evaluation, as kubectl tinker
        transcripts -o json prints them: {"step": ..., "groups": [{"episodes": [...]}]}.

        The plugin kubectl-tinker must be in PATH: it starts a pod that reads the run's artifacts.
        """
        plugin = shutil.which("kubectl-tinker")
        if plugin is None:
            raise Error("transcripts are read by the plugin kubectl-tinker, which is not in PATH: install it as "
                        "docs/observing.md says")
        command = [plugin, "transcripts", self.name, "-o", "json", *self.client.plugin_arguments()]
        if step is not None:
            command.append(f"--step={step}")
        if evaluation:
            command.append("--eval")
        if failed:
            command.append("--failed")
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=os.environ, check=False)
        if done.returncode != 0:
            raise Error(done.stderr.strip().removeprefix("kubectl tinker transcripts: "))
        try:
            found: Object = json.loads(done.stdout)
        except ValueError as err:
            raise Error(f"{plugin} printed no JSON: {err}: install the plugin of the operator's version") from err
        return found

    def suspend(self) -> Run:
        """Stops the run at a saved state and deletes its pods; wait("Suspended") waits until it has stopped."""
        if self.refresh().is_true("Complete") or self.is_true("Failed"):
            raise Error(f"run {self.name!r} is over ({self.state}): there is nothing to suspend")
        return self._patch({"spec": {"suspend": True}})

    def resume(self) -> Run:
        """Continues a suspended run from its last saved state."""
        found = self.refresh().condition("Suspended")
        if not self.spec.get("suspend") and found and found["status"] == "True" and found["reason"] == "BudgetReached":
            raise Error(f"run {self.name!r} is not suspended by its spec: {found['message']}")
        return self._patch({"spec": {"suspend": False}, "metadata": {"annotations": {ANNOTATION_HELD: None}}})

    def delete(self) -> None:
        """Deletes the run with its pods. Its checkpoints stay at the endpoint until they expire."""
        self.client.delete(self.name, self.uid)

    def _patch(self, change: Object) -> Run:
        self.object = self.client.patch(self.name, change)
        return self

    def _message(self, *kinds: str) -> str:
        """Returns the message of the first of these conditions that says why a run does not go on."""
        for kind in kinds:
            found = self.condition(kind)
            if found and (found["status"] == "True") == (kind in ("Failed", "Stalled")):
                return f"{found['reason']}: {found['message'].rstrip('.')}"
        return "it makes progress" if self.state else "check that the operator runs"


def _frame(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as err:
        raise Error("pandas is not installed, which DataFrames need: pip install pandas, or use Run.rows()") from err
    frame = pandas.DataFrame(rows, columns=None if rows else ["step"])
    return frame.set_index("step")
