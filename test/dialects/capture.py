# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Records which prompts the capture proxy of tinker-cookbook makes of linear conversations.

Usage: capture.py TOKENIZERS, with the packages of ../conformance/requirements/capture.txt; TestCaptureProxy runs it.
TOKENIZERS is the folder of the vocabularies of internal/renderer/families/testdata. An agent asks the real proxy, whose
sampler says what is scripted, and gives back what it was given. A line has a conversation: what the agent sent, which
tokens the proxy rendered of it, which it would have rendered with the reasoning of replies, if these are others, and
which were sampled.
"""

import asyncio
import datetime
import gzip
import itertools
import json
import os
import sys
import types
import uuid

import transformers  # it looks for torch once

sys.modules["torch"] = types.ModuleType("torch")  # which the cookbook imports for training
sys.modules["torch"].Tensor = type("Tensor", (), {})

import tokenizers  # noqa: E402
from aiohttp.test_utils import TestClient, TestServer  # noqa: E402
from tinker_cookbook import renderers  # noqa: E402
from tinker_cookbook.capture.proxy.app import ProxyDeps, make_app  # noqa: E402
from tinker_cookbook.renderers import gpt_oss  # noqa: E402

NUMBERS = itertools.count(1)
gpt_oss.datetime = types.SimpleNamespace(now=lambda: datetime.datetime(2026, 11, 21))
uuid.uuid4 = lambda: uuid.UUID(int=next(NUMBERS))  # so that further recordings are the same

# The renderers by their families' vocabularies.
RENDERERS = {
    "qwen3": ("qwen3", "qwen3_disable_thinking", "qwen3_instruct"),
    "qwen3_5": ("qwen3_5", "qwen3_5_disable_thinking"),
    "deepseek_v3_1": ("deepseekv3", "deepseekv3_thinking"),
    "kimi_k2": ("kimi_k2",),
    "nemotron3": ("nemotron3", "nemotron3_disable_thinking", "nemotron3_preserve_thinking"),
    "gpt_oss": ("gpt_oss_low_reasoning",),
}
SPECIAL = {"deepseek_v3_1": {"bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
SYSTEM = "Use the tool."


def tokenizer(family):
    with gzip.open(os.path.join(sys.argv[1], family + ".json.gz")) as file:
        inner = tokenizers.Tokenizer.from_str(file.read().decode())
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **SPECIAL.get(family, {}))


class Policy:
    """Says what is scripted, and keeps the prompts: those of the proxy, and those of the same renderer for the replies as
    it has parsed them, with their reasoning."""

    def __init__(self, renderer, replies):
        self.renderer, self.replies, self.turns = renderer, replies, []

    def __getattr__(self, name):
        return getattr(self.renderer, name)

    def build_generation_prompt(self, messages):
        parsed = iter([self.renderer.parse_response(turn["reply"])[0] for turn in self.turns])
        knowing = [{**message, **({"content": next(parsed)["content"]} if message["role"] == "assistant" else {})}
                   for message in messages]
        prompt = self.renderer.build_generation_prompt(messages)
        turn = {"prompt": prompt.to_ints(), "reply": self.replies[len(self.turns)]}
        whole = self.renderer.build_generation_prompt(knowing).to_ints()
        if whole != turn["prompt"]:
            turn["whole"] = whole
        self.turns.append(turn)
        return prompt

    async def sample(self, prompt, num_samples, sampling_params):
        assert num_samples == 1
        sequence = types.SimpleNamespace(tokens=self.turns[-1]["reply"], stop_reason="stop")
        return types.SimpleNamespace(sequences=[sequence])


def spoken(renderer, message):
    """The tokens that a policy samples which says the message in the renderer's own form."""
    context = renderers.RenderContext(idx=1, is_last=True, last_user_index=0, prev_message=None)
    rendered = renderer.render_message(message, context)
    header = rendered.header.tokens if rendered.header else []
    said = [token for chunk in rendered.output for token in chunk.tokens]
    prompt = renderer.build_generation_prompt([{"role": "user", "content": "?"}]).to_ints()
    both = [*header, *said]
    # A prompt may end with the beginning of a message, such as <think>.
    begun = next((n for n in range(len(both), len(header) - 1, -1) if prompt[-n:] == both[:n]), None)
    if begun is None and isinstance(message["content"], str):
        # The prompt asks for reasoning.
        return spoken(renderer, {**message, "content": thinks(message["content"])["content"]})
    reply, stops = said if begun is None else both[begun:], renderer.get_stop_sequences()
    ends = [i for i, token in enumerate(reply) if token in stops]
    # A history ends messages of gpt-oss with another token than a sample does.
    return reply[:ends[0] + 1] if ends else [*reply[:-1], stops[0]]


def says(*texts):
    return [{"role": "assistant", "content": text} for text in texts]


def calls(*numbers, text=""):
    return {"role": "assistant", "content": text, "tool_calls": [
        renderers.ToolCall(id=f"functions.add:{i}", function=renderers.ToolCall.FunctionBody(
            name="add", arguments=json.dumps({"a": a, "b": b}))) for i, (a, b) in enumerate(numbers)]}


def thinks(text):
    said = [{"type": "text", "text": text}] if text else []
    return {"role": "assistant", "content": [{"type": "thinking", "thinking": "Let me see."}, *said]}


# The conversations: their API, whether they have tools, and what the policy says.
CONVERSATIONS = {
    "texts": ("openai", False, says("Hello.", "Twelve.", "Bye.")),
    "texts by messages": ("anthropic", False, says("Hello.", "Twelve.", "Bye.")),
    "spaces": ("openai", False, says("Hello. \n", "Bye.")),
    "reasoning": ("openai", False, [thinks("Twelve."), thinks("Bye.")]),
    "reasoning by messages": ("anthropic", False, [thinks("Twelve."), thinks("Bye.")]),
    "a call": ("openai", True, [calls((1, 2)), *says("It is 3."), calls((3, 4), text="And now:"), *says("It is 7.")]),
    "a call by messages": ("anthropic", True, [calls((1, 2)), *says("It is 3.")]),
    "calls at once": ("openai", True, [calls((1, 2), (3, 4)), *says("It is 10.")]),
    "calls at once by messages": ("anthropic", True, [calls((1, 2), (3, 4)), *says("It is 10.")]),
}


def followed(api, body, answer):
    """Adds the reply and what the agent does next."""
    if api == "anthropic":
        body["messages"].append({"role": "assistant", "content": answer["content"]})
        results = [{"type": "tool_result", "tool_use_id": block["id"], "content": str(sum(block["input"].values()))}
                   for block in answer["content"] if block["type"] == "tool_use"]
        body["messages"].append({"role": "user", "content": results or "Go on."})
        return
    message = answer["choices"][0]["message"]
    body["messages"].append(message)
    results = [{"role": "tool", "tool_call_id": call["id"],
                "content": str(sum(json.loads(call["function"]["arguments"]).values()))}
               for call in message.get("tool_calls", [])]
    body["messages"].extend(results or [{"role": "user", "content": "Go on."}])


def begun(api, has_tools):
    body = {"model": "policy", "max_tokens": 100, "messages": [{"role": "user", "content": "How much is it?"}]}
    if api == "anthropic":
        body["system"] = SYSTEM
        if has_tools:
            body["tools"] = [{"name": "add", "description": "Adds.", "input_schema": SCHEMA}]
        return body
    body["messages"].insert(0, {"role": "system", "content": SYSTEM})
    if has_tools:
        function = {"name": "add", "description": "Adds.", "parameters": SCHEMA}
        body["tools"] = [{"type": "function", "function": function}]
    return body


async def record(family, name, conversation):
    api, has_tools, messages = CONVERSATIONS[conversation]
    renderer = renderers.get_renderer(name, tokenizer(family), model_name=family)
    policy = Policy(renderer, [spoken(renderer, message) for message in messages])
    deps = ProxyDeps(renderer=policy, sampling_client=policy, model_label="policy")
    path = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[api]
    body = begun(api, has_tools)
    async with TestClient(TestServer(make_app(deps))) as client:
        for i in range(len(messages)):
            sent = json.loads(json.dumps(body))
            async with client.post(path, json=sent) as response:
                if response.status != 200:
                    print(f"{name}, {conversation}: {response.status} {await response.text()}", file=sys.stderr)
                    return
                answer = await response.json()
            policy.turns[i]["request"] = sent
            followed(api, body, answer)
    # The last request has all messages.
    for turn in policy.turns:
        turn["messages"] = len(turn.pop("request")["messages"])
    line = {"family": family, "renderer": name, "conversation": conversation, "path": path, "request": sent,
            "turns": policy.turns}
    print(json.dumps(line, separators=(",", ":")))


async def main():
    for family, names in RENDERERS.items():
        for name in names:
            for conversation in CONVERSATIONS:
                await record(family, name, conversation)


asyncio.run(main())
