# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""An environment of one's own: sums, and a tool that takes the answer."""

import os

from ors import Environment, Server, TextBlock, ToolOutput, tool
from pydantic import BaseModel


class Answer(BaseModel):
    answer: str


class Sums(Environment):
    @classmethod
    def list_splits(cls):
        return ["train", "test"]

    @classmethod
    def list_tasks(cls, split):
        return [{"a": a, "b": b} for a in range(100) for b in range(100) if ((a + b) % 5 == 0) == (split == "test")]

    def get_prompt(self):
        return [TextBlock(text=f"What is {self.task_spec['a']} + {self.task_spec['b']}?")]

    @tool
    def submit(self, given: Answer) -> ToolOutput:
        """Give the answer."""
        right = given.answer.strip() == str(self.task_spec["a"] + self.task_spec["b"])
        return ToolOutput(blocks=[TextBlock(text="Right." if right else "Wrong.")], reward=float(right), finished=True)


Server([Sums]).run(port=int(os.environ.get("PORT", "8080")))
