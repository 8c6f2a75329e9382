# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Agents of the official clients: each plays so many turns with a tool, and gives back what it was given.

Usage: agents.py BASE_URL TOKEN TURNS. BASE_URL has no /v1.
"""

import asyncio
import json
import sys

import anthropic
import openai

BASE, TOKEN, TURNS = sys.argv[1], sys.argv[2], int(sys.argv[3])
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
CHAT_TOOLS = [{"type": "function", "function": {"name": "add", "description": "adds", "parameters": PARAMETERS}}]
RESPONSES_TOOLS = [{"type": "function", "name": "add", "description": "adds", "parameters": PARAMETERS, "strict": False}]
MESSAGES_TOOLS = [{"name": "add", "description": "adds", "input_schema": PARAMETERS}]


def result(arguments):
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    return str(arguments["a"] + arguments["b"])


def chat_message(chunks):
    """Returns the message of a stream, as agents put it together."""
    text, calls = "", {}
    for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                known = calls.setdefault(call.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
                known["id"] += call.id or ""
                known["function"]["name"] += call.function.name or ""
                known["function"]["arguments"] += call.function.arguments or ""
    return {"role": "assistant", "content": text or None, "tool_calls": [calls[i] for i in sorted(calls)]}


async def collect(stream):
    return [chunk async for chunk in stream]


async def chat(client, name, stream):
    messages = [{"role": "system", "content": "Call add."}, {"role": "user", "content": name}]
    for _ in range(TURNS):
        reply = client.chat.completions.create(model="any", messages=messages, tools=CHAT_TOOLS, stream=stream)
        if asyncio.iscoroutine(reply):
            reply = await reply
        if stream:
            message = chat_message(await collect(reply) if hasattr(reply, "__aiter__") else list(reply))
        else:
            message = reply.choices[0].message.model_dump(exclude_none=True)
            message.pop("reasoning_content", None)  # as most agents do
        messages.append(message)
        for call in message["tool_calls"]:
            # An agent that writes the arguments anew.
            call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]), indent=1)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result(call["function"]["arguments"])})


async def responses(client, name, by_id):
    items, previous = [{"role": "user", "content": name}], None
    for _ in range(TURNS):
        extra = {"previous_response_id": previous} if by_id and previous else {}
        reply = client.responses.create(model="any", input=items, tools=RESPONSES_TOOLS, **extra)
        if asyncio.iscoroutine(reply):
            reply = await reply
        previous = reply.id
        outputs = [{"type": "function_call_output", "call_id": item.call_id, "output": result(item.arguments)}
                   for item in reply.output if item.type == "function_call"]
        assert outputs, reply
        given = [item.model_dump(exclude_none=True) for item in reply.output]
        items = outputs if by_id else items + given + outputs


async def messages(client, name, stream):
    history = [{"role": "user", "content": name}]
    for _ in range(TURNS):
        asked = dict(model="any", max_tokens=1000, messages=history, tools=MESSAGES_TOOLS)
        count = client.messages.count_tokens(model="any", messages=history, tools=MESSAGES_TOOLS)
        if asyncio.iscoroutine(count):
            count = await count
        if stream:
            manager = client.messages.stream(**asked)
            if hasattr(manager, "__aenter__"):
                async with manager as events:
                    reply = await events.get_final_message()
            else:
                with manager as events:
                    reply = events.get_final_message()
        else:
            reply = client.messages.create(**asked)
            if asyncio.iscoroutine(reply):
                reply = await reply
        used = reply.usage.input_tokens + (reply.usage.cache_read_input_tokens or 0)
        assert count.input_tokens == used, (count, reply.usage)
        content = [block.model_dump(exclude_none=True) for block in reply.content]
        history.append({"role": "assistant", "content": content})
        history.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": block["id"], "content": result(block["input"])}
            for block in content if block["type"] == "tool_use"]})


async def main():
    open_ai = {"base_url": BASE + "/v1", "api_key": TOKEN}
    claude = {"base_url": BASE, "api_key": TOKEN}
    for kind, made, other in (("sync", openai.OpenAI(**open_ai), anthropic.Anthropic(**claude)),
                              ("async", openai.AsyncOpenAI(**open_ai), anthropic.AsyncAnthropic(**claude))):
        for stream in (False, True):
            await chat(made, "chat %s %s" % (kind, stream), stream)
            await responses(made, "responses %s %s" % (kind, stream), stream)
            await messages(other, "messages %s %s" % (kind, stream), stream)
    try:
        openai.OpenAI(base_url=BASE + "/v1", api_key="wrong", max_retries=0).models.list()
    except openai.AuthenticationError:
        return
    raise AssertionError("a wrong key was accepted")


asyncio.run(main())
