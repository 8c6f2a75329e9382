# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors, whose messages say what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import urllib3
from kubernetes.client.exceptions import ApiException


class Error(Exception):
    """An operation that failed."""


class NotFound(Error):
    """An object that does not exist."""


class Refused(Error):
    """An object that the API server does not accept."""


class RunFailed(Error):
    """A run that ended before it was as wait expects it."""


class WaitTimeout(Error, TimeoutError):
    """A run that is not as wait expects it after the timeout."""


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turns errors of the API server during `what` into errors that say what to do."""
    try:
        yield
    except ApiException as err:
        raise _explain(what, err) from err
    except urllib3.exceptions.HTTPError as err:
        raise Error(f"{what}: the cluster does not answer: {err}: check that it runs, or choose another one with "
                    "Client(context=...)") from err


def _explain(what: str, err: ApiException) -> Error:
    message = _message(err)
    match err.status:
        case 404 if message.strip() == "404 page not found":
            return Error(f"{what}: the cluster has no such kind: install the operator's chart, or choose another "
                         "cluster with Client(context=...)")
        case 404:
            return NotFound(f"{what}: {message}: correct the name, or choose another namespace with "
                            "Client(namespace=...)")
        case 401 | 403:
            return Error(f"{what}: {message}: ask for one of the operator's roles, or choose another user with "
                         "Client(context=...)")
        case 409 if _reason(err) == "AlreadyExists":
            return Refused(f"{what}: {message}: choose another name with create(..., name=...)")
        case 400 | 422:
            return Refused(f"{what}: {message}")
        case _:
            return Error(f"{what}: {message}")


def _body(err: ApiException) -> dict[str, object]:
    try:
        body = json.loads(err.body or "")
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _message(err: ApiException) -> str:
    return str(_body(err).get("message") or err.body or err.reason)


def _reason(err: ApiException) -> str:
    return str(_body(err).get("reason", ""))
