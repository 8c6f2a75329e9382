# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""A taskset of verifiers with a tool: the policy looks a word up, and replies with it."""

import verifiers.v1 as vf
from word_tools import WordTools

__all__ = ["WordTaskset"]


class WordData(vf.TaskData):
    answer: str


class WordTaskConfig(vf.TaskConfig):
    tools: vf.ToolsetConfig = vf.ToolsetConfig()


class WordTask(vf.Task[WordData, vf.State, WordTaskConfig]):
    @classmethod
    def toolsets(cls, config):
        return [WordTools(config.tools)]

    @vf.stop
    async def gave_up(self, trace: vf.Trace) -> bool:
        return trace.last_reply == "I give up."

    @vf.reward(weight=2.0)
    async def right(self, trace: vf.Trace) -> float:
        if trace.last_reply == "crash":
            raise RuntimeError("the reward is broken")
        return float(trace.last_reply == self.data.answer)


class WordConfig(vf.TasksetConfig):
    task: WordTaskConfig = WordTaskConfig()


class WordTaskset(vf.Taskset[WordTask, WordConfig]):
    def load(self):
        for number in range(7):
            yield WordTask(WordData(prompt=f"What is word {number}?", system_prompt="Be brief.", answer=f"word-{number}"), self.config.task)
