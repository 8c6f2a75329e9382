#!/usr/bin/env python3
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Print what the project pins of the services and packages that it follows, beside what is newest.

    hack/upstream.py [--offline] [--models FILE_OR_URL]

docs/releasing.md says what to do about a line. The program fails if it does not find a pin, and not because there is something new.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What hosted Tinker publishes of its models: names, context and prices.
MODELS = "https://tinker-docs.thinkingmachines.ai/tinker/models.json"

# A row has what is followed, its package, the file with its pin, and the pattern of the pin.
PINS = [
    ("SDK", "tinker", "test/conformance/requirements/newest.txt", r"^tinker==(.+)$"),
    ("tinker-cookbook", "tinker-cookbook", "test/conformance/requirements/cookbook-next.txt", r"^tinker_cookbook==(.+)$"),
    ("tinker-cookbook of renderers and captures", "tinker-cookbook", "test/conformance/requirements/capture-no-deps.txt", r"^tinker_cookbook==(.+)$"),
    ("SkyRL", "skyrl", "test/conformance/requirements/skyrl-next.txt", r"^skyrl==(.+)$"),
    ("templates of trl", "trl", "hack/models/templates.sh", r"^trl=(.+)$"),
    ("templates of llama.cpp", "llama-cpp-python", "hack/models/templates.sh", r"^llama=(.+)$"),
]


def pinned(path, pattern):
    """Return the version that a file pins."""
    found = re.search(pattern, (ROOT / path).read_text(), re.MULTILINE)
    if not found:
        sys.exit(f"upstream: {path} has no line that matches {pattern}: change the row in hack/upstream.py")
    return found.group(1)


def newest(package):
    """Return the newest version of a package, for whichever version of Python, or None if the index does not answer."""
    command = [sys.executable, "-m", "pip", "index", "versions", package, "--ignore-requires-python", "--disable-pip-version-check"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.match(r"\S+ \(([^)]+)\)", answer.stdout)
    return found.group(1) if found else None


def published(source):
    """Return the models that hosted Tinker publishes by name, or None if they cannot be had."""
    try:
        if re.match(r"https?://", source):
            with urllib.request.urlopen(source, timeout=30) as answer:
                content = answer.read()
        else:
            content = pathlib.Path(source).read_bytes()
        return {row["tinker_id"]: row for row in json.loads(content)["models"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"models.json: cannot be had: {error}")
        return None


def compare_models(rows):
    """Print the models whose price differs from the embedded one, and those without a row in the table of models."""
    prices = {row["tinker_id"]: row for row in json.loads((ROOT / "internal/prices/prices.json").read_text())["models"]}
    known = json.dumps(json.loads((ROOT / "internal/models/models.json").read_text()))
    for name, row in sorted(rows.items()):
        if name not in prices:
            print(f"models.json: {name} has no embedded price: internal/prices/prices.json")
        elif any(row.get(field) != value for field, value in prices[name].items()):
            print(f"models.json: {name} has another price: internal/prices/prices.json")
        if json.dumps(name.split(":")[0]) not in known:
            print(f"models.json: {name} is not in internal/models/models.json")
    for name in sorted(prices.keys() - rows.keys()):
        print(f"models.json: {name} is not published any more: set its day in the retired models of internal/models/models.json")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--offline", action="store_true", help="print the pins, and ask no index")
    parser.add_argument("--models", default=MODELS, help="a file or an address in the place of the published models.json")
    options = parser.parse_args()
    for name, package, path, pattern in PINS:
        version = pinned(path, pattern)
        if options.offline:
            print(f"{name}: {version}, pinned in {path}")
            continue
        latest = newest(package)
        state = {None: "the index does not answer", version: "newest"}.get(latest, f"{latest} is newer")
        print(f"{name}: {version}, {state} ({path})")
    if not options.offline or options.models != MODELS:
        rows = published(options.models)
        if rows is not None:
            compare_models(rows)


if __name__ == "__main__":
    main()
