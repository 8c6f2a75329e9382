# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Plays groups of tinker-cookbook with cookbook_episodes and with the cookbook's own loop, and compares the rewards.

Both have the same replies: a scripted policy answers by the prompt and by which member of the group asks. The builders are the
recipes' own. Twenty questions has a scripted answerer, text_arena plays against itself, and two builders of this file have rewards of
groups and questions that nothing seeds. Each check prints a line of JSON.
"""

import asyncio
import contextvars
import hashlib
import importlib.metadata
import json
import random
import re
import sys
import types

import cookbook_episodes  # first: it lets the cookbook be imported without torch

import chz
import numpy
from tinker_cookbook import renderers
from tinker_cookbook.completers import MessageCompleter, TokenCompleter, TokensWithLogprobs
from tinker_cookbook.recipes.math_rl import arithmetic_env
from tinker_cookbook.recipes.multiplayer_rl.guess_number import env as guess_number
from tinker_cookbook.recipes.multiplayer_rl.text_arena import env as text_arena
from tinker_cookbook.recipes.multiplayer_rl.twenty_questions import env as twenty_questions
from tinker_cookbook.rl.problem_env import ProblemGroupBuilder
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import RLDataset, RLDatasetBuilder
from tinker_cookbook.tokenizer_utils import register_tokenizer

MODEL = "check/bytes"
VERSION = importlib.metadata.version("tinker_cookbook")


class Bytes:
    """A tokenizer whose tokens are bytes."""

    bos_token = eos_token = ""
    bos_token_id = eos_token_id = 0
    name_or_path = MODEL

    def encode(self, text, add_special_tokens=False):
        return list(text.encode())

    def decode(self, tokens, **_):
        return bytes(tokens).decode(errors="replace")


class Yes(MessageCompleter):
    """An answerer that says yes to each question with an even number of letters."""

    async def __call__(self, messages):
        return {"role": "assistant", "content": "yes" if len(messages[-1]["content"]) % 2 == 0 else "no"}


@chz.chz
class Words(RLDatasetBuilder):
    async def __call__(self):
        renderer = renderers.get_renderer("role_colon", Bytes())
        words = ["lamp", "tree"]
        return twenty_questions.TwentyQuestionsDataset(Yes(), words, renderer, batch_size=1, group_size=4), None


class Ranked(ProblemGroupBuilder):
    """Sums whose group has rewards: more for an environment that stands further back, and for a longer reply."""

    async def compute_group_rewards(self, trajectories, environments):
        lengths = [len(each.transitions[0].ac.tokens) for each in trajectories]
        return [(index / 8 + length / 64, {"length": length}) for index, length in enumerate(lengths)]


class Drawn(RLDataset):
    """Sums that are drawn from generators that nobody has seeded."""

    def __init__(self, renderer):
        self.renderer = renderer

    def __len__(self):
        return 3

    def get_batch(self, index):
        def problem():
            x, y = random.randrange(1000), int(numpy.random.randint(1000))
            return Ranked(env_thunk=lambda: arithmetic_env.ArithmeticEnv(x, y, renderer=self.renderer), num_envs=3)

        return [problem() for _ in range(2)]


@chz.chz
class DrawnBuilder(RLDatasetBuilder):
    async def __call__(self):
        return Drawn(renderers.get_renderer("role_colon", Bytes())), None


def script(tokens, member):
    """Return the reply to a prompt. It depends on prompt, member and group alone, so that the order of requests does not matter."""
    text = bytes(tokens).decode(errors="replace")
    drawn = hashlib.sha256(bytes(tokens) + f"/{member}/{group.get()}".encode()).digest()[0]
    sum_of = re.findall(r"What is (\d+) \+ (\d+)\?", text)
    if sum_of:
        end = "" if drawn % 5 == 0 else "\n\nUser:"  # some replies are cut
        return f" {sum(map(int, sum_of[-1])) + drawn % 2}{end}"
    if "integer between" in text:
        return " " + guess(text, drawn, int(member)) + "\n\nUser:"
    if "20 questions" in text:
        word = ["lamp", "tree", "lamp", "stone"][int(member)]
        asked = text.count("Assistant:")
        return f" Guess: {word}\n\nUser:" if asked > 2 + int(member) else " Is it large" + "?" * (drawn % 3) + "\n\nUser:"
    free = re.findall(r"'\[(\d)\]'", text[text.rfind("Available"):])
    return f" [{free[drawn % len(free)] if free and drawn < 240 else 9}]\n"  # 9 is no square


def guess(text, drawn, member):
    """Return a guess: members 0 and 1 halve the rest, the others guess at random, and member 3 writes something else at times."""
    low, high = 0, 1025
    for number, verdict in re.findall(r"Guess: (\d+)\n\n.*?Too (low|high)", text, re.DOTALL):
        low, high = (max(low, int(number) + 1), high) if verdict == "low" else (low, min(high, int(number)))
    if member > 1:
        return "no number" if member == 3 and drawn % 2 else f"Guess: {drawn * 4}"
    return f"Guess: {(low + high - member) // 2}"


member, group = contextvars.ContextVar("member"), contextvars.ContextVar("group")


class Numbered:
    """A group whose environments say which one asks, in the task that plays each."""

    def __init__(self, builder):
        self.builder = builder

    def __getattr__(self, name):
        return getattr(self.builder, name)

    async def make_envs(self):
        environments = list(await self.builder.make_envs())
        for index, each in enumerate(environments):
            each.initial_observation = self.begin(str(index), each.initial_observation)
        return environments

    def begin(self, index, initial_observation):
        async def begin():
            member.set(index)
            return await initial_observation()

        return begin


class Scripted(TokenCompleter):
    async def __call__(self, model_input, stop, *, max_tokens=None):
        return TokensWithLogprobs(Bytes().encode(script(model_input.to_ints(), member.get())), None)


class Asked:
    """The policy of an episode; requests of one key never overlap."""

    def __init__(self):
        self.open, self.requests = set(), 0

    async def sample(self, tokens, *, stop=None, role=None, key=None):
        assert key not in self.open and role == "player"
        self.open.add(key)
        await asyncio.sleep(0)
        self.open.remove(key)
        self.requests += 1
        return types.SimpleNamespace(tokens=Bytes().encode(script(tokens, key)), truncated=False)


BUILDERS = {
    "arithmetic": lambda: arithmetic_env.ArithmeticDatasetBuilder(
        batch_size=2, model_name_for_tokenizer=MODEL, renderer_name="role_colon", n_batches=3, group_size=4),
    "guess_number": lambda: guess_number.GuessNumberDatasetBuilder(
        batch_size=2, renderer_name="role_colon", train_group_size=4, model_name=MODEL),
    "twenty_questions": Words,
    "text_arena": lambda: text_arena.TwoPlayerTextArenaDatasetBuilder(
        batch_size=2, num_train_datapoints=16, num_test_datapoints=2, model_name=MODEL, game_name="TicTacToe-v0",
        renderer_name="role_colon"),
    "drawn": DrawnBuilder,
}


def repeated(make):
    """Return the datasets of a builder after other draws than before."""
    random.seed()
    numpy.random.seed()
    return cookbook_episodes.Datasets(make())


async def compare(name, make):
    found, again = repeated(make), repeated(make)
    varied = False
    for number in range(GROUPS[name]):
        group.set(number)
        policy = Asked()
        got = await cookbook_episodes.play(await found.group("train", number), policy)
        rollout = await do_group_rollout(Numbered(await again.group("train", number)), Scripted())
        want = rollout.get_total_rewards()
        given = [got["rewards"].get(str(index), 0.0) for index in range(len(want))]
        if given != want:
            raise AssertionError(f"{name}: group {number} has the rewards {given}, and the cookbook's are {want}")
        varied |= len(set(given)) > 1
        metrics(name, got, rollout)
        print(json.dumps({"version": VERSION, "check": name, "group": number, "requests": policy.requests, "rewards": given}))
    if not varied:
        raise AssertionError(f"{name}: the members of each group have the same rewards, and would have them if they were mixed up")
    try:
        await found.group("train", 10**9)
    except IndexError:
        return
    raise AssertionError(f"{name}: a group beyond the dataset was found")


def metrics(name, got, rollout):
    """Compare the metrics with the means of the cookbook's."""
    want = {}
    for trajectory, final in zip(rollout.trajectories_G, rollout.metrics_G):
        for each in [*(step.metrics for step in trajectory.transitions), final]:
            for key, value in each.items():
                want.setdefault({"correct": "cookbook_correct"}.get(key, key), []).append(float(value))
    want = {key: sum(values) / len(values) for key, values in want.items()}
    given = {key: value for key, value in got.items() if key != "rewards"}
    if given != want:
        raise AssertionError(f"{name}: the metrics are {given}, and the cookbook's {want}")


GROUPS = {"arithmetic": 6, "guess_number": 4, "twenty_questions": 2, "text_arena": 8, "drawn": 6}


async def main():
    register_tokenizer(MODEL, Bytes)
    text_arena.TwoPlayerTextArenaDatasetBuilder._construct_opponent_policy = lambda self, renderer: Yes()
    for name, make in BUILDERS.items():
        await compare(name, make)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
