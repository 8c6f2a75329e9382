# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Any single-agent environment of the package verifiers as an environment of the Open Reward Standard.

The environment's own code runs each episode. Where it asks its model, the request becomes what a tool of the session
returns, and the next call of a tool becomes the model's reply. The environment is configured by variables:
  TASKSET      the name of an installed taskset, such as openenv; add its package to requirements.txt
  SETTINGS     a JSON object of the environment's configuration, such as {"taskset": {"split": "train"}}
  TEST_TASKS   the number of tasks of the split test, which are the taskset's first (100)
  TRAIN_TASKS  the number of tasks of the split train, which follow them; fewer where the taskset ends (10000)
  PORT         the port to serve on (8080)
A reply without a call goes to the tool reply: set ors.answerTool to {name: reply, argument: text}. An environment whose
other agents ask models as well needs their client and model in SETTINGS.
"""

import asyncio
import json
import os
import sys
import tempfile
import uuid

# The package keeps scripts and working directories below the home directory, and the root file system is read-only.
os.environ["HOME"] = tempfile.mkdtemp()

import verifiers.v1 as vf
from aiohttp import web
from ors import Environment, Server, TextBlock, ToolOutput, tool
from ors.types import ListToolsOutput, RunToolError, RunToolOutput, RunToolSuccess, ToolSpec
from pydantic import BaseModel
from verifiers.v1.configs.agent import agent_config_fields
from verifiers.v1.utils.loaders import load_environment, resolve_env_config

SIZES = {"test": int(os.environ.get("TEST_TASKS", "100")), "train": int(os.environ.get("TRAIN_TASKS", "10000"))}


def configure():
    """The environment's configuration: that of SETTINGS, with the policy as the one agent that names no client."""
    taskset = os.environ.get("TASKSET") or sys.exit("TASKSET is not set; give it the name of an installed taskset")
    settings = json.loads(os.environ.get("SETTINGS", "{}"))
    settings["taskset"] = {**settings.get("taskset", {}), "id": taskset}
    agents = agent_config_fields(resolve_env_config(settings))
    policies = [name for name, agent in agents.items() if agent.client is None]
    if len(policies) != 1:
        sys.exit(f"the policy plays one agent, and these have no client: {', '.join(policies)}; "
                 "set client and model of the others in SETTINGS")
    policy = settings.setdefault(policies[0], {})
    policy.setdefault("harness", {"id": "policy_harness"})
    policy.setdefault("runtime", {"type": "subprocess"})
    return resolve_env_config(settings), policies[0]


CONFIG, POLICY = configure()
ENVIRONMENT = load_environment(CONFIG)
TASKS = list(ENVIRONMENT.taskset.take(sum(SIZES.values())))
SPLITS = {"test": TASKS[: SIZES["test"]], "train": TASKS[SIZES["test"] :]}


class Backend:
    """What all sessions share: the environment's own servers, and the endpoint that it takes for its model's."""

    sessions = {}
    started = None

    @classmethod
    async def start(cls):
        if cls.started is None:
            cls.started = asyncio.ensure_future(cls.serve())
        return await asyncio.shield(cls.started)

    @classmethod
    async def serve(cls):
        cls.serving = ENVIRONMENT.serving()
        await cls.serving.__aenter__()
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", cls.complete)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"

    @classmethod
    async def complete(cls, request):
        """Answers a request of the environment with the policy's next reply."""
        body = await request.json()
        session = cls.sessions.get(body["model"])
        if session is None:
            raise web.HTTPGone(text="the session was deleted")
        message = await session.ask(body)
        return web.json_response({
            "id": uuid.uuid4().hex, "object": "chat.completion", "created": 0, "model": body["model"],
            "choices": [{"index": 0, "message": message, "logprobs": None,
                         "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        })


def text_of(message):
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] if part["type"] == "text" else f"[{part['type']} is not shown]" for part in content)


class Reply(BaseModel):
    text: str


class Verifiers(Environment):
    @classmethod
    def list_splits(cls):
        return [split for split, tasks in SPLITS.items() if tasks]

    @classmethod
    def list_tasks(cls, split):
        return [{"split": split, "index": index} for index in range(len(SPLITS[split]))]

    async def setup(self):
        self.id = uuid.uuid4().hex
        self.requests = asyncio.Queue()
        self.answer = None
        self.messages = []
        endpoint = await Backend.start()
        Backend.sessions[self.id] = self
        client = vf.EvalClientConfig(base_url=endpoint, api_key_var="UNUSED_API_KEY")
        task = SPLITS[self.task_spec["split"]][self.task_spec["index"]]
        self.episode = asyncio.ensure_future(ENVIRONMENT.run_episode(task, vf.ModelContext(model=self.id, client=client)))
        try:
            self.first = await self.next_request()
            if self.first is None:
                self.reward()
                raise RuntimeError("the episode ended before its first turn")
        except BaseException:
            await self.teardown()
            raise

    async def teardown(self):
        Backend.sessions.pop(self.id, None)
        self.episode.cancel()
        await asyncio.wait([self.episode])

    async def ask(self, body):
        """Hands a request of the environment to the session, and waits for the policy's reply."""
        if self.answer is not None and not self.answer.done():
            raise RuntimeError("the environment asks the policy twice at the same time")
        self.answer = asyncio.get_running_loop().create_future()
        self.requests.put_nowait(body)
        return await self.answer

    async def next_request(self):
        """The environment's next request, or None once the episode has ended."""
        request = asyncio.ensure_future(self.requests.get())
        try:
            done, _ = await asyncio.wait([request, self.episode], return_when=asyncio.FIRST_COMPLETED)
            return request.result() if request in done else None
        finally:
            request.cancel()

    def reward(self):
        """The policy's reward, once the episode has ended."""
        episode = self.episode.result()
        errors = [*episode.errors, *(error for trace in episode.traces for error in trace.errors)]
        if not episode.ok:
            raise RuntimeError("; ".join(f"{error.type}: {error.message}" for error in errors) or "the episode failed")
        return sum(trace.reward for trace in episode.traces if trace.agent.name in (POLICY, ""))

    async def turn(self, message):
        """Sends the policy's reply, and returns what the environment shows next."""
        self.messages = [*(self.messages or self.first["messages"]), message]
        self.answer.set_result(message)
        body = await self.next_request()
        if body is None:
            return ToolOutput(blocks=[TextBlock(text="The episode has ended.")], reward=self.reward(), finished=True)
        shown = body["messages"][len(self.messages) :]
        self.messages = body["messages"]
        return ToolOutput(blocks=[TextBlock(text="\n\n".join(text_of(message) for message in shown))])

    def get_prompt(self):
        return [TextBlock(text="\n\n".join(text for message in self.first["messages"] if (text := text_of(message))))]

    def list_task_tools(self):
        functions = [entry["function"] for entry in self.first.get("tools") or []]
        return ListToolsOutput(tools=[
            ToolSpec(name=f["name"], description=f.get("description", ""), input_schema=f.get("parameters")) for f in functions
        ])

    async def _call_tool(self, name, input):
        if name not in [spec.name for spec in self.list_task_tools().tools]:
            return await super()._call_tool(name, input)
        call = {"id": f"call_{uuid.uuid4().hex}", "type": "function",
                "function": {"name": name, "arguments": json.dumps(input)}}
        return RunToolOutput(RunToolSuccess(output=await self.turn({"role": "assistant", "content": None, "tool_calls": [call]})))

    @tool
    async def reply(self, given: Reply) -> ToolOutput:
        """Reply in words."""
        return await self.turn({"role": "assistant", "content": given.text})


if __name__ == "__main__":
    Server([Verifiers]).run(port=int(os.environ.get("PORT", "8080")))
