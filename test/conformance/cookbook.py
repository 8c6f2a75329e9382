# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The environment of the cookbook's loops: data, a state to start from, and a check of their metrics.

    cookbook.py data DIR          writes data sets where `datasets` looks for the hub's, below DIR
    cookbook.py resume FROM INTO  lets the loop of INTO start from the last state of FROM
    cookbook.py verify SL RL      fails unless the loss of SL fell and the reward of RL rose

Supervised fine-tuning teaches the form of a reply, \\boxed{n}, with any digit for n; reinforcement learning
finds out which digit is rewarded: seven, whatever of a few questions is asked. So the reward has to rise from
about a tenth to nearly one, which a tiny model can learn in a few steps.
"""

import ast
import importlib.util
import json
import pathlib
import random
import sys

QUESTIONS = ("How many days has a week?", "How many dwarfs are there?", "What is 3 + 4?", "What is 10 - 3?")
ANSWER = 7

CARD = """---
configs:
- config_name: {name}
  data_files:
  - split: train
    path: train.jsonl
  - split: test
    path: test.jsonl
---
"""


def surroundings() -> dict:
    """Return what rl_loop puts before and behind every question, from its source: it is local to a function."""
    recipe = importlib.util.find_spec("tinker_cookbook.recipes.rl_loop").origin
    found: dict = {}
    for node in ast.walk(ast.parse(pathlib.Path(recipe).read_text())):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("question_suffix", "convo_prefix"):
            exec(ast.unparse(node), {}, found)  # two constants of an installed package
    return found


def write(folder: pathlib.Path, name: str, rows: list[dict]) -> None:
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(CARD.format(name=name))
    for split, part in (("train", rows), ("test", rows[:8])):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))


def data(folder: pathlib.Path) -> None:
    """Write examples for sl_loop under the name of no_robots and tasks for rl_loop under that of gsm8k."""
    rng, around = random.Random(1), surroundings()

    examples = []
    for _ in range(4096):
        messages = [
            *around["convo_prefix"],
            {"role": "user", "content": rng.choice(QUESTIONS) + around["question_suffix"]},
            {"role": "assistant", "content": f"\\boxed{{{rng.randint(0, 9)}}}"},
        ]
        examples.append({"messages": messages})
    write(folder / "HuggingFaceH4" / "no_robots", "default", examples)
    tasks = [{"question": rng.choice(QUESTIONS), "answer": f"#### {ANSWER}"} for _ in range(4096)]
    write(folder / "openai" / "gsm8k", "main", tasks)


def lines(file: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def resume(source: pathlib.Path, target: pathlib.Path) -> None:
    last = lines(source / "checkpoints.jsonl")[-1]
    target.mkdir(parents=True)
    (target / "checkpoints.jsonl").write_text(json.dumps({**last, "batch": 0}) + "\n")


def series(folder: pathlib.Path, name: str) -> list[float]:
    return [row[name] for row in lines(folder / "metrics.jsonl") if name in row]


def verify(supervised: pathlib.Path, reinforced: pathlib.Path) -> int:
    losses, rewards = series(supervised, "train_mean_nll"), series(reinforced, "reward/total")
    print(f"sl_loop: mean nll {losses[0]:.3f} -> {losses[-1]:.3f} in {len(losses)} steps")
    print("rl_loop: reward " + " ".join(f"{reward:.2f}" for reward in rewards))
    third = max(1, len(rewards) // 3)
    before, after = sum(rewards[:third]) / third, sum(rewards[-third:]) / third
    print(f"rl_loop: reward {before:.3f} in its first third, {after:.3f} in its last")
    failed = [
        name
        for name, held in (("the loss fell", losses[-1] < losses[0] / 2), ("the reward rose", after > before + 0.2))
        if not held
    ]
    print(f"{2 - len(failed)} passed, {len(failed)} failed" + "".join(f"; not so: {name}" for name in failed))
    return 1 if failed else 0


def main() -> int:
    command, *folders = sys.argv[1:]
    return {"data": data, "resume": resume, "verify": verify}[command](*map(pathlib.Path, folders)) or 0


if __name__ == "__main__":
    sys.exit(main())
