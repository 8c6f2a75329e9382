# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Agents of frameworks that others wrote: each plays its tasks with a tool until the policy calls no tool any more.

Usage: frameworks.py FRAMEWORK BASE_URL TOKEN TASK... BASE_URL has no /v1. A TASK names a conversation and how it is played. For
each task it prints a line of JSON: {"task", "said"}, or {"task", "error", "words"} with the class and text of the exception
that ended the agent. The variable MODEL is the name of the model, without it policy.
"""

import asyncio
import json
import logging
import os
import sys
import tempfile

# Nothing here may ask the network: tables of prices, traces, news of versions.
os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", OPENAI_AGENTS_DISABLE_TRACING="1", MSWEA_SILENT_STARTUP="1",
                  MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT="3", MSWEA_COST_TRACKING="ignore_errors", MSWEA_GLOBAL_CONFIG_DIR=tempfile.mkdtemp())

FRAMEWORK, BASE, TOKEN = sys.argv[1:4]
RESULTS, sys.stdout = sys.stdout, sys.stderr  # frameworks print advice
OPENAI = {"base_url": BASE + "/v1", "api_key": TOKEN}
CLAUDE = {"base_url": BASE, "api_key": TOKEN}
MODEL = os.environ.get("MODEL", "policy")
MOST = 100  # turns, which no task reaches


def add(a: int, b: int) -> str:
    """Adds two integers."""
    return str(a + b)


async def openai_agents(task):
    import agents
    from openai import AsyncOpenAI

    client = AsyncOpenAI(**OPENAI)
    kind = agents.OpenAIResponsesModel if "responses" in task else agents.OpenAIChatCompletionsModel
    model = kind(model=MODEL, openai_client=client)
    tools = [] if "plain" in task else [agents.function_tool(add)]
    if "helper" in task:
        helper = agents.Agent(name="helper", instructions="You help.", model=model, tools=tools)
        tools = tools + [helper.as_tool("helper", "asks a helper", max_turns=MOST)]
    # A drawn reply of the simulator's model may be cut, which is an exception of the framework.
    settings = agents.ModelSettings(temperature=0) if "plain" in task else agents.ModelSettings()
    agent = agents.Agent(name="adder", instructions="Call add.", model=model, tools=tools, model_settings=settings)
    if "stream" not in task:
        return (await agents.Runner.run(agent, task, max_turns=MOST)).final_output
    result = agents.Runner.run_streamed(agent, task, max_turns=MOST)
    async for _ in result.stream_events():
        pass
    return result.final_output


async def litellm(task):
    import litellm as library

    asked = {"model": "anthropic/policy", "api_base": BASE, "api_key": TOKEN} if "messages" in task else \
        {"model": "openai/policy", "api_base": BASE + "/v1", "api_key": TOKEN}
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    asked["tools"] = [{"type": "function", "function": {"name": "add", "description": "adds", "parameters": parameters}}]
    asked["num_retries"] = 12  # litellm repeats at once, whatever Retry-After says
    messages = [{"role": "system", "content": "Call add."}, {"role": "user", "content": task}]
    for _ in range(MOST):
        if "async" in task:
            reply = await library.acompletion(messages=messages, stream="stream" in task, **asked)
            if "stream" in task:
                reply = library.stream_chunk_builder([chunk async for chunk in reply], messages=messages)
        else:
            reply = library.completion(messages=messages, stream="stream" in task, **asked)
            if "stream" in task:
                reply = library.stream_chunk_builder(list(reply), messages=messages)
        message = reply.choices[0].message
        messages.append(message.model_dump())
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": add(**json.loads(call.function.arguments))})


async def mini_swe_agent(task):
    import yaml
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.config import builtin_config_dir
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.models.litellm_model import LitellmModel
    from minisweagent.models.litellm_response_model import LitellmResponseModel
    from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel

    def play():
        config = yaml.safe_load((builtin_config_dir / ("mini_textbased.yaml" if "text" in task else "mini.yaml")).read_text())
        kind = LitellmTextbasedModel if "text" in task else LitellmResponseModel if "responses" in task else LitellmModel
        settings = config["model"] | ({"model_name": "anthropic/policy"} if "messages" in task else {"model_name": "openai/policy"})
        settings["model_kwargs"] = {"drop_params": True, "api_key": TOKEN,
                                    "api_base": BASE if "messages" in task else BASE + "/v1"}
        templates = {name: config["agent"][name] for name in ("system_template", "instance_template")}
        with tempfile.TemporaryDirectory() as folder:
            agent = DefaultAgent(kind(**settings), LocalEnvironment(cwd=folder), cost_limit=0, **templates)
            return agent.run(task)["exit_status"]

    return await asyncio.to_thread(play)


async def langchain(task):
    import warnings

    from langchain_anthropic import ChatAnthropic
    from langchain_openai import ChatOpenAI
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langgraph.prebuilt import create_react_agent
        if "messages" in task:
            model = ChatAnthropic(model="policy", max_tokens=1000, streaming="stream" in task, **CLAUDE)
        else:
            model = ChatOpenAI(model="policy", streaming="stream" in task, use_responses_api="responses" in task, **OPENAI)
        graph = create_react_agent(model, [add], prompt="Call add.")
    asked, config = {"messages": [("user", task)]}, {"recursion_limit": 2 * MOST}
    state = await (graph.ainvoke(asked, config) if "async" in task else asyncio.to_thread(graph.invoke, asked, config))
    last = state["messages"][-1].content
    return last if isinstance(last, str) else "".join(part["text"] for part in last if part["type"] == "text")


async def pydantic_ai(task):
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    if "messages" in task:
        model = AnthropicModel("policy", provider=AnthropicProvider(anthropic_client=AsyncAnthropic(**CLAUDE)))
    else:
        kind = OpenAIResponsesModel if "responses" in task else OpenAIChatModel
        model = kind("policy", provider=OpenAIProvider(openai_client=AsyncOpenAI(**OPENAI)))
    agent = Agent(model, instructions="Call add.", tools=[add])
    if "stream" not in task:
        return (await agent.run(task)).output
    async with agent.run_stream(task) as result:
        return await result.get_output()


async def main():
    play = {"openai-agents": openai_agents, "litellm": litellm, "mini-swe-agent": mini_swe_agent, "langchain": langchain,
            "pydantic-ai": pydantic_ai}[FRAMEWORK]
    logging.disable(logging.WARNING)
    for task in sys.argv[4:]:
        try:
            result = {"task": task, "said": await play(task)}
        except Exception as error:
            result = {"task": task, "error": type(error).__name__, "words": str(error)}
        print(json.dumps(result), file=RESULTS, flush=True)


asyncio.run(main())
