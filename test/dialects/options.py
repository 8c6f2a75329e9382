# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Every public option of the endpoints' requests, with a value that asks for something."""
import typing

from anthropic.types import message_count_tokens_params, message_create_params
from openai.types import completion_create_params
from openai.types.chat import completion_create_params as chat_create_params
from openai.types.responses import response_create_params

from samples import CUSTOM, FUNCTION

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"], "additionalProperties": False}

CHAT = {
    "messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "2+2?"}]}],
    "model": "text", "audio": {"format": "mp3", "voice": "alloy"}, "frequency_penalty": 0.5,
    "function_call": "auto", "functions": [FUNCTION], "logit_bias": {"50256": -100}, "logprobs": True,
    "max_completion_tokens": 64, "max_tokens": 32, "metadata": {"a": "b"}, "modalities": ["text", "audio"],
    "moderation": {"model": "omni-moderation-latest"}, "n": 2, "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": "Four."}, "presence_penalty": 0.5, "prompt_cache_key": "k",
    "prompt_cache_options": {"mode": "implicit"}, "prompt_cache_retention": "24h", "reasoning_effort": "low",
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}},
    "safety_identifier": "s", "seed": 7, "service_tier": "flex", "stop": ["END", "STOP"], "store": True, "stream": True,
    "stream_options": {"include_usage": True}, "temperature": 0.7, "tool_choice": "required",
    "tools": [{"type": "function", "function": {**FUNCTION, "strict": True}}], "top_logprobs": 1, "top_p": 0.9,
    "user": "u", "verbosity": "low", "web_search_options": {"search_context_size": "low"},
}
COMPLETIONS = {
    "model": "text", "prompt": ["2+2=", "3+3="], "best_of": 3, "echo": True, "frequency_penalty": 0.5,
    "logit_bias": {"50256": -100}, "logprobs": 1, "max_tokens": 0, "n": 2, "presence_penalty": 0.5, "seed": 7, "stop": "END",
    "stream": True, "stream_options": {"include_usage": True}, "suffix": "!", "temperature": 0.7, "top_p": 0.9, "user": "u",
}
RESPONSES = {
    "model": "text", "access_programs": {"cyber": "standard"}, "background": True,
    "background_options": {"completion_window": "2h"}, "context_management": [{"type": "compaction"}],
    "conversation": "conv_1", "image": {"context_compression": "auto"}, "include": ["reasoning.encrypted_content"],
    "input": [{"role": "user", "content": [{"type": "input_text", "text": "2+2?"}]}], "instructions": "Be brief.",
    "max_output_tokens": 64, "max_tool_calls": 2, "metadata": {"a": "b"}, "moderation": {"model": "omni-moderation-latest"},
    "parallel_tool_calls": False, "previous_response_id": "resp_1", "prompt": {"id": "pmpt_1"}, "prompt_cache_key": "k",
    "prompt_cache_options": {"mode": "implicit"}, "prompt_cache_retention": "24h", "reasoning": {"effort": "low"},
    "safety_identifier": "s", "service_tier": "flex", "store": False, "stream": True,
    "stream_options": {"include_obfuscation": False}, "temperature": 0.7,
    "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}}, "tool_choice": "required",
    "tools": [{"type": "function", **FUNCTION, "strict": True}], "top_logprobs": 1, "top_p": 0.9, "truncation": "auto",
    "user": "u",
}
COUNT = {
    "messages": [{"role": "user", "content": [{"type": "text", "text": "2+2?", "cache_control": {"type": "ephemeral"}}]}],
    "model": "text", "cache_control": {"type": "ephemeral"},
    "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}, "speed": "fast",
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "thinking": {"type": "enabled", "budget_tokens": 1024}, "tool_choice": {"type": "any"},
    "tools": [{**CUSTOM, "cache_control": {"type": "ephemeral"}}], "user_profile_id": "p", "workspace_id": "w",
}
MESSAGES = {
    **COUNT, "max_tokens": 64, "container": "container_1", "diagnostics": {"previous_message_id": "msg_0"},
    "inference_geo": "us", "metadata": {"user_id": "u"}, "service_tier": "standard_only", "stop_sequences": ["END"],
    "stream": True,
}
ENDPOINTS = {
    "chat/completions": (CHAT, ["messages", "model"], chat_create_params.CompletionCreateParamsBase),
    "completions": (COMPLETIONS, ["model", "prompt"], completion_create_params.CompletionCreateParamsBase),
    "responses": (RESPONSES, ["model", "input"], response_create_params.ResponseCreateParamsBase),
    "messages": (MESSAGES, ["model", "messages", "max_tokens"], message_create_params.MessageCreateParamsBase),
    "messages/count_tokens": (COUNT, ["model", "messages"], message_count_tokens_params.MessageCountTokensParams),
}
# What an option needs beside it.
NEEDS = {"stream_options": ["stream"], "top_logprobs": ["logprobs"], "tool_choice": ["tools"], "function_call": ["functions"]}


def public(endpoint):
    """The names of the options that the client's types have; each must have a value above."""
    values, _, params = ENDPOINTS[endpoint]
    names = set(typing.get_type_hints(params))
    if endpoint != "messages/count_tokens":
        names.add("stream")
    assert names == set(values), f"{endpoint}: options without a value, or unknown ones: {names ^ set(values)}"
    return sorted(names)


def requests(endpoint):
    """One request for each option, and one with the required options alone."""
    values, required, _ = ENDPOINTS[endpoint]
    names = public(endpoint)
    base = {name: values[name] for name in required}
    yield "required", base
    for name in names:
        if name not in required:
            extra = {n: values[n] for n in [name, *NEEDS.get(name, [])] if n in values}
            yield name, {**base, **extra}
