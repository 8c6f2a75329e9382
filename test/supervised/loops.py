# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Train with tinker-cookbook's supervised/train.py and distillation/train_on_policy.py, and print what to compare.

    loops.py supervised CONFIG      prints {"state": path, "cpu": seconds a step, "metrics": [...]}
    loops.py distill CONFIG         prints a JSON object for each step: groups, data and metrics

CONFIG is a JSON file with url, model, renderer, log, rank, learning_rate and steps. supervised also reads file (JSONL
of messages), train_on, reduction, schedule, epochs, batch_size and max_length; distill reads teachers (names of models),
coefficient, discount, prompts, group_size and max_tokens.
"""

import asyncio
import json
import pathlib
import sys
import time

import chz
import tinker
from tinker_cookbook import renderers
from tinker_cookbook.distillation import datasets as distillation_datasets
from tinker_cookbook.distillation import train_on_policy
from tinker_cookbook.rl.types import Env, EnvGroupBuilder, RLDataset, RLDatasetBuilder, StepResult
from tinker_cookbook.supervised import data as supervised_data
from tinker_cookbook.supervised import train as supervised_train
from tinker_cookbook.supervised.types import ChatDatasetBuilderCommonConfig


def rows(log: str, name: str) -> list[dict]:
    return [json.loads(line) for line in (pathlib.Path(log) / name).read_text().splitlines()]


def supervised(config: dict) -> None:
    own = supervised_data.conversation_to_datum
    if config["reduction"] != "default":

        def reduced(conversation, renderer, max_length, train_on_what):
            return own(conversation, renderer, max_length, train_on_what, reduction=config["reduction"])

        supervised_data.conversation_to_datum = reduced
    builder = supervised_data.FromConversationFileBuilder(
        file_path=config["file"],
        common_config=ChatDatasetBuilderCommonConfig(
            model_name_for_tokenizer=config["model"],
            renderer_name=config["renderer"],
            max_length=config["max_length"] or None,
            batch_size=config["batch_size"],
            train_on_what=renderers.TrainOnWhat(config["train_on"]),
        ),
    )
    ends: list[float] = []
    own_nll = supervised_train.compute_mean_nll

    def at_the_end_of_a_step(*given):
        ends.append(time.process_time())
        return own_nll(*given)

    supervised_train.compute_mean_nll = at_the_end_of_a_step
    asyncio.run(
        supervised_train.main(
            supervised_train.Config(
                log_path=config["log"],
                model_name=config["model"],
                recipe_name="compare",
                renderer_name=config["renderer"],
                dataset_builder=builder,
                learning_rate=config["learning_rate"],
                lr_schedule=config["schedule"],
                num_epochs=config["epochs"],
                lora_rank=config["rank"],
                base_url=config["url"],
                save_every=0,
                eval_every=0,
                max_steps=config["steps"],
            )
        )
    )
    cpu = (ends[-1] - ends[0]) / (len(ends) - 1)
    last = rows(config["log"], "checkpoints.jsonl")[-1]
    print(json.dumps({"state": last["state_path"], "cpu": cpu, "metrics": rows(config["log"], "metrics.jsonl")}))


class Task(Env):
    """One turn; the reward is any number that depends on the tokens, so that the members of a group differ."""

    def __init__(self, renderer, prompt: str):
        self.renderer, self.prompt = renderer, prompt

    async def initial_observation(self):
        given = self.renderer.build_generation_prompt([{"role": "user", "content": self.prompt}])
        return given, self.renderer.get_stop_sequences()

    async def step(self, action, *, extra=None):
        return StepResult(
            reward=sum(action) % 7 / 7,
            episode_done=True,
            next_observation=tinker.ModelInput.empty(),
            next_stop_condition=[],
        )


class Group(EnvGroupBuilder):
    def __init__(self, renderer, prompt: str, size: int):
        self.given = renderer, prompt
        self.size = size

    async def make_envs(self):
        return [Task(*self.given) for _ in range(self.size)]


class Prompts(RLDataset):
    def __init__(self, groups: list[Group], steps: int):
        self.groups, self.steps = groups, steps

    def get_batch(self, index: int):
        return self.groups

    def __len__(self) -> int:
        return self.steps


@chz.chz
class Builder(RLDatasetBuilder):
    config: dict

    async def __call__(self):
        tokenizer = train_on_policy.get_tokenizer(self.config["model"])
        renderer = renderers.get_renderer(self.config["renderer"], tokenizer)
        groups = [Group(renderer, prompt, self.config["group_size"]) for prompt in self.config["prompts"]]
        return Prompts(groups, self.config["steps"]), None


class Recorder:
    """Records the arguments and results of the arithmetic, which runs as it is."""

    def __init__(self):
        self.step: dict = {}
        self.advantages = train_on_policy.compute_advantages
        self.penalty = train_on_policy.incorporate_kl_penalty
        train_on_policy.compute_advantages = self.compute_advantages
        train_on_policy.incorporate_kl_penalty = self.incorporate_kl_penalty

    def compute_advantages(self, groups):
        found = self.advantages(groups)
        self.step["groups"] = [
            {"rewards": group.get_total_rewards(), "advantages": values.tolist()}
            for group, values in zip(groups, found, strict=True)
        ]
        return found

    async def incorporate_kl_penalty(self, data, teachers, indices, coefficient, discount):
        records = [
            {
                "teacher": index,
                **{name: datum.loss_fn_inputs[name].tolist() for name in ("target_tokens", "logprobs", "mask")},
                "before": datum.loss_fn_inputs["advantages"].tolist(),
            }
            for datum, index in zip(data, indices, strict=True)
        ]
        asked = [Listening(teacher, record) for teacher, record in zip(teachers, records, strict=True)]
        metrics = await self.penalty(data, asked, indices, coefficient, discount)
        for datum, record in zip(data, records, strict=True):
            record["after"] = datum.loss_fn_inputs["advantages"].tolist()
        settings = {"coefficient": coefficient, "discount": discount}
        print(json.dumps({**self.step, "data": records, "metrics": metrics, **settings}))
        return metrics


class Listening:
    """A sampling client that also writes down the log-probabilities of the targets."""

    def __init__(self, client, record: dict):
        self.client, self.record = client, record

    async def compute_logprobs_async(self, sequence):
        found = await self.client.compute_logprobs_async(sequence)
        self.record["teacher_logprobs"] = found[1:]
        return found

    def compute_logprobs(self, sequence):
        """Return what 0.6 asks of the SDK: an object with a coroutine."""
        return Call(self.compute_logprobs_async(sequence))


class Call:
    def __init__(self, found):
        self.found = found

    def coroutine(self):
        return self.found


def distill(config: dict) -> None:
    Recorder()
    asyncio.run(
        train_on_policy.main(
            train_on_policy.Config(
                learning_rate=config["learning_rate"],
                dataset_configs=[
                    distillation_datasets.DistillationDatasetConfig(
                        dataset_builder=Builder(config=config),
                        teacher_config=distillation_datasets.TeacherConfig(base_model=teacher),
                        groups_per_batch=len(config["prompts"]),
                    )
                    for teacher in config["teachers"]
                ],
                model_name=config["model"],
                recipe_name="compare",
                renderer_name=config["renderer"],
                max_tokens=config["max_tokens"],
                lora_rank=config["rank"],
                kl_penalty_coef=config["coefficient"],
                kl_discount_factor=config["discount"],
                log_path=config["log"],
                base_url=config["url"],
                eval_every=0,
                save_every=0,
            )
        )
    )


def main() -> None:
    command, file = sys.argv[1:]
    {"supervised": supervised, "distill": distill}[command](json.loads(pathlib.Path(file).read_text()))


if __name__ == "__main__":
    main()
