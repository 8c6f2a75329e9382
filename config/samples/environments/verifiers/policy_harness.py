# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""A harness of the package verifiers that runs in this process: a chat loop that calls the environment's tools."""

import json
from contextlib import AsyncExitStack

import openai
import verifiers.v1 as vf
from verifiers.v1.configs.harness import HarnessConfig
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.harnesses.utils.mcp import call_mcp, connect_mcp
from verifiers.v1.runtimes import ProgramResult

__all__ = ["PolicyHarness"]


class PolicyHarness(vf.Harness[HarnessConfig]):
    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages.extend(message_to_wire(message) for message in prompt or [])
        client = openai.AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0, timeout=None)
        async with client, AsyncExitStack() as stack:
            config = {"mcpServers": {name: {"url": url} for name, url in mcp_urls.items()}}
            tools, dispatch, servers = await connect_mcp(config, stack)
            while True:
                try:
                    completion = await client.chat.completions.create(
                        model=ctx.model, messages=messages, **({"tools": tools} if tools else {})
                    )
                except openai.APIStatusError as error:
                    # The rollout refuses a turn once one of its limits or stop conditions is reached.
                    return ProgramResult(exit_code=1, stdout="", stderr=str(error))
                message = completion.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return ProgramResult(exit_code=0, stdout="", stderr="")
                for call in message.tool_calls:
                    content = await call_mcp(servers, dispatch, call.function.name, json.loads(call.function.arguments))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
