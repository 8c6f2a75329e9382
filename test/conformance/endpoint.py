# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The support table of a server: what of the Tinker API it has, and has right."""

import urllib.error
import urllib.request

import tinker

from attempt import Hangs, attempt
from harness import Check, Differs, Refused, Untested

WIDTH = 46

# How long a feature may take, in seconds, before the server is said not to have it.
PATIENCE = 120.0


def table(lab, checks: list[Check]) -> int:
    """Print a row for each feature that any server may have. The exit status says only if the server answered."""
    features = [check for check in checks if check.feature is not None]
    print(f"server {lab.url}, model {lab.model}, driven by tinker {tinker.__version__}")
    counts = dict.fromkeys(("yes", "differs", "no", "untested"), 0)
    if (problem := silence(lab.url)) is not None:
        print(f"nothing answers there: {problem}")
        return 1
    for check in features:
        verdict, why = judge(attempt(check, lab, patience=PATIENCE, dump=False))
        counts[verdict] += 1
        print(f"{check.feature:{WIDTH}} {verdict:9}{why}".rstrip(), flush=True)
        if check.name == "capabilities" and verdict == "no":
            print("the server does not answer; nothing else was tried")
            return 1
    print(", ".join(f"{verdict}: {count}" for verdict, count in counts.items()))
    return 0


def silence(url: str) -> str | None:
    """Return why nothing at all answers, or None; an error of a server is an answer, too."""
    try:
        urllib.request.urlopen(url.rstrip("/") + "/api/v1/healthz", timeout=20).close()
    except urllib.error.HTTPError:
        return None
    except OSError as error:
        return str(error)
    return None


def judge(error: BaseException | None) -> tuple[str, str]:
    """Say what the outcome of a check means: it holds, the server refuses, or it does something else.

    A feature that another one is made of may say no because of that one: the reason tells.
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
