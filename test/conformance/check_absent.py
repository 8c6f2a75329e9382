# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Features of the hosted service that tinkersim lacks: it must respond with 404 at once."""

import tinker
from tinker import types
from tinker.lib.public_interfaces.rest_client import RestClient

from harness import check, require, require_equal, require_raises
from environment import awaited, session_of


async def _require_absent(call, error: type[Exception] = tinker.NotFoundError) -> None:
    """Check that the call, sync or async, ends with a 404, or with another error."""
    try:
        got = await awaited(call())
    except error:
        return
    require(False, f"want a 404; the call returned {got!r:.200}")


@check()
async def accounts_are_absent(env):
    rest, session = env.rest, session_of(env.trainer())
    await _require_absent(lambda: rest.get_audit_log().result())
    error = tinker.NotFoundError if env.traits["audit_async"] else AssertionError
    await _require_absent(lambda: rest.get_audit_log_async(), error)
    await _require_absent(lambda: rest.export_session_trace(session).result())
    await _require_absent(lambda: rest.export_session_trace_async(session))


@check(needs="storage_usage")
async def storage_usage_is_absent(env):
    await _require_absent(lambda: env.rest.get_current_checkpoint_storage_usage().result())
    await _require_absent(lambda: env.rest.get_current_checkpoint_storage_usage_async())


@check(needs="search")
async def search_is_absent(env):
    await _require_absent(lambda: env.rest.search_sessions(types.SessionSearchRequest()).result())


@check(needs="whoami")
def identity(env):
    """The user is named in the token that a key is exchanged for; without an exchange there is no user."""
    if not env.service.holder.get_client_config().pjwt_auth_enabled:
        require_raises((RuntimeError, tinker.TinkerError), lambda: env.rest.whoami().result())
        return
    require_equal(env.rest.whoami().result().user_urn, "urn:tinkersim:local", "the user")


@check(needs="copy_weights")
async def copies_are_absent(env):
    path = env.trainer().save_state(env.name("copy")).result().path
    await _require_absent(lambda: env.new_service(project_id="project-c").copy_weights(path).result())
    await _require_absent(lambda: env.rest.copy_weights(path, "project-c").result())
    await _require_absent(lambda: env.rest.copy_weights_async(path, "project-c"))


@check()
def a_client_of_listings_needs_no_session(env):
    """A RestClient creates no session of its own."""
    before = env.simulator.counts()["calls"]["create_session"]
    service = env.new_service()
    rest = service.create_rest_client()
    require(isinstance(rest, RestClient), f"it is a {type(rest)}")
    rest.list_sessions(limit=1).result()
    require(env.simulator.counts()["calls"]["create_session"] == before, "a listing created a session")
