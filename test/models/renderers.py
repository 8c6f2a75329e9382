# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Record what tinker-cookbook's renderers of GLM-5.3 and DeepSeek-V4.1 make of conversations and replies.

    renderers.py TESTDATA OUTPUT

TESTDATA is internal/renderer/families/testdata, whose records of another renderer have the conversations; those of MORE are
added. OUTPUT gets tokenizers/FAMILY.json.gz and renderers/NAME.jsonl.gz in the form of TESTDATA. Neither vocabulary was at
hand: a tokenizer here has the bytes, the family's special tokens, and merges of all pairs of a few characters, so that ids
differ where a renderer tokenises other pieces. It needs the packages of ../conformance/requirements/capture.txt.
"""

import copy
import gzip
import itertools
import json
import logging
import os
import pathlib
import sys
import tempfile
import types
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import numpy  # noqa: E402
import transformers  # noqa: E402  it looks for torch once

# The cookbook makes the weights of an example with these of torch.
torch = sys.modules["torch"] = types.ModuleType("torch")
torch.Tensor, torch.tensor, torch.zeros, torch.cat = numpy.ndarray, numpy.array, numpy.zeros, numpy.concatenate

from tinker_cookbook import renderers  # noqa: E402
from tinker_cookbook.renderers.base import message_to_jsonable  # noqa: E402
from transformers.convert_slow_tokenizer import bytes_to_unicode  # noqa: E402

SOURCE = "deepseekv3_thinking"  # its records have the conversations
MERGED = "\n .:\"<>/{}s4"
# The tokens of each family; the second list is of those that are not special.
TOKENS = {
    "glm5_3": (
        ["<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"],
        ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<arg_key>",
         "</arg_key>", "<arg_value>", "</arg_value>"],
    ),
    "deepseek_v4_1": (
        ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜System｜>", "<｜User｜>", "<｜Assistant｜>", "｜DSML｜"],
        ["<think>", "</think>"],
    ),
}
RENDERERS = {
    "glm5_3": ["glm5_3_max_reasoning", "glm5_3_high_reasoning", "glm5_3_low_reasoning"],
    "deepseek_v4_1": ["deepseekv4_1", "deepseekv4_1_low_reasoning", "deepseekv4_1_max_reasoning",
                      "deepseekv4_1_disable_thinking", "deepseekv4_1_preserve_thinking"],
}


def call(name, arguments, number):
    return {"type": "function", "id": number, "function": {"name": name, "arguments": arguments}}


def assistant(content, *calls):
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {})}


def tool(content, number=None):
    return {"role": "tool", "content": content, **({"tool_call_id": number} if number is not None else {})}


def thought(thinking, text):
    return [{"type": "thinking", "thinking": thinking}, {"type": "text", "text": text}]


USER, AGAIN = {"role": "user", "content": "q"}, {"role": "user", "content": "\n\nagain."}
LATER = {"role": "system", "content": "later."}
A, B, C = call("a", '{"k": "v\\n<x>", "n": 4.0, "u": "é", "l": ["é", {"s": null}]}', "1"), call("b", "{}", "2"), call("c", "", "3")
ADD = {"name": "add", "description": "Adds \"4\".\n</think>", "parameters": {"type": "object", "properties": {"é": {"type": "number"}}}}
# Conversations that only these formats write in a way of their own.
MORE = {
    "results_sorted": [USER, assistant("x", A, B), tool("of b\n", "2"), tool("of a", "1"), AGAIN],
    "results_of_some": [USER, assistant("x", A, B, C), tool("of c", "3"), tool("of a", "1")],
    "results_unknown": [USER, assistant("x", A, B), tool("of b", "2"), tool("?", "9"), tool("of a", "1")],
    "results_twice": [USER, assistant("x", A, B), tool("of b", "2"), tool("of b again", "2")],
    "results_unnamed": [USER, assistant("x", A, B), tool("of b", "2"), tool("of a")],
    "results_around_user": [USER, assistant("x", A, B), tool("of b", "2"), AGAIN, tool("of a", "1"), assistant("y")],
    "results_after_answer": [USER, assistant("x", A), tool("of a", "1"), assistant("y"), tool("of b", "2"), tool("of a", "1")],
    "results_without_calls": [USER, assistant("x\n"), tool("orphan "), AGAIN, assistant("y", B)],
    "calls_and_user": [USER, assistant(thought("t\n", "\nx\n"), A, B), AGAIN, assistant("y"), AGAIN],
    "calls_and_system": [USER, assistant(thought("t", "x"), A), LATER, assistant(thought("t", "y")), LATER],
    "system_before_answer": [LATER, assistant("x"), LATER, assistant("y")],
    "reasoning_in_turn": [USER, assistant(thought("t1", ""), A), tool("r", "1"), assistant(thought("t2 ", " done"), B), tool("r", "2")],
    "reasoning_dropped": [USER, assistant(thought("t1", "x")), AGAIN, assistant(thought("t2", "y"))],
    "reasoning_in_text": [USER, assistant("<think>a</think>b<think>c</think> d "), AGAIN, assistant("e</think>\n\nf")],
    "reasoning_reopened": [USER, assistant("<think>a<think>b</think>c"), AGAIN],
    "answers_end_with_space": [USER, assistant("x \n"), assistant("\ty\n", B), LATER],
    "arguments_in_text": [USER, assistant("x", call("a", '"{\\"k\\": true}"', "1")), tool("r", "1")],
    "arguments_list": [USER, assistant("x", call("a", "[1, 2]", "1")), tool("r", "1")],
    "arguments_broken": [USER, assistant("x", call("a", '{"k": ', "1")), tool("r", "1")],
    "arguments_of_all_types": [USER, assistant("", call("f", '{"a": true, "b": null, "c": -0.0, "d": 1e16, "e": "", "f": "\\"", "g": {"h": []}}', "1"))],
}
DECLARED = {
    "declared_reasoning": ("Be brief.\n", [LATER | {"role": "user"}, assistant(thought("t", "x")), AGAIN, assistant(thought("u", "y"), A), tool("r", "1")]),
    "declared_alone": ("", [USER, assistant(thought("t", "x"))]),
    "declared_then_system": ("Be brief.", [LATER, USER, assistant(thought("t", "x")), AGAIN]),
}


def keyed(name, *pairs):
    return "<tool_call>" + name + "".join(f"<arg_key>{k}</arg_key><arg_value>{v}</arg_value>" for k, v in pairs) + "</tool_call>"


def invoke(name, *parameters):
    return f'<｜DSML｜ invoke name="{name}">\n' + "\n".join(
        f'<｜DSML｜ parameter name="{k}" string="{s}">{v}</｜DSML｜ parameter>' for k, s, v in parameters
    ) + "\n</｜DSML｜ invoke>"


def block(*invokes):
    return "<｜DSML｜ calls>\n" + "\n".join(invokes) + "\n</｜DSML｜ calls>"


REPLIES = {
    "plain": "Hello there.", "spaces": "  padded \n", "unicode": "你好 \U0001f600 é", "empty_lines": "\n\n",
    "think_rest": "reasoning here\n</think>\n\nanswer", "think_whole": "<think>x</think>y", "think_open": "<think>never ends",
    "think_close_only": "</think>answer", "think_two": "a</think>b<think>c</think>d", "think_nested": "a<think>b</think>c</think>d",
    "json_call": 'ok</think>now<tool_call>{"name": "a", "arguments": {"x": 1.50}}</tool_call> after', "json_open": '<tool_call>{"name"',
    "json_bad": '<tool_call>{"name": "a", "arguments": {</tool_call>',
    "keyed": keyed("get_weather", ("location", "Paris"), ("days", "3")), "keyed_two": "t</think>x" + keyed("a") + "\n" + keyed("b-c.d", ("k", "v")),
    "keyed_types": keyed("f", ("i", "3"), ("b", "true"), ("n", "null"), ("s", '"quoted"'), ("l", "[1, 2]"), ("o", '{"a": "é"}'),
                         ("t", "True"), ("e", ""), ("w", " 7\n"), ("z", "\u00a07"), ("h", "NaN"), ("g", "007")),
    "keyed_spaces": "<tool_call>\n f \n<arg_key> k </arg_key>\n\u00a0<arg_value> v </arg_value>\n</tool_call>",
    "keyed_name": keyed("a b", ("k", "v")), "keyed_no_name": keyed("", ("k", "v")), "keyed_bad_name": keyed("!", ("k", "v")),
    "keyed_unicode_name": keyed("größe_4", ("k", "v")), "keyed_same": keyed("f", ("k", "1"), ("k", "2")),
    "keyed_empty_key": keyed("f", (" ", "1")), "keyed_junk": "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value>junk"
    "<arg_key>b</arg_key><arg_value>2</arg_value></tool_call>", "keyed_tail": "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value>junk</tool_call>",
    "keyed_no_value": "<tool_call>f<arg_key>a</arg_key></tool_call>", "keyed_value_open": "<tool_call>f<arg_key>a</arg_key><arg_value>1</tool_call>",
    "keyed_long_key": "<tool_call>f<arg_key>a</arg_key>b</arg_key><arg_value>1</arg_value></tool_call>", "keyed_only_name": "<tool_call>now</tool_call>",
    "keyed_lines": keyed("f", ("code", "def f():\n    return 1\n")), "keyed_in_think": "maybe " + keyed("a") + "</think>done",
    "dsml": block(invoke("get_weather", ("location", "true", "Paris"), ("days", "false", "3"))), "dsml_text": "r</think>Look.\n\n" + block(invoke("a")),
    "dsml_two": "x" + block(invoke("a", ("k", "true", "1")), invoke("b", ("k", "false", '{"z": [1, "é"]}'))), "dsml_bad_json": block(invoke("a", ("k", "false", "{x"))),
    "dsml_good_and_bad": "\n\n" + block(invoke("a"), invoke("b", ("k", "false", "tru"))), "dsml_twice": block(invoke("a", ("k", "true", "1"), ("k", "true", "2"))),
    "dsml_no_name": block(invoke(" ")), "dsml_no_key": block(invoke("a", ("", "true", "1"))), "dsml_other_type": block(invoke("a", ("k", "maybe", "1"))),
    "dsml_other_type_first": block(invoke("a", ("k", "maybe", "1"), ("l", "true", "2"))), "dsml_outside": block("text", invoke("a")),
    "dsml_inside": block('<｜DSML｜ invoke name="a">\ntext\n</｜DSML｜ invoke>'), "dsml_none": block(), "dsml_open": "x\n\n<｜DSML｜ calls>\n" + invoke("a"),
    "dsml_open_invoke": block('<｜DSML｜ invoke name="a">\n'), "dsml_bare": "x" + invoke("a"), "dsml_after": block(invoke("a")) + "\n\nmore", "dsml_space_after": block(invoke("a")) + " \n",
    "dsml_two_blocks": block(invoke("a")) + "\n\n" + block(invoke("b")), "dsml_open_then_block": "<｜DSML｜ calls>" + block(invoke("a")), "dsml_no_line": block(invoke("a").replace('">\n', '">')),
    "dsml_lines": block(invoke("a", ("code", "true", "def f():\n    return 1\n\n"), ("e", "true", ""))), "dsml_in_think": "maybe " + block(invoke("a")) + "</think>done",
    "dsml_marker": "the ｜DSML｜ token", "dsml_numbers": block(invoke("a", ("k", "false", " 1e16 "), ("l", "false", "-0"), ("m", "false", "NaN"))),
}


def vocabulary(family):
    """Return a tokenizer.json of the bytes, the merges and the special tokens of a family."""
    letters = bytes_to_unicode()
    known = {letters[b]: b for b in range(256)}
    merges = [[letters[ord(x)], letters[ord(y)]] for x, y in itertools.product(MERGED, MERGED)]
    for x, y in merges:
        known[x + y] = len(known)
    added = []
    for special, names in zip((True, False), TOKENS[family]):
        for name in names:
            added.append({"id": len(known) + len(added), "content": name, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": special})
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
        "post_processor": None, "decoder": level, "model": {"type": "BPE", "dropout": None, "unk_token": None,
        "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
        "ignore_merges": False, "vocab": known, "merges": merges},
    }


def load(spec):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(spec, file)
        file.flush()
        return transformers.PreTrainedTokenizerFast(tokenizer_file=file.name)


def conversations(testdata):
    for line in gzip.open(testdata / "renderers" / f"{SOURCE}.jsonl.gz", "rt"):
        record = json.loads(line)
        if record["kind"] == "prompt":
            yield {k: record[k] for k in ("case", "messages", "tools", "system", "prefill") if k in record}
    for name, messages in MORE.items():
        yield {"case": name, "messages": messages}
    for name, (system, messages) in DECLARED.items():
        yield {"case": name, "tools": [ADD, ADD | {"name": "now"}], "system": system, "messages": messages}


def parsed(plain):
    out = copy.deepcopy(plain)
    for message in out:
        if "tool_calls" in message:
            message["tool_calls"] = [renderers.ToolCall(**given) for given in message["tool_calls"]]
    return out


def attempt(result):
    try:
        return result()
    except Exception as error:  # a refusal is part of the record
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}


def prompt(made, case):
    messages = parsed(case["messages"])
    if "tools" in case:
        messages = made.create_conversation_prefix_with_tools(case["tools"], case.get("system", "")) + messages
    return {"ids": made.build_generation_prompt(messages, prefill=case.get("prefill")).to_ints()}


def train(made, case):
    given, weights = made.build_supervised_example(parsed(case["messages"]))
    return {"ids": given.to_ints(), "weights": [[int(w), len(list(same))] for w, same in itertools.groupby(weights.tolist())]}


def parse(made, ids):
    message, ending = made.parse_response(list(ids))
    return {"message": message_to_jsonable(message), "termination": str(ending.value)}


def records(name, family, tokens, testdata):
    made = renderers.get_renderer(name, tokens)
    stops = made.get_stop_sequences()
    yield {"kind": "renderer", "name": name, "stop": stops, "extension": made.has_extension_property, "bos": list(made._bos_tokens)}
    for case in conversations(testdata):
        yield {"kind": "prompt", **case, **attempt(lambda: prompt(made, case))}
        if case["messages"] and case["messages"][-1]["role"] == "assistant" and "tools" not in case:
            yield {"kind": "train", "case": case["case"], **attempt(lambda: train(made, case))}
    for n, (case, text) in enumerate(REPLIES.items()):
        ids = tokens.encode(text, add_special_tokens=False)
        variants = {"stop": ids + [stops[n % len(stops)]]}
        if n % 4 == 0:
            variants |= {"open": ids, "cut": ids[:-1], "twice": ids + [stops[0], stops[-1]], "early": [stops[0], *ids]}
        for kind, reply in variants.items():
            yield {"kind": "parse", "case": f"{case}/{kind}", "ids": reply, **attempt(lambda: parse(made, reply))}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as zipped:
        zipped.write(text.encode())


def main():
    testdata, output = map(pathlib.Path, sys.argv[1:])
    for family, names in RENDERERS.items():
        spec = vocabulary(family)
        write(output / "tokenizers" / f"{family}.json.gz", json.dumps(spec, ensure_ascii=False, separators=(",", ":")))
        tokens = load(spec)
        for name in names:
            lines = [json.dumps({**r, "family": family}, separators=(",", ":")) + "\n" for r in records(name, family, tokens, testdata)]
            write(output / "renderers" / f"{name}.jsonl.gz", "".join(lines))


if __name__ == "__main__":
    main()
