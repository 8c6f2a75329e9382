# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The background work of the SDK: heartbeats and telemetry. The checks wait for it, so they run last."""

import time

from harness import check, require
from environment import session_of


@check()
def telemetry_objects(env):
    clients = (env.service, env.trainer(), env.base_sampler(), env.rest)
    for client in clients:
        require(client.get_telemetry() is not None, f"{type(client).__name__} has no telemetry")


@check()
def heartbeats_and_telemetry_arrive(env):
    """The SDK sends both every ten seconds."""
    session = session_of(env.trainer())
    deadline = time.monotonic() + 120
    while not {"session_heartbeat", "telemetry"} <= set(env.simulator.counts()["calls"]):
        require(time.monotonic() < deadline, "no heartbeat or no telemetry within two minutes")
        time.sleep(0.2)
    require(session in env.rest.list_sessions(limit=100).result().sessions, "the session is not listed")
