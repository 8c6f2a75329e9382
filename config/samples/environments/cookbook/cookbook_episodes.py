# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Any RLDatasetBuilder of tinker-cookbook as episodes of interaction.python, with module: cookbook_episodes.

It is configured by variables:
  BUILDER     the class, as MODULE:NAME, such as
              tinker_cookbook.recipes.multiplayer_rl.guess_number.env:GuessNumberDatasetBuilder
  ARGUMENTS   a JSON object of its fields ({})
  ROLE        the role of all conversations (player); interaction.python.roles has it
  SETUP       a function that is called first, as MODULE:NAME; for instance one that registers a tokenizer, as byte_model has

A row has `group`, a number: the row's group is the one of this number in the dataset, batch after batch, from 0. It may have
`split`, train (the default) or test: the builder's first or second dataset. `python3 -m cookbook_episodes` prints such rows.

An episode plays one EnvGroupBuilder: each of its environments is a conversation, whose key is its index, and earns the rewards of
its steps and its part of compute_group_rewards. So a run has algorithm.grouping Episode, which compares the environments of a
group as the cookbook does. Metrics are means over the steps that have them, as the cookbook's are. Its metric correct is
cookbook_correct here.

A dataset that draws from random or numpy.random draws the same group again: both are seeded before the builder is called, and before
each get_batch by the split and the number of the batch. What environments draw follows from the seed of the episode. A generator
of its own that a dataset seeds by nothing, such as random.Random(), cannot be seeded from here.

The cookbook imports torch, which it needs for training alone. Where torch is not installed, a module without functions stands in.
"""

import asyncio
import collections
import contextlib
import functools
import hashlib
import importlib
import importlib.machinery
import importlib.util
import json
import os
import random
import sys
import types


def stand_in_for_torch():
    """Lets the cookbook be imported without torch, which is six gigabytes with its libraries."""
    if importlib.util.find_spec("torch"):
        return
    with contextlib.suppress(ImportError):
        import transformers  # noqa: F401: it looks once whether there is torch
    module = types.ModuleType("torch", "Names of torch, which is not installed.")
    module.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    module.Tensor = type("Tensor", (), {})

    def missing(name):
        raise AttributeError(f"torch.{name}: torch is not installed. Add it to the requirements of the image.")

    module.__getattr__ = missing
    sys.modules["torch"] = module


stand_in_for_torch()

from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs  # noqa: E402
from tinker_cookbook.rl.rollouts import do_single_rollout  # noqa: E402

SPLITS = ("train", "test")
ROLE = os.environ.get("ROLE", "player")


@contextlib.contextmanager
def drawing(*seed):
    """Has random and numpy.random draw by a seed, and then go on as before."""
    numpy = importlib.import_module("numpy")
    before = random.getstate(), numpy.random.get_state()
    number = int.from_bytes(hashlib.sha256(repr(seed).encode()).digest()[:4], "big")
    random.seed(number)
    numpy.random.seed(number)
    try:
        yield
    finally:
        random.setstate(before[0])
        numpy.random.set_state(before[1])


def named(path):
    module, _, name = path.partition(":")
    if not name:
        raise ValueError(f"{path!r} is not MODULE:NAME")
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


class Datasets:
    """The datasets of a builder, which are built once in each process."""

    def __init__(self, builder):
        self.builder = builder
        self.lock = asyncio.Lock()
        self.built = None
        self.sizes = {}

    async def of(self, split):
        async with self.lock:
            if self.built is None:
                self.built = dict(zip(SPLITS, await asyncio.ensure_future(self.build())))
        if self.built.get(split) is None:
            raise ValueError(f"the builder has no dataset {split!r}")
        return self.built[split]

    async def build(self):
        with drawing("builder"):  # a task of its own, so that no other draws meanwhile
            return await self.builder()

    def batch(self, split, index):
        """Return the builders of a batch. Each call makes its own, as each episode needs one that no other plays."""
        with drawing(split, index):
            return list(self.built[split].get_batch(index))

    def size(self, split):
        """Return the size of the first batch. All others but the last one have it as well."""
        if split not in self.sizes:
            self.sizes[split] = len(self.batch(split, 0))
        return self.sizes[split]

    async def group(self, split, number):
        """Return the builder of a group."""
        dataset = await self.of(split)
        size = self.size(split)
        batch, index = divmod(number, max(size, 1))
        if 0 <= number and batch < len(dataset):
            builders = self.batch(split, batch)
            if index < len(builders):
                return builders[index]
        raise IndexError(f"the dataset {split!r} has {len(dataset)} batches of {size} groups, and no group {number}")


@functools.lru_cache(maxsize=None)
def datasets():
    if os.environ.get("SETUP"):
        named(os.environ["SETUP"])()
    return Datasets(named(os.environ["BUILDER"])(**json.loads(os.environ.get("ARGUMENTS") or "{}")))


class Policy(TokenCompleter):
    """The policy as the cookbook asks it, for one conversation."""

    def __init__(self, policy, key):
        self.policy, self.key, self.asked = policy, key, False

    async def __call__(self, model_input, stop, *, max_tokens=None):
        if max_tokens is not None:
            raise ValueError("an environment limits the tokens of a reply: set sampling.maxTokens of the run")
        self.asked = True
        reply = await self.policy.sample(model_input.to_ints(), stop=list(stop) or None, role=ROLE, key=self.key)
        return TokensWithLogprobs(
            tokens=list(reply.tokens), maybe_logprobs=None, stop_reason="length" if reply.truncated else "stop"
        )


async def play(builder, policy):
    """Play the environments of a group, and return their rewards by key, and metrics."""
    try:
        environments = list(await builder.make_envs())
        players = [Policy(policy, str(index)) for index in range(len(environments))]
        trajectories = await together(do_single_rollout(*each) for each in zip(players, environments))
        finals = await builder.compute_group_rewards(trajectories, environments)
    finally:
        await builder.cleanup()
    found, rewards = collections.defaultdict(list), {}
    for player, trajectory, (final, metrics) in zip(players, trajectories, finals, strict=True):
        if player.asked:  # an environment that asked nothing is no conversation
            rewards[player.key] = sum(step.reward for step in trajectory.transitions) + final
        for each in [*(step.metrics for step in trajectory.transitions), metrics]:
            for name, value in each.items():
                found[name].append(float(value))
    if not rewards:
        raise ValueError("no environment of the group asked the policy")
    means = {f"cookbook_{name}" if name in RESERVED else name: sum(values) / len(values) for name, values in found.items()}
    return {"rewards": rewards, **means}


# Names of metrics that have another meaning in the result of an episode.
RESERVED = ("reward", "rewards", "correct")


async def together(rollouts):
    """Await rollouts together. When one fails, the others end before the error is raised: no request stays open."""
    tasks = [asyncio.ensure_future(each) for each in rollouts]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def episode(row, policy, seed):
    return await play(await datasets().group(row.get("split") or "train", int(row["group"])), policy)


async def rows():
    for split in SPLITS:
        try:
            dataset = await datasets().of(split)
        except ValueError:
            continue
        # get_batch may be costly: only the last batch may be a smaller one.
        size, last = datasets().size(split), len(datasets().batch(split, len(dataset) - 1))
        for number in range(size * (len(dataset) - 1) + last):
            yield {"split": split, "group": number}


async def main():
    async for row in rows():
        print(json.dumps(row))


if __name__ == "__main__":
    sys.modules["cookbook_episodes"] = sys.modules["__main__"]
    asyncio.run(main())
