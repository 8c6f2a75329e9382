#!/usr/bin/env python3
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes internal/renderer/families/testdata: a share of the renderers' records, and vocabularies for just them.

    python share_records.py --from DIR        (needs the packages of ../models/requirements.txt)

DIR has renderers/<renderer>.jsonl.gz and a folder a family with tokenizer.json.gz or tiktoken.model.gz and
special_tokens.json. Kept are all prompts and examples but the long one, and every second reply, in turns over
the renderers. A vocabulary keeps what the records' ids are made of, under their own ids.

Llama's licence does not allow that. Its records are written in bytes instead: each token of text becomes the
bytes that it stands for, and each special token an id of its own. That is what a renderer gives with a
tokenizer that merges nothing, so they hold in the same way, but that borders between pieces do not show.
"""

import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "models"))
from cut_vocabularies import alphabet, cut, kimi, read, write  # noqa: E402

FAMILIES = ["deepseek_v3_1", "gpt_oss", "kimi_k2", "llama3", "nemotron3", "qwen3", "qwen3_5"]
FIELDS = ["kind", "family", "case", "error", "name", "stop", "extension", "bos", "messages", "tools", "system", "prefill",
          "ids", "weights", "message", "termination"]


def share(records, turn):
    replies = 0
    for r in records:
        if r.get("case", "").startswith("long"):
            continue
        if r["kind"] == "parse":
            replies += 1
            if (replies + turn) % 2:
                continue
        yield {k: r[k] for k in FIELDS if k in r}


def is_filler(name):
    """Whether an added token is there only to fill the vocabulary."""
    return any(word in name for word in ("reserved", "placeholder", "holder", "<SPECIAL_"))


def trim(spec, ids):
    """Leaves out the fillers that no record uses."""
    spec["added_tokens"] = [t for t in spec["added_tokens"] if t["id"] in ids or not is_filler(t["content"])]
    used = {t["content"] for t in spec["added_tokens"]}
    vocab = spec["model"]["vocab"]
    spec["model"]["vocab"] = {t: i for t, i in vocab.items() if t in used or i in ids or not is_filler(t)}
    return spec


class Bytes:
    """A vocabulary of bytes and special tokens, in place of one that may not be shared."""

    def __init__(self, spec):
        letter = {c: b for b, c in alphabet().items()}
        self.special = [t for t in spec["added_tokens"] if not is_filler(t["content"])]
        number = {t["id"]: 256 + i for i, t in enumerate(self.special)}
        self.of = {i: [letter[c] for c in t] for t, i in spec["model"]["vocab"].items() if all(c in letter for c in t)}
        self.of.update({old: [new] for old, new in number.items()})
        added = [t | {"id": number[t["id"]]} for t in self.special]
        vocab = {c: b for b, c in alphabet().items()} | {t["content"]: t["id"] for t in added}
        self.spec = spec | {"added_tokens": added, "post_processor": None, "model": spec["model"] | {"vocab": vocab, "merges": []}}

    def expand(self, record):
        for field in ("ids", "bos"):
            if field in record:
                record[field] = [b for i in record[field] for b in self.of[i]]
        if record["kind"] == "renderer" and isinstance(record["stop"][0], int):
            record["stop"] = [self.of[i][0] for i in record["stop"]]
        return record

    def weights(self, record, ids):
        """The run lengths of an example's weights, in bytes."""
        at, runs = 0, []
        for weight, count in record["weights"]:
            runs.append([weight, sum(len(self.of[i]) for i in ids[at:at + count])])
            at += count
        return runs


def in_bytes(record, vocabulary):
    if "weights" in record:
        record["weights"] = vocabulary.weights(record, record["ids"])
    return vocabulary.expand(record)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", default=os.path.join(HERE, "..", "..", "internal", "renderer", "families", "testdata"))
    arguments = parser.parse_args()
    specs = {f: kimi(os.path.join(arguments.source, f)) if f == "kimi_k2" else json.loads(read(arguments.source, f, "tokenizer.json.gz"))
             for f in FAMILIES}
    llama = Bytes(specs["llama3"])
    used = {f: set() for f in FAMILIES}
    for folder in ("renderers", "tokenizers"):
        os.makedirs(os.path.join(arguments.to, folder), exist_ok=True)
    files = sorted(f for f in os.listdir(os.path.join(arguments.source, "renderers")) if f.endswith(".jsonl.gz"))
    for turn, file in enumerate(files):
        lines = []
        for r in share(map(json.loads, read(arguments.source, "renderers", file).splitlines()), turn):
            if r["family"] == "llama3":
                r = in_bytes(r, llama)
            used[r["family"]].update(r.get("ids", ()))
            lines.append(json.dumps(r, ensure_ascii=True, separators=(",", ":")) + "\n")
        write(os.path.join(arguments.to, "renderers", file), "".join(lines))
        print(file, len(lines), "records")
    for family in FAMILIES:
        spec = llama.spec if family == "llama3" else trim(cut(specs[family], used[family]), used[family])
        write(os.path.join(arguments.to, "tokenizers", family + ".json.gz"), json.dumps(spec, ensure_ascii=False, separators=(",", ":")))
        print(family, len(spec["model"]["vocab"]), "tokens,", len(spec["model"]["merges"]), "merges")


if __name__ == "__main__":
    main()
