# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""clients.py URL [--options]: drives the official clients against a server with the codecs.

With --options it also makes a request for each public option of the newest clients, and prints the options as JSON.
"""
import asyncio
import importlib.metadata
import json
import sys
import urllib.request

import anthropic
import openai

import samples

URL = sys.argv[1]
CANNED = json.load(urllib.request.urlopen(URL + "/canned"))
OPENAI = dict(base_url=URL + "/v1", api_key="k")
ANTHROPIC = dict(base_url=URL, api_key="k")
ASK = [{"role": "user", "content": "2+2?"}]
CHAT_TOOLS = [{"type": "function", "function": samples.FUNCTION}]
FLAT_TOOLS = [{"type": "function", **samples.FUNCTION}]
CUSTOM_TOOLS = [samples.CUSTOM]
checks = 0


def equal(name, got, want):
    global checks
    checks += 1
    if got != want:
        raise SystemExit(f"{name}: got {got!r}, want {want!r}")


def record(name):
    return {"X-Record": name}


def joined(name, thinking):
    return "".join(p["text"] for p in CANNED[name]["parts"] if p["thinking"] == thinking)


def calls_of(name):
    return [(c["id"], c["name"], json.loads(c["arguments"])) for c in CANNED[name]["calls"]]


# Helpers of older clients want strict tools, so that only plain calls name tools.
async def send(call, stream, client, is_async, **arguments):
    """Makes a call by a client's method; a stream helper is read to its end."""
    if not stream:
        result = call(**arguments)
        return await result if is_async else result
    final = getattr(stream, "final")
    if is_async:
        async with call(**arguments) as events:
            async for _ in events:
                pass
            return await getattr(events, final)()
    with call(**arguments) as events:
        for _ in events:
            pass
        return getattr(events, final)()


class Final:
    """Names the method of a stream helper that returns the whole reply."""

    def __init__(self, final):
        self.final = final


async def chat(client, name, stream, is_async, messages=None, tag="", **more):
    call = client.chat.completions.stream if stream else client.chat.completions.create
    reply = await send(call, Final("get_final_completion") if stream else None, client, is_async, model=name,
                       messages=messages or ASK, extra_headers=record(tag), **more)
    return reply.choices[0]


def check_chat(tag, name, choice):
    message = choice.message
    text = joined(name, False)
    equal(tag + " text", message.content, text if text or not CANNED[name]["calls"] else None)
    equal(tag + " reasoning", getattr(message, "reasoning_content", None) or "", joined(name, True))
    equal(tag + " calls", [(c.id, c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or []],
          calls_of(name))
    equal(tag + " role", message.role, "assistant")
    want = {"length": "length", "call": "tool_calls", "parallel": "tool_calls"}.get(name, "stop")
    equal(tag + " finish", choice.finish_reason, want)


async def chat_calls(client, is_async, mode):
    for name in CANNED:
        for stream in (False, True) if name != "length" else (False,):
            tag = f"openai/chat/{name}/{mode}/{'stream' if stream else 'body'}"
            choice = await chat(client, name, stream, is_async, tag=tag, **({} if stream else {"tools": CHAT_TOOLS}))
            check_chat(tag, name, choice)
            if name == "alternating":
                continue
            results = [{"role": "tool", "tool_call_id": c["id"], "content": "4"} for c in CANNED[name]["calls"]]
            forms = {"object": choice.message, "dump": choice.message.model_dump(),
                     "short": choice.message.model_dump(exclude_none=True)}
            for form, message in forms.items():
                again = await chat(client, "returned/" + name, False, is_async, tag=f"{tag}/returned-{form}",
                                   messages=[*ASK, message, *results, {"role": "user", "content": "Sure?"}])
                equal(f"{tag} returned as {form}", again.message.content, "same")


async def messages_call(client, name, stream, is_async, messages=None, tag="", **more):
    call = client.messages.stream if stream else client.messages.create
    return await send(call, Final("get_final_message") if stream else None, client, is_async, model=name,
                      messages=messages or ASK, max_tokens=64, extra_headers=record(tag), **more)


def check_message(tag, name, message):
    blocks = [{"text": b.thinking if b.type == "thinking" else b.text, "thinking": b.type == "thinking"}
              for b in message.content if b.type != "tool_use"]
    equal(tag + " blocks", blocks, CANNED[name]["parts"])
    equal(tag + " calls", [(b.id, b.name, b.input) for b in message.content if b.type == "tool_use"], calls_of(name))
    want = {"length": "max_tokens", "call": "tool_use", "parallel": "tool_use", "stop": "stop_sequence"}.get(name, "end_turn")
    equal(tag + " stop", (message.stop_reason, message.stop_sequence), (want, "END" if name == "stop" else None))
    equal(tag + " usage", (message.usage.input_tokens, message.usage.cache_read_input_tokens, message.usage.output_tokens),
          (20, 10, 12))


async def messages_calls(client, is_async, mode):
    for name in CANNED:
        for stream in (False, True):
            tag = f"anthropic/messages/{name}/{mode}/{'stream' if stream else 'body'}"
            message = await messages_call(client, name, stream, is_async, tag=tag, tools=CUSTOM_TOOLS)
            check_message(tag, name, message)
            if not message.content:
                continue
            results = [{"type": "tool_result", "tool_use_id": c["id"], "content": "4"} for c in CANNED[name]["calls"]]
            user = {"role": "user", "content": [*results, {"type": "text", "text": "Sure?"}]}
            forms = {"object": message.content, "dump": [b.model_dump() for b in message.content]}
            for form, content in forms.items():
                again = await messages_call(client, "returned/" + name, False, is_async, tag=f"{tag}/returned-{form}",
                                            messages=[*ASK, {"role": "assistant", "content": content}, user])
                equal(f"{tag} returned as {form}", again.content[0].text, "same")


async def responses_call(client, name, stream, is_async, given=None, tag="", **more):
    call = client.responses.stream if stream else client.responses.create
    return await send(call, Final("get_final_response") if stream else None, client, is_async, model=name,
                      input=given or "2+2?", extra_headers=record(tag), **more)


def check_response(tag, name, response):
    parts = [{"text": i.content[0].text, "thinking": i.type == "reasoning"} for i in response.output if i.type != "function_call"]
    equal(tag + " items", [p for p in parts if p["text"]], CANNED[name]["parts"])
    equal(tag + " calls", [(i.call_id, i.name, json.loads(i.arguments)) for i in response.output if i.type == "function_call"],
          calls_of(name))
    equal(tag + " text", response.output_text, joined(name, False))
    equal(tag + " status", response.status, "incomplete" if name == "length" else "completed")
    equal(tag + " usage", (response.usage.input_tokens, response.usage.output_tokens, response.usage.total_tokens), (30, 12, 42))


async def responses_calls(client, is_async, mode):
    for name in CANNED:
        for stream in (False, True) if name != "length" else (False,):
            tag = f"openai/responses/{name}/{mode}/{'stream' if stream else 'body'}"
            response = await responses_call(client, name, stream, is_async, tag=tag, **({} if stream else {"tools": FLAT_TOOLS}))
            check_response(tag, name, response)
            results = [{"type": "function_call_output", "call_id": c["id"], "output": "4"} for c in CANNED[name]["calls"]]
            forms = {"object": response.output, "dump": [i.model_dump() for i in response.output]}
            for form, items in forms.items():
                again = await responses_call(client, "returned/" + name, False, is_async, tag=f"{tag}/returned-{form}",
                                             given=[*ASK, *items, *results, {"role": "user", "content": "Sure?"}])
                equal(f"{tag} returned as {form}", again.output_text, "same")


async def raw_streams(oai, ant, is_async, mode):
    """Reads events without the helpers that join them."""

    async def read(call, **arguments):
        stream = call(stream=True, **arguments)
        if is_async:
            return [event async for event in await stream]
        return list(stream)

    tag = f"openai/completions/logprobs/{mode}"
    body = oai.completions.create(model="logprobs", prompt="xy", echo=True, logprobs=1, max_tokens=2,
                                  extra_headers=record(tag))
    choice = (await body if is_async else body).choices[0]
    equal(tag, choice.text, "xyab")
    equal(tag, choice.logprobs.token_logprobs, [None, -2, -0.5, -1])
    equal(tag, (choice.logprobs.tokens, choice.logprobs.text_offset), (["x", "y", "a", "b"], [0, 1, 2, 3]))
    equal(tag, choice.logprobs.top_logprobs[2], {"c": -0.25})
    tag = f"openai/completions/many/{mode}/stream"
    events = await read(oai.completions.create, model="text", prompt=["2+2=", [1, 2]], n=2, echo=True,
                        stream_options={"include_usage": True}, extra_headers=record(tag))
    texts = {i: "".join(c.text for e in events for c in e.choices if c.index == i) for i in range(5)}
    equal(tag, texts, {0: "2+2=Four. ✓", 1: "2+2=Four. ✓", 2: "2+2=Four. ✓", 3: "2+2=Four. ✓", 4: ""})
    equal(tag, events[-1].usage.total_tokens, 42)
    tag = f"openai/chat/logprobs-n/{mode}"
    body = oai.chat.completions.create(model="logprobs", messages=ASK, logprobs=True, top_logprobs=1, n=2,
                                       extra_headers=record(tag))
    reply = await body if is_async else body
    equal(tag, [[(t.token, t.logprob) for t in c.logprobs.content] for c in reply.choices], [[("a", -0.5), ("b", -1)]] * 2)
    equal(tag, reply.choices[0].logprobs.content[0].top_logprobs[0].token, "c")
    equal(tag, (reply.usage.total_tokens, reply.usage.prompt_tokens_details.cached_tokens), (42, 10))
    tag = f"openai/chat/usage/{mode}/stream"
    events = await read(oai.chat.completions.create, model="long", messages=ASK, stream_options={"include_usage": True}, tools=CHAT_TOOLS,
                        extra_headers=record(tag))
    equal(tag, "".join(e.choices[0].delta.content or "" for e in events if e.choices), joined("long", False))
    equal(tag, (events[-1].choices, events[-1].usage.completion_tokens), ([], 12))
    for event in events:
        type(event).model_validate(event.model_dump(exclude_unset=True))
    tag = f"openai/responses/length/{mode}/stream"
    events = await read(oai.responses.create, model="length", input="2+2?", tools=FLAT_TOOLS,
                        extra_headers=record(tag))
    equal(tag, [e.sequence_number for e in events], list(range(len(events))))
    equal(tag, (events[-1].type, events[-1].response.incomplete_details.reason), ("response.incomplete", "max_output_tokens"))
    for event in events:
        type(event).model_validate(event.model_dump(by_alias=True))
    tag = f"openai/responses/continued/{mode}"
    body = oai.responses.create(model="text", previous_response_id="resp_0", extra_headers=record(tag),
                                input=[{"type": "function_call_output", "call_id": "call_9", "output": "4"}])
    equal(tag, (await body if is_async else body).previous_response_id, "resp_0")
    tag = f"anthropic/messages/events/{mode}/stream"
    events = await read(ant.messages.create, model="parallel", messages=ASK, max_tokens=9, tools=CUSTOM_TOOLS,
                        extra_headers=record(tag))
    kinds = [e.type for e in events]
    equal(tag, (kinds[0], kinds[-2:]), ("message_start", ["message_delta", "message_stop"]))
    for event in events:
        type(event).model_validate(event.model_dump(exclude_unset=True))


async def small_calls(oai, ant, is_async, mode):
    counted = ant.messages.count_tokens(model="text", messages=ASK, tools=CUSTOM_TOOLS,
                                        extra_headers=record(f"anthropic/count/{mode}"))
    equal("count", (await counted if is_async else counted).input_tokens, 42)
    for client in (oai, ant):
        page = client.models.list()
        equal("models", [m.id for m in (await page if is_async else page).data], ["policy", "judge"])
        model = client.models.retrieve("policy")
        equal("model", (await model if is_async else model).id, "policy")


# The exceptions of both clients, by the model error/NAME.
ERRORS = {
    "invalid": ("BadRequestError", 400, None, "invalid_request_error"),
    "large": ("APIStatusError", 413, "request_too_large", "request_too_large"),
    "auth": ("AuthenticationError", 401, "invalid_api_key", "authentication_error"),
    "permission": ("PermissionDeniedError", 403, "permission_denied", "permission_error"),
    "notfound": ("NotFoundError", 404, "model_not_found", "not_found_error"),
    "context": ("BadRequestError", 400, "context_length_exceeded", "invalid_request_error"),
    "quota": ("RateLimitError", 429, "insufficient_quota", "billing_error"),
    "rate": ("RateLimitError", 429, "rate_limit_exceeded", "rate_limit_error"),
    "overloaded": ("InternalServerError", 503, "server_overloaded", "overloaded_error"),
    "internal": ("InternalServerError", 500, None, "api_error"),
}
# Where Anthropic's client has other statuses, with the exceptions of the newer and of the older client.
ANTHROPIC_ERRORS = {
    "large": (["ContentTooLargeError", "RequestTooLargeError"], 413), "quota": (["PaymentRequiredError", "APIStatusError"], 402),
    "overloaded": (["OverloadedError"], 529),
}


def errors(oai, ant):
    """Checks the exceptions for replies with an error, and how often clients try again."""
    for name, (exception, status, code, kind) in ERRORS.items():
        for call in (lambda **a: oai.chat.completions.create(messages=ASK, **a), lambda **a: oai.responses.create(input="a", **a),
                     lambda **a: oai.completions.create(prompt="a", **a)):
            try:
                call(model="error/" + name)
                raise SystemExit(f"{name}: no exception")
            except openai.APIStatusError as e:
                equal("openai error " + name, (type(e).__name__, e.status_code, e.code), (exception, status, code))
                if name == "context":
                    equal("openai context", "maximum context length is 4096" in e.message, True)
        try:
            ant.messages.create(model="error/" + name, messages=ASK, max_tokens=9)
            raise SystemExit(f"{name}: no exception")
        except anthropic.APIStatusError as e:
            exceptions, status = ANTHROPIC_ERRORS.get(name, ([exception], status))
            equal("anthropic error " + name, (type(e).__name__ in exceptions, e.status_code), (True, status))
            equal("anthropic error " + name, e.body["error"]["type"], kind)
            if name == "context":
                equal("anthropic context", "prompt is too long: 5000 tokens > 4096" in e.message, True)
    for name in ("quota", "rate", "overloaded"):
        for label, make in {
            "openai": lambda h: openai.OpenAI(**OPENAI).chat.completions.create(
                model="error/" + name, messages=ASK, extra_headers=h),
            "anthropic": lambda h: anthropic.Anthropic(**ANTHROPIC).messages.create(
                model="error/" + name, messages=ASK, max_tokens=9, extra_headers=h),
        }.items():
            try:
                make(record(f"{label}/retry/{name}"))
            except (openai.APIStatusError, anthropic.APIStatusError):
                pass


def broken_streams(oai, ant):
    """Checks that an error after the first event is an exception."""
    for name, call, error in (
        ("chat", lambda: oai.chat.completions.create(model="broken", messages=ASK, stream=True), openai.APIError),
        ("completions", lambda: oai.completions.create(model="broken", prompt="a", stream=True), openai.APIError),
        ("responses", lambda: oai.responses.create(model="broken", input="a", stream=True), openai.APIError),
        ("messages", lambda: ant.messages.create(model="broken", messages=ASK, max_tokens=9, stream=True), anthropic.APIError),
    ):
        try:
            list(call())
            raise SystemExit(f"broken stream of {name}: no exception")
        except error as e:
            equal("broken stream of " + name, "Overloaded." in str(e), True)


def every_option(oai, ant, options):
    """Makes a request for each option; what the server does with it is the business of the codecs' own tests."""
    creates = {
        "chat/completions": oai.chat.completions.create, "completions": oai.completions.create,
        "responses": oai.responses.create, "messages": ant.messages.create,
        "messages/count_tokens": ant.messages.count_tokens,
    }
    for endpoint, create in creates.items():
        for name, arguments in options.requests(endpoint):
            try:
                reply = create(**arguments, extra_headers=record(f"option/{endpoint}/{name}"))
                if "stream" in arguments:
                    list(reply)
            except (openai.BadRequestError, anthropic.BadRequestError):
                pass


async def main():
    oai, ant = openai.OpenAI(**OPENAI, max_retries=0), anthropic.Anthropic(**ANTHROPIC, max_retries=0)
    async_oai = openai.AsyncOpenAI(**OPENAI, max_retries=0)
    async_ant = anthropic.AsyncAnthropic(**ANTHROPIC, max_retries=0)
    for openai_client, anthropic_client, is_async, mode in ((oai, ant, False, "sync"), (async_oai, async_ant, True, "async")):
        await chat_calls(openai_client, is_async, mode)
        await responses_calls(openai_client, is_async, mode)
        await messages_calls(anthropic_client, is_async, mode)
        await raw_streams(openai_client, anthropic_client, is_async, mode)
        await small_calls(openai_client, anthropic_client, is_async, mode)
    errors(oai, ant)
    broken_streams(oai, ant)
    versions = {name: importlib.metadata.version(name) for name in ("anthropic", "openai")}
    if "--options" in sys.argv:
        import options  # The older clients lack types that it names.
        every_option(oai, ant, options)
        print(json.dumps({"versions": versions, "options": {e: options.public(e) for e in options.ENDPOINTS}}))
    print(f"{checks} checks by {versions}", file=sys.stderr)


asyncio.run(main())
