#!/usr/bin/env python3
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Count the optimizer steps in the weights of a state, by what SkyRL's database says that the server executed.

    python steps.py tinker.db tinker://MODEL/weights/NAME

A model that was loaded from a state has the steps of that state, and those that it took itself until it was saved.
"""
import json
import re
import sqlite3
import sys


def executed(database, model):
    """Return the kind and the input of every operation of a model that succeeded, in the order of their execution."""
    rows = database.execute(
        "SELECT lower(request_type), request_data FROM futures WHERE model_id = ? AND lower(status) = 'completed' ORDER BY request_id",
        (model,),
    )
    return [(kind, json.loads(data)) for kind, data in rows]


def steps(database, model, state):
    """Return the number of steps in a state of a model."""
    count = 0
    for kind, data in executed(database, model):
        if kind == "load_weights":
            count = steps(database, data["source_model_id"], data["checkpoint_id"])
        elif kind == "optim_step":
            count += 1
        elif kind == "save_weights" and data["path"] == state:
            return count
    raise SystemExit(f"model {model} has not saved a state {state}")


def main():
    path = re.fullmatch(r"tinker://([^/]+)/weights/([^/]+)", sys.argv[2])
    if not path:
        raise SystemExit(f"{sys.argv[2]} is not the path of a state")
    print(steps(sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True), *path.groups()))


if __name__ == "__main__":
    main()
