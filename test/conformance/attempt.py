# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs one check so that, whatever it does, the others can run as well."""

import asyncio
import faulthandler
import inspect
import sys
import threading

# The time limit of one check in seconds. It detects hangs, and says nothing about speed.
PATIENCE = 300.0


class Hangs(Exception):
    """A check did not end."""


def attempt(check, env, *, patience: float = PATIENCE, dump: bool = True) -> BaseException | None:
    """Run a check in a thread of its own and return what it raised.

    The thread of a check that hangs keeps running; dump prints the stacks of all threads.
    """
    outcome: list[BaseException | None] = []

    def run():
        try:
            done = check.run(env)
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
