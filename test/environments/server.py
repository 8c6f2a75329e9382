# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Serve two environments with one of the Python packages of the Open Reward Standard.

Usage: server.py PACKAGE, where PACKAGE is ors or openreward.environments. It prints its port.
"""

import asyncio
import importlib
import socket
import sys

import uvicorn
from pydantic import BaseModel

package = importlib.import_module(sys.argv[1])


class Answer(BaseModel):
    answer: str


class Base(package.Environment):
    def __init__(self, task_spec={}, secrets={}):
        super().__init__(task_spec)
        self.secrets = secrets
        self.calls = 0

    @classmethod
    def list_splits(cls):
        return ["train", "test"]

    @classmethod
    def list_tasks(cls, split):
        return [{"a": a, "b": b} for a in range(5) for b in range(5) if ((a + b) % 5 == 0) == (split == "test")]

    def get_prompt(self):
        return [package.TextBlock(text=f"What is {self.task_spec['a']} + "), package.TextBlock(text=f"{self.task_spec['b']}?")]


def output(text, reward=None, finished=False):
    return package.ToolOutput(blocks=[package.TextBlock(text=text)], reward=reward, finished=finished)


class Sums(Base):
    @package.tool
    def submit(self, params: Answer) -> package.ToolOutput:
        """Give the answer."""
        right = params.answer.strip() == str(self.task_spec["a"] + self.task_spec["b"])
        return output("Right." if right else "Wrong.", 1.0 if right else 0.0, True)

    @package.tool
    async def slow(self) -> package.ToolOutput:
        """Take a second, and return how often this was called."""
        self.calls += 1
        await asyncio.sleep(1)
        return output(f"call {self.calls}")

    @package.tool
    def secret(self) -> package.ToolOutput:
        """Return the secret."""
        return output(self.secrets.get("KEY", "none"))

    @package.tool
    def long(self) -> package.ToolOutput:
        """Return words for several events, one of which begins with a space."""
        return output(" ".join(str(n) for n in range(5000)))

    @package.tool
    def crash(self) -> package.ToolOutput:
        """Fail."""
        raise ValueError("the tool is broken")


environments = [Sums]

if hasattr(package, "terminal"):

    class Talk(Base):
        def get_messages(self):
            text = lambda role, words: package.Message(role=role, blocks=[package.TextBlock(text=words)])
            return [text("system", "Be brief."), text("user", "Say hello."), text("assistant", "Hello."), text("user", "Again.")]

        @package.tool
        @package.terminal
        def finish(self, params: Answer) -> package.ToolOutput:
            """Grade the answer."""
            return output("", 1.0 if params.answer == "Hello." else 0.0, True)

    class Tooled(Base):
        sandbox = object()  # The toolsets of the package need one; their to-do list does not use it.

        @package.tool
        def done(self) -> package.ToolOutput:
            """End the episode."""
            return output("", 1.0, True)

    environments += [Talk, Tooled]

app = package.Server(environments).app
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, timeout_keep_alive=60, log_level="warning")).run(sockets=[listener])
