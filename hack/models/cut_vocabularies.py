#!/usr/bin/env python3
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes internal/tokenizer/testdata/golden: a share of the golden vectors, and vocabularies for just them.

    python cut_vocabularies.py --from DIR        (needs the packages of requirements.txt)

DIR has a folder a family with tokenizer.json.gz or tiktoken.model.gz and special_tokens.json, golden.jsonl.gz
and decode.jsonl.gz. A vocabulary keeps the bytes, the tokens that the vectors name and those that they are
merged from, all under their own ids; of the merges it keeps those that make them. What is left out is never
merged in the vectors' texts, so that these keep their ids; the reference packages are asked whether it is so.
A family whose licence does not allow this, which is Llama's, is not among them.
"""

import argparse
import base64
import gzip
import json
import os

from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
FAMILIES = ["deepseek_v3_1", "gpt_oss", "kimi_k2", "nemotron3", "qwen2_5", "qwen3", "qwen3_5"]

# The pattern that Kimi's own tokenizer class has.
KIMI = "|".join([
    r"[\p{Han}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
])


def read(*path):
    with gzip.open(os.path.join(*path), "rt", encoding="utf-8") as f:
        return f.read()


def vectors(*path):
    return [json.loads(line) for line in read(*path).splitlines()]


def write(path, text):
    """Deterministic: no name, no time stamp."""
    with open(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=9, mtime=0) as f:
        f.write(text.encode("utf-8"))


def alphabet():
    """The character that stands for each byte."""
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    rest = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(rest)}


def kimi(folder):
    """A rank file as a tokenizer.json, with every merge that it implies."""
    letters = alphabet()
    ranks = dict(line.split() for line in read(folder, "tiktoken.model.gz").splitlines() if line)
    vocab = {"".join(letters[b] for b in base64.b64decode(t)): int(r) for t, r in ranks.items()}
    merges = [(t[:i], t[i:]) for t in vocab for i in range(1, len(t)) if t[:i] in vocab and t[i:] in vocab]
    merges.sort(key=lambda m: (vocab[m[0] + m[1]], vocab[m[0]], vocab[m[1]]))
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    with open(os.path.join(folder, "special_tokens.json"), encoding="utf-8") as f:
        special = [flags | token for token in json.load(f)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": KIMI}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]}, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": True, "vocab": vocab, "merges": merges},
    }


def derivation(token, ranks):
    """The merges that make a token of its bytes, or fail to."""
    parts, made = list(token), []
    while True:
        known = [(ranks[p], i) for i, p in enumerate(zip(parts, parts[1:])) if p in ranks]
        if not known:
            return made
        i = min(known)[1]
        made.append((parts[i], parts[i + 1]))
        parts[i:i + 2] = [parts[i] + parts[i + 1]]


def cut(spec, ids):
    """Reduces a tokenizer.json to ids and what they are made of."""
    model, letters = spec["model"], set(alphabet().values())
    name = {i: t for t, i in model["vocab"].items()}
    listed = isinstance(model["merges"][0], (list, tuple))
    pairs = [tuple(m) if listed else tuple(m.split(" ")) for m in model["merges"]]
    ranks = {p: r for r, p in enumerate(pairs)}
    keep, merges = set(letters), set()
    for i in ids:
        if i in name:
            keep.add(name[i])
            merges.update(derivation(name[i], ranks))
    for a, b in merges:
        keep.update((a, b, a + b))
    vocab = {t: i for t, i in model["vocab"].items() if t in keep}
    # Numbered by the reference itself, added tokens would move down to the first id that is free.
    vocab |= {t["content"]: t["id"] for t in spec["added_tokens"]}
    model["vocab"] = dict(sorted(vocab.items(), key=lambda x: x[1]))
    model["merges"] = [list(p) if listed else " ".join(p) for p in pairs if p in merges]
    return spec


def check(spec, texts, family):
    whole, literal = Tokenizer.from_str(json.dumps(spec)), Tokenizer.from_str(json.dumps(spec))
    literal.encode_special_tokens = True
    for v in texts:
        ids, lit = whole.encode(v["text"], add_special_tokens=False).ids, literal.encode(v["text"], add_special_tokens=False).ids
        if ids != v["ids"] or lit != v.get("lit", v["ids"]):
            raise SystemExit(f"{family}: the reduced vocabulary gives other ids for {v['text']!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--from", dest="source", required=True)
    parser.add_argument("--to", default=os.path.join(HERE, "..", "..", "internal", "tokenizer", "testdata", "golden"))
    arguments = parser.parse_args()
    for family in FAMILIES:
        folder, out = os.path.join(arguments.source, family), os.path.join(arguments.to, family)
        # The first 240 are chosen by hand; of the others, made by chance, every twelfth is kept.
        texts = vectors(folder, "golden.jsonl.gz")
        texts = texts[:240] + texts[240::12]
        decodes = vectors(folder, "decode.jsonl.gz")[::6]
        ids = {i for v in texts for k in ("ids", "lit", "plain") for i in v.get(k, ())} | {i for v in decodes for i in v["ids"]}
        spec = kimi(folder) if family == "kimi_k2" else json.loads(read(folder, "tokenizer.json.gz"))
        spec = cut(spec, ids)
        check(spec, texts, family)
        os.makedirs(out, exist_ok=True)
        line = lambda v: json.dumps(v, ensure_ascii=True, separators=(",", ":")) + "\n"
        write(os.path.join(out, "tokenizer.json.gz"), json.dumps(spec, ensure_ascii=False, separators=(",", ":")))
        write(os.path.join(out, "golden.jsonl.gz"), "".join(map(line, texts)))
        write(os.path.join(out, "decode.jsonl.gz"), "".join(map(line, decodes)))
        print(f"{family}: {len(texts)} texts, {len(decodes)} decodes, {len(spec['model']['vocab'])} tokens, {len(spec['model']['merges'])} merges")


if __name__ == "__main__":
    main()
