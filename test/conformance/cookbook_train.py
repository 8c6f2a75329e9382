# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Train with tinker-cookbook's rl/train.py, and evaluate weights, as `make bench-compare` does.

    cookbook_train.py train CONFIG              trains, and prints the path of the final sampler's weights
    cookbook_train.py evaluate CONFIG PATH      prints the fraction of the held-out tasks that PATH answers

CONFIG is a JSON file: url, model, log, lora_rank, learning_rate, loss, loss_config, max_tokens, group_size, stop (token
ids), mode (sync, streaming or async), lag, and batches and held_out. A task is {"prompt": token ids, "answer": text}, and
a batch is a list of tasks. An answer is right if it is the whole reply without the stop and the spaces around it.
"""

import asyncio
import json
import pathlib
import sys
from collections.abc import Sequence

import chz
import tinker
from tinker_cookbook.rl import train
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset, RLDatasetBuilder, StepResult
from tinker_cookbook.tokenizer_utils import get_tokenizer

HELD_OUT_AT_ONCE = 64


def reward(config: dict, tokens: list[int], answer: str) -> float:
    if tokens and tokens[-1] in config["stop"]:
        tokens = tokens[:-1]
    return float(get_tokenizer(config["model"]).decode(tokens).strip() == answer)


class Task(Env):
    def __init__(self, config: dict, task: dict):
        self.config, self.task = config, task

    async def initial_observation(self):
        return tinker.ModelInput.from_ints(self.task["prompt"]), self.config["stop"]

    async def step(self, action, *, extra=None):
        return StepResult(
            reward=reward(self.config, action, self.task["answer"]),
            episode_done=True,
            next_observation=tinker.ModelInput.from_ints([]),
            next_stop_condition=[],
        )


class Group(EnvGroupBuilder):
    def __init__(self, config: dict, task: dict):
        self.config, self.task = config, task

    async def make_envs(self) -> Sequence[Env]:
        return [Task(self.config, self.task) for _ in range(self.config["group_size"])]


class Batches(RLDataset):
    def __init__(self, config: dict):
        self.config = config

    def get_batch(self, index: int) -> Sequence[EnvGroupBuilder]:
        return [Group(self.config, task) for task in self.config["batches"][index]]

    def __len__(self) -> int:
        return len(self.config["batches"])


@chz.chz
class Builder(RLDatasetBuilder):
    file: str

    async def __call__(self):
        return Batches(read(self.file)), None


def read(file: str) -> dict:
    return json.loads(pathlib.Path(file).read_text())


def async_loss(config: dict) -> dict:
    """Return the loss of the asynchronous mode, which has a setting of its own since cookbook 0.6."""
    return {"loss_fn": config["loss"]} if "loss_fn" in train.AsyncConfig.__annotations__ else {}


def trainer(file: str) -> train.Config:
    config = read(file)
    groups = len(config["batches"][0])
    modes = {
        "sync": {},
        "streaming": {"stream_minibatch_config": train.StreamMinibatchConfig(groups_per_batch=groups, num_minibatches=4)},
        "async": {"async_config": train.AsyncConfig(max_steps_off_policy=config["lag"], groups_per_batch=groups, **async_loss(config))},
    }
    return train.Config(
        dataset_builder=Builder(file=file),
        model_name=config["model"],
        recipe_name="bench_compare",
        base_url=config["url"],
        log_path=config["log"],
        learning_rate=config["learning_rate"],
        lora_rank=config["lora_rank"],
        max_tokens=config["max_tokens"],
        loss_fn=config["loss"],
        loss_fn_config=config["loss_config"],
        remove_constant_reward_groups=True,
        eval_every=0,
        **modes[config["mode"]],
    )


async def evaluate(config: dict, path: str) -> float:
    client = await tinker.ServiceClient(base_url=config["url"]).create_sampling_client(model_path=path)
    parameters = tinker.SamplingParams(max_tokens=config["max_tokens"], temperature=1.0, stop=config["stop"], seed=1)
    permits = asyncio.Semaphore(HELD_OUT_AT_ONCE)

    async def one(task: dict) -> float:
        async with permits:
            result = await client.sample(
                prompt=tinker.ModelInput.from_ints(task["prompt"]), num_samples=1, sampling_params=parameters
            )
        return reward(config, result.sequences[0].tokens, task["answer"])

    rewards = await asyncio.gather(*(one(task) for task in config["held_out"]))
    return sum(rewards) / len(rewards)


def main() -> None:
    command, file, *rest = sys.argv[1:]
    if command == "evaluate":
        print(asyncio.run(evaluate(read(file), *rest)))
        return
    asyncio.run(train.main(trainer(file)))
    last = (pathlib.Path(read(file)["log"]) / "checkpoints.jsonl").read_text().splitlines()[-1]
    print(json.loads(last)["sampler_path"])


if __name__ == "__main__":
    main()
