# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks which tasks the adapter of reasoning-gym gives its indexes, with a generator of unlimited questions.

The packages reasoning_gym and ors are stood in for, since neither takes part in it.
"""

import importlib.util
import json
import os
import sys
import types


class Questions:
    """A generator whose task of a position is "question POSITION", or one of so few questions."""

    def __init__(self, size, different):
        self.size, self.different = size, different

    def __len__(self):
        return self.size

    def __getitem__(self, position):
        if not 0 <= position < self.size:
            raise IndexError(position)
        return {"question": f"question {position % self.different}", "metadata": {}}


def adapter(different, **sizes):
    gym, factory, ors, pydantic = map(
        types.ModuleType, ("reasoning_gym", "reasoning_gym.factory", "ors", "pydantic"))
    gym.create_dataset = lambda family, seed, size: Questions(size, different)
    factory.DATASETS = {"chain_sum": None}
    ors.Environment = ors.TextBlock = ors.ToolOutput = ors.Server = pydantic.BaseModel = object
    ors.tool = lambda function: function
    sys.modules.update({m.__name__: m for m in (gym, factory, ors, pydantic)})
    os.environ.update({name: str(size) for name, size in sizes.items()})
    spec = importlib.util.spec_from_file_location("environment", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


found = adapter(10**9, TRAIN_TASKS=10000, TEST_TASKS=500)
report = {}
for split in ("train", "test"):
    positions = [task["task"] for task in found.ReasoningGym.list_tasks(split)]
    report[split] = {"tasks": len(positions), "distinct": len(set(positions)),
                     "of the split": sum(found.split_of(f"question {p}") == split for p in positions)}
# One index alone has the task that it has in the list.
report["alone"] = [adapter(10**9).position("test", i) for i in (0, 250, 499)] == [positions[i] for i in (0, 250, 499)]
try:
    adapter(1).ReasoningGym.list_tasks("test" if found.split_of("question 0") == "train" else "train")
    report["too few"] = ""
except IndexError as err:
    report["too few"] = str(err)
print(json.dumps(report))
