# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the checks with the SDK of this interpreter's environment.

run.py --list
run.py --url URL --model NAME --admin     against tinkersim; prints a line of JSON per check
run.py --url URL --model NAME --endpoint  against any server; prints a support table

The key is in TINKER_API_KEY, and no argument, which every process of the machine could see.
"""

import argparse
import json
import logging
import os
import sys
import time
import traceback
import warnings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the names of the checks")
    parser.add_argument("--url", default=os.environ.get("TINKER_BASE_URL", ""))
    parser.add_argument("--model", default="")
    parser.add_argument("--admin", action="store_true", help="the server is a tinkersim with --admin")
    parser.add_argument("--endpoint", action="store_true", help="print what the server supports")
    parser.add_argument("--only", default="", help="run the checks whose names contain one of these, comma-separated")
    arguments = parser.parse_args()
    # The SDK warns of deprecated calls and logs its retries, which the suite tests on purpose.
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    key = os.environ.setdefault("TINKER_API_KEY", "")
    os.environ["TINKER_BASE_URL"] = arguments.url

    import suite  # the SDK reads the environment variables at import

    wanted = arguments.only.split(",")
    checks = [check for check in suite.checks() if any(word in check.name for word in wanted)]
    if arguments.list:
        print("\n".join(check.name for check in checks))
        return 0
    from environment import Environment

    env = Environment(arguments.url, key, arguments.model, arguments.admin)
    if arguments.endpoint:
        import endpoint

        return endpoint.table(env, checks)
    return report(env, checks)


def report(env, checks) -> int:
    """Run all checks and print a line of JSON for each, and one for the calls that they cover."""
    from attempt import attempt
    from coverage import Coverage

    coverage = Coverage()
    coverage.watch()
    failed = 0
    for check in checks:
        coverage.current = check.name
        began = time.monotonic()
        error = attempt(check, env)
        if error is None:
            coverage.passed(check.name)
        failed += error is not None
        emit(
            check=check.name, seconds=round(time.monotonic() - began, 2), error="" if error is None else describe(error)
        )
    emit(calls=coverage.table())
    return 1 if failed else 0


def emit(**line) -> None:
    print(json.dumps(line), flush=True)


def describe(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, limit=-4)).strip()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # threads of the SDK, and of a check that hangs, must not keep the process
