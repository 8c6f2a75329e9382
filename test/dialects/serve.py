# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""The official clients ask the weights of a checkpoint, and decide on their sampling.

Usage: serve.py BASE_URL. BASE_URL has no /v1.
"""

import asyncio
import sys

import anthropic
import openai

BASE = sys.argv[1]
ASKED = dict(model="sums", messages=[{"role": "user", "content": "3+4=?"}], max_tokens=12)


def check_chat(client):
    reply = client.chat.completions.create(temperature=0, **ASKED)
    text = reply.choices[0].message.content
    assert text and reply.usage.completion_tokens <= 12, reply
    chunks = list(client.chat.completions.create(temperature=0, stream=True, stream_options={"include_usage": True}, **ASKED))
    deltas = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
    assert "".join(deltas) == text and len(deltas) > 1, (deltas, text)
    assert chunks[-1].usage.completion_tokens == reply.usage.completion_tokens, chunks[-1]
    several = client.chat.completions.create(temperature=2, seed=3, n=5, logprobs=True, top_logprobs=2, **ASKED)
    again = client.chat.completions.create(temperature=2, seed=3, n=5, **ASKED)
    texts = [c.message.content for c in several.choices]
    assert len(set(texts)) > 1 and texts == [c.message.content for c in again.choices], texts
    assert len(several.choices[0].logprobs.content[0].top_logprobs) == 2, several.choices[0].logprobs
    return text


def check_completions(client):
    reply = client.completions.create(model="sums", prompt="3+4=7", echo=True, logprobs=1, max_tokens=1, temperature=0)
    logprobs = reply.choices[0].logprobs
    assert reply.choices[0].text.startswith("3+4=7") and logprobs.token_logprobs[0] is None, reply
    assert all(value <= 0 for value in logprobs.token_logprobs[1:]), logprobs
    stopped = client.completions.create(model="sums", prompt="ab", max_tokens=12, temperature=0).choices[0].text
    stop = stopped[2:4]
    cut = client.completions.create(model="sums", prompt="ab", max_tokens=12, temperature=0, stop=[stop]).choices[0]
    assert cut.text == stopped[:stopped.index(stop)] and cut.finish_reason == "stop", (stopped, cut)


def check_messages(client, text):
    asked = dict(ASKED)
    reply = client.messages.create(**asked, **sampling(client))
    assert reply.content[0].text == text, (reply, text)
    with client.messages.stream(**asked, **sampling(client)) as events:
        deltas = list(events.text_stream)
        assert "".join(deltas) == text and len(deltas) > 1, deltas
    count = client.messages.count_tokens(model="sums", messages=asked["messages"])
    assert count.input_tokens == reply.usage.input_tokens, (count, reply.usage)


def sampling(client):
    """Returns a temperature of 0; the newest client has no argument for it."""
    return {"extra_body": {"temperature": 0}}


def check_responses(client, text):
    asked = dict(model="sums", input="3+4=?", max_output_tokens=12, temperature=0)
    reply = client.responses.create(**asked)
    assert reply.output_text == text, (reply, text)
    deltas = [e.delta for e in client.responses.create(stream=True, **asked) if e.type == "response.output_text.delta"]
    assert "".join(deltas) == text and len(deltas) > 1, deltas
    more = client.responses.create(model="sums", input="and?", previous_response_id=reply.id, max_output_tokens=4)
    assert more.usage.input_tokens > reply.usage.input_tokens, more


def check_errors(open_ai, claude):
    for call, error in ((lambda: open_ai.chat.completions.create(**{**ASKED, "model": "other"}), openai.NotFoundError),
                        (lambda: claude.messages.create(**{**ASKED, "model": "other"}), anthropic.NotFoundError),
                        (lambda: open_ai.completions.create(model="sums", prompt=[10**9]), openai.BadRequestError)):
        try:
            call()
        except error:
            continue
        raise AssertionError("no %s" % error)
    assert "sums" in [m.id for m in open_ai.models.list()], "models"


async def check_async(text):
    client = openai.AsyncOpenAI(base_url=BASE + "/v1", api_key="any")
    stream = await client.chat.completions.create(temperature=0, stream=True, **ASKED)
    deltas = [c.choices[0].delta.content or "" async for c in stream if c.choices]
    assert "".join(deltas) == text, deltas
    claude = anthropic.AsyncAnthropic(base_url=BASE, api_key="any")
    reply = await claude.messages.create(**ASKED, **sampling(claude))
    assert reply.content[0].text == text, reply


def main():
    open_ai = openai.OpenAI(base_url=BASE + "/v1", api_key="any", max_retries=0)
    claude = anthropic.Anthropic(base_url=BASE, api_key="any", max_retries=0)
    text = check_chat(open_ai)
    check_completions(open_ai)
    check_messages(claude, text)
    check_responses(open_ai, text)
    check_errors(open_ai, claude)
    asyncio.run(check_async(text))


main()
