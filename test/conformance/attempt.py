# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Running one check so that whatever it does, the others are run as well."""

import asyncio
import faulthandler
import inspect
import sys
import threading

# How long one check may take, in seconds. It bounds a hang and decides nothing about speed.
PATIENCE = 300.0


class Hangs(Exception):
    """A check did not end."""


def attempt(check, lab, *, patience: float = PATIENCE, dump: bool = True) -> BaseException | None:
    """Run a check in a thread of its own and return what it raised.

    One that hangs is left behind, and what all threads do is dumped if that is wanted.
    """
    outcome: list[BaseException | None] = []

    def run():
        try:
            done = check.run(lab)
            if inspect.iscoroutine(done):
                asyncio.run(done)
            outcome.append(None)
        except BaseException as error:  # whatever it is, it is the check's outcome
            outcome.append(error)

    thread = threading.Thread(target=run, name=check.name, daemon=True)
    thread.start()
    thread.join(patience)
    if outcome:
        return outcome[0]
    if dump:
        faulthandler.dump_traceback(file=sys.stderr)
    return Hangs(f"no end within {patience:.0f} s")
