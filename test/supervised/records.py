# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Record what tinker-cookbook's renderers make of conversations, as supervised examples.

    records.py TOKENIZERS CONVERSATIONS OUTPUT [--newest]        writes a JSON object a line

With --newest, these are the renderers that only the next version of the cookbook has.

TOKENIZERS has a file <family>.json.gz for each family of tokenizers, and CONVERSATIONS an object a line: name,
messages, perhaps tools, and trained, the indexes of the messages that are trainable. A line of the output has the
renderer, the conversation's name, the ids, and by mode of train_on_what the weights as pairs of a weight and a count, or
the error. Where CUSTOMIZED fails only because the renderer has added a system message, there are both: the weights are
those that it gives when such a message is not trainable.
"""

import contextlib
import copy
import gzip
import json
import logging
import os
import pathlib
import sys
import tempfile
import warnings
from unittest import mock

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from tinker_cookbook import renderers  # noqa: E402
from tinker_cookbook.renderers import TrainOnWhat  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

DATE = "2026-11-21"
# The renderers by the family of tokenizers; a name with + is the class with a flag of its constructor.
RENDERERS = {
    "llama3": ["role_colon", "llama3"],
    "qwen3": [
        "qwen3",
        "qwen3+keep_thinking",
        "qwen3_disable_thinking",
        "qwen3_instruct",
        "qwen3_vl",
        "qwen3_vl_instruct",
    ],
    "qwen3_5": [
        "qwen3_5",
        "qwen3_5_disable_thinking",
        "qwen3_5_preserve_thinking",
        "qwen3_8_xhigh_reasoning",
        "qwen3_8_medium_reasoning",
        "qwen3_8_low_reasoning",
        "qwen3_8_disable_thinking",
    ],
    "deepseek_v3_1": [
        "deepseekv3",
        "deepseekv3_disable_thinking",
        "deepseekv3_thinking",
        "deepseekv3_thinking+keep_thinking",
    ],
    "kimi_k2": [
        "kimi_k2",
        "kimi_k25",
        "kimi_k25_disable_thinking",
        "kimi_k26",
        "kimi_k26_disable_thinking",
        "kimi_k26_preserve_thinking",
    ],
    "nemotron3": [
        "nemotron3",
        "nemotron3_low_thinking",
        "nemotron3_disable_thinking",
        "nemotron3_preserve_thinking",
        "nemotron3_ultra",
        "nemotron3_ultra_medium_thinking",
        "nemotron3_ultra_disable_thinking",
        "nemotron3_ultra_preserve_thinking",
    ],
    "gpt_oss": ["gpt_oss_no_sysprompt", "gpt_oss_low_reasoning", "gpt_oss_medium_reasoning", "gpt_oss_high_reasoning"],
}
NEWEST = {
    "glm5_3": ["glm5_3_max_reasoning", "glm5_3_high_reasoning", "glm5_3_low_reasoning"],
    "deepseek_v4_1": [
        "deepseekv4_1",
        "deepseekv4_1_low_reasoning",
        "deepseekv4_1_max_reasoning",
        "deepseekv4_1_disable_thinking",
        "deepseekv4_1_preserve_thinking",
    ],
}
ENDS = {
    "llama3": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
    "qwen3": {"eos_token": "<|im_end|>"},
    "deepseek_v3_1": {"bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>"},
}
MODES = {
    "LastAssistant": TrainOnWhat.LAST_ASSISTANT_MESSAGE,
    "AllAssistant": TrainOnWhat.ALL_ASSISTANT_MESSAGES,
    "All": TrainOnWhat.ALL_MESSAGES,
    "Marked": TrainOnWhat.CUSTOMIZED,
}


def tokenizer(folder: pathlib.Path, family: str) -> PreTrainedTokenizerFast:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(gzip.decompress((folder / f"{family}.json.gz").read_bytes()))
        file.flush()
        found = PreTrainedTokenizerFast(tokenizer_file=file.name, **ENDS.get(family, {}))
    found.name_or_path = family
    return found


def renderer(name: str, tokens: PreTrainedTokenizerFast) -> renderers.Renderer:
    base, _, keeps = name.partition("+")
    made = renderers.get_renderer(base, tokens)
    if keeps:
        made = type(made)(tokens, strip_thinking_from_history=False)
    if base.startswith("gpt_oss"):
        made.current_date = DATE
    return made


def messages(made: renderers.Renderer, row: dict, marked: bool) -> list[dict]:
    """Return the messages of a row, with the tools declared as the renderer does it."""
    out = copy.deepcopy(row["messages"])
    for i, message in enumerate(out):
        if "tool_calls" in message:
            message["tool_calls"] = [renderers.ToolCall(**call) for call in message["tool_calls"]]
        if marked:
            message["trainable"] = i in row["trained"]
    if "tools" not in row:
        return out
    system = out.pop(0) if out[0]["role"] == "system" else None
    front = made.create_conversation_prefix_with_tools(row["tools"], system["content"] if system else "")
    if marked:
        for message in front:
            message["trainable"] = False
        if system:
            declared = [message for message in front if message["role"] == "system"] or front
            declared[-1]["trainable"] = system["trainable"]
    return front + out


def runs(weights: list[float]) -> list[list[int]]:
    out: list[list[int]] = []
    for weight in weights:
        if out and out[-1][0] == int(weight):
            out[-1][1] += 1
        else:
            out.append([int(weight), 1])
    return out


@contextlib.contextmanager
def marking(made: renderers.Renderer):
    """Let the system messages that a renderer adds be not trainable. CUSTOMIZED fails on them, as they do not say."""

    def marked(found):
        if isinstance(found, dict):
            return {"trainable": False, **found}
        return found and [{"trainable": False, **message} for message in found]

    patches = [
        mock.patch.object(made, name, lambda *given, own=getattr(made, name): marked(own(*given)))
        for name in ("_get_system_message", "_ensure_system_message", "_normalize_messages")
        if hasattr(made, name)
    ]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


def example(made: renderers.Renderer, row: dict, mode: str) -> tuple[list[int], list[list[int]]]:
    given, weights = made.build_supervised_example(messages(made, row, mode == "Marked"), train_on_what=MODES[mode])
    return given.to_ints(), runs(weights.tolist())


def record(made: renderers.Renderer, name: str, family: str, row: dict) -> dict:
    out: dict = {"renderer": name, "family": family, "case": row["name"], "weights": {}, "errors": {}}
    for mode in MODES:
        try:
            ids, weights = example(made, row, mode)
        except Exception as error:  # a refusal is part of the record
            out["errors"][mode] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            if not isinstance(error, AssertionError):
                continue
            with marking(made):
                ids, weights = example(made, row, mode)
        if out.setdefault("ids", ids) != ids:
            raise ValueError(f"{name}, {row['name']}: ids differ between modes")
        out["weights"][mode] = weights
    return out


def main() -> None:
    folder, conversations, output = map(pathlib.Path, sys.argv[1:4])
    rows = [json.loads(line) for line in conversations.read_text().splitlines()]
    with output.open("w") as file:
        for family, names in (NEWEST if "--newest" in sys.argv else RENDERERS).items():
            tokens = tokenizer(folder, family)
            for name in names:
                made = renderer(name, tokens)
                for row in rows:
                    file.write(json.dumps(record(made, name, family, row), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
