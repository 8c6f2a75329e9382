# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Any OpenEnv environment as an environment of the Open Reward Standard.

Each session has a WebSocket connection to an OpenEnv server: a task is a seed for reset, and the tool act is a step with
an action, whose schema is the server's. The environment is configured by variables:
  OPENENV_URL  the address of the OpenEnv server (http://127.0.0.1:8000)
  PROMPT       the text before the first observation (empty)
  TRAIN_TASKS and TEST_TASKS   the number of seeds of the splits train and test (10000 and 100)
  PORT         the port to serve on (8080)
A server accepts as many sessions as its max_concurrent_envs says: give the run's environment the same ors.maxSessions.
"""

import functools
import json
import os
import urllib.request

from openenv.core import GenericEnvClient
from ors import Environment, Server, TextBlock, ToolOutput, tool
from pydantic import BaseModel, ConfigDict

URL = os.environ.get("OPENENV_URL", "http://127.0.0.1:8000")
PROMPT = os.environ.get("PROMPT", "")
SIZES = {"train": int(os.environ.get("TRAIN_TASKS", "10000")), "test": int(os.environ.get("TEST_TASKS", "100"))}
FIRST_SEED = {"train": 0, "test": SIZES["train"]}


@functools.cache
def action_schema():
    """The JSON schema of the server's actions, without the field that every action has."""
    with urllib.request.urlopen(URL.rstrip("/") + "/schema", timeout=60) as response:
        schema = json.load(response)["action"]
    schema.get("properties", {}).pop("metadata", None)
    return schema


class Action(BaseModel):
    model_config = ConfigDict(extra="allow")

    @classmethod
    def model_json_schema(cls, *args, **kwargs):
        return action_schema()


def text_of(observation):
    """An observation as text: its one field, or a JSON object of its fields."""
    shown = {name: value for name, value in observation.items() if name not in ("done", "reward", "metadata")}
    values = list(shown.values())
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return json.dumps(shown, ensure_ascii=False)


class OpenEnv(Environment):
    @classmethod
    def list_splits(cls):
        return [split for split, size in SIZES.items() if size > 0]

    @classmethod
    def list_tasks(cls, split):
        return [{"seed": FIRST_SEED[split] + i} for i in range(SIZES[split])]

    @classmethod
    async def num_tasks(cls, split):
        return SIZES[split]

    @classmethod
    async def get_task(cls, split, index):
        return {"seed": FIRST_SEED[split] + range(SIZES[split])[index]}

    async def setup(self):
        self.client = GenericEnvClient(base_url=URL)
        await self.client.connect()
        self.first = await self.client.reset(seed=self.task_spec["seed"])

    async def teardown(self):
        await self.client.close()

    def get_prompt(self):
        return [TextBlock(text="\n\n".join(text for text in (PROMPT, text_of(self.first.observation)) if text))]

    @tool
    async def act(self, action: Action) -> ToolOutput:
        """Take an action, and see what the environment observes."""
        try:
            result = await self.client.step(action.model_dump())
        except RuntimeError as problem:
            if "VALIDATION_ERROR" not in str(problem):
                raise
            return ToolOutput(blocks=[TextBlock(text=f"Error: the action does not have the schema of act. {problem}")])
        reward = None if result.reward is None else float(result.reward)
        return ToolOutput(blocks=[TextBlock(text=text_of(result.observation))], reward=reward, finished=bool(result.done))


if __name__ == "__main__":
    Server([OpenEnv]).run(port=int(os.environ.get("PORT", "8080")))
