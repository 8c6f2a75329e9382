# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""What the SDK does by itself: heartbeats and telemetry. It waits for them, so it comes last."""

import time

from harness import check, require
from lab import session_of


@check()
def telemetry_objects(lab):
    clients = (lab.service, lab.trainer(), lab.base_sampler(), lab.rest)
    for client in clients:
        require(client.get_telemetry() is not None, f"{type(client).__name__} has no telemetry")


@check()
def heartbeats_and_telemetry_arrive(lab):
    """The SDK beats and sends every ten seconds."""
    session = session_of(lab.trainer())
    deadline = time.monotonic() + 120
    while not {"session_heartbeat", "telemetry"} <= set(lab.simulator.counts()["calls"]):
        require(time.monotonic() < deadline, "no heartbeat or no telemetry within two minutes")
        time.sleep(0.2)
    require(session in lab.rest.list_sessions(limit=100).result().sessions, "the session is not listed")
