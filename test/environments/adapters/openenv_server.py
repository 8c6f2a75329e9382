# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""A server of the package openenv: the policy guesses the number that the seed of reset says. Usage: openenv_server.py PORT"""

import sys

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class Guess(Action):
    number: int


class Hint(Observation):
    hint: str = ""


class Guessing(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self.number, self.guesses = 0, 0

    def reset(self, seed=None, episode_id=None, **kwargs):
        self.number, self.guesses = seed, 0
        return Hint(hint="Guess a number.", done=False, reward=None)

    def step(self, action, timeout_s=None, **kwargs):
        self.guesses += 1
        if action.number < 0:
            raise ValueError("the number is negative")
        if action.number == self.number:
            return Hint(hint="Right.", done=True, reward=1.0 / self.guesses)
        return Hint(hint="Higher." if action.number < self.number else "Lower.", done=False, reward=0.0)

    @property
    def state(self):
        return State(step_count=self.guesses)


uvicorn.run(create_fastapi_app(Guessing, Guess, Hint, max_concurrent_envs=8), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
