# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The support table of a server: which features of the Tinker API it supports."""

import urllib.error
import urllib.request

import tinker

from attempt import Hangs, attempt
from harness import Check, Differs, Refused, Untested

WIDTH = 46

# The time limit of a feature in seconds, after which it counts as not supported.
PATIENCE = 120.0


def table(env, checks: list[Check]) -> int:
    """Print a row for each feature. The exit status says only whether the server responded."""
    features = [check for check in checks if check.feature is not None]
    print(f"server {env.url}, model {env.model}, driven by tinker {tinker.__version__}")
    counts = dict.fromkeys(("yes", "differs", "no", "untested"), 0)
    if (problem := unreachable(env.url)) is not None:
        print(f"the server is not reachable: {problem}")
        return 1
    for check in features:
        support, why = classify(attempt(check, env, patience=PATIENCE, dump=False))
        counts[support] += 1
        print(f"{check.feature:{WIDTH}} {support:9}{why}".rstrip(), flush=True)
        if check.name == "capabilities" and support == "no":
            print("the server does not respond; no other check ran")
            return 1
    print(", ".join(f"{support}: {count}" for support, count in counts.items()))
    return 0


def unreachable(url: str) -> str | None:
    """Return why the server cannot be reached, or None. An HTTP error is a response, too."""
    try:
        urllib.request.urlopen(url.rstrip("/") + "/api/v1/healthz", timeout=20).close()
    except urllib.error.HTTPError:
        return None
    except OSError as error:
        return str(error)
    return None


def classify(error: BaseException | None) -> tuple[str, str]:
    """Classify the outcome of a check: the server supports the feature, rejects it, or does something else.

    A feature may be rejected because it needs another one: the reason says so.
    """
    if error is None:
        return "yes", ""
    why = " ".join(str(error).split()) or type(error).__name__
    if len(why) > 120:
        why = why[:117] + "..."
    if isinstance(error, Untested):
        return "untested", why
    if isinstance(error, Differs):
        return "differs", why
    if isinstance(error, (tinker.TinkerError, Hangs, Refused, ValueError, ConnectionError)):
        return "no", why
    return "differs", f"{type(error).__name__}: {why}"
