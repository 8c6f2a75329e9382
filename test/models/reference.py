#!/usr/bin/env python3
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers for the reference packages, one line of JSON for each line of JSON that it is asked.

    reference.py tokenizer FILE              {"text"} -> {"ids", "lit", "plain"}; {"ids"} -> {"text", "skip"}
    reference.py tiktoken FILE SPLIT SPECIALS [--kimi]      the same, of a rank file
    reference.py split PATTERNS              {"text"} -> {"sizes"}: bytes of each piece
    reference.py regex                       {"pattern", "text"} -> {"sizes", "matches"} or {"error"} or {"gave_up"}: bytes of each piece, texts of matches
    reference.py nfc|nfd|nfkc|nfkd           {"text"} -> {"text"}
    reference.py train SETTINGS OUT          makes a tokenizer.json with the settings of another one
    reference.py train-all FOLDER            makes NAME.json for each NAME.settings
    reference.py ranks COUNT OUT             makes a rank file
    reference.py speed DOCUMENTS WHAT ...    bytes a second, encoding and decoding a list of documents

PATTERNS, SPLIT and SPECIALS are JSON.
"""

import base64
import functools
import json
import os
import random
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import tiktoken
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers, trainers


def serve(answer):
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()


class HuggingFace:
    def __init__(self, file):
        with open(file, encoding="utf-8") as f:
            text = f.read()
        self.all, self.literal = Tokenizer.from_str(text), Tokenizer.from_str(text)
        self.literal.encode_special_tokens = True
        spec = json.loads(text)
        spec["added_tokens"], spec["post_processor"] = [], None
        self.none = Tokenizer.from_str(json.dumps(spec))

    def __call__(self, q):
        if "ids" in q:
            return {"text": self.all.decode(q["ids"], skip_special_tokens=False), "skip": self.all.decode(q["ids"], skip_special_tokens=True)}
        ids = [t.encode(q["text"], add_special_tokens=False).ids for t in (self.all, self.literal, self.none)]
        return dict(zip(("ids", "lit", "plain"), ids))


class Tiktoken:
    def __init__(self, file, pattern, specials, kimi):
        with open(file, encoding="ascii") as f:
            ranks = {base64.b64decode(t): int(r) for t, r in (line.split() for line in f if line.strip())}
        self.encoding = tiktoken.Encoding("reference", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
        self.portions = portions if kimi else lambda text: [text]

    def __call__(self, q):
        if "ids" in q:
            text = self.encoding.decode(q["ids"])
            return {"text": text, "skip": text}
        cut = list(self.portions(q["text"]))
        plain = [i for s in cut for i in self.encoding.encode(s, disallowed_special=())]
        ids = [i for s in cut for i in self.encoding.encode(s, allowed_special="all")]
        return {"ids": ids, "lit": plain, "plain": plain}


def portions(text):
    """What Kimi's tokenizer class makes of a text before it asks tiktoken."""
    for start in range(0, len(text), 400_000):
        part, begin, row = text[start:start + 400_000], 0, 0
        for i, c in enumerate(part):
            row = row + 1 if i and c.isspace() == part[i - 1].isspace() else 1
            if row > 25_000:
                yield part[begin:i]
                begin, row = i, 1
        yield part[begin:]


def splitter(patterns):
    steps = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), "isolated") for p in patterns])
    return lambda q: {"sizes": [len(p.encode("utf-8")) for p, _ in steps.pre_tokenize_str(q["text"])]}


@functools.lru_cache(maxsize=64)
def pattern_steps(pattern):
    try:
        return [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.Split(Regex(pattern), "removed", invert=True)]
    except Exception as e:  # pylint: disable=broad-except
        return str(e)


def regex(q):
    """The pieces that a pattern cuts a text into, and which of them are matches."""
    steps = pattern_steps(q["pattern"])
    if isinstance(steps, str):
        return {"error": steps}
    try:
        cut, kept = ([p for p, _ in step.pre_tokenize_str(q["text"])] for step in steps)
    except BaseException as e:  # pylint: disable=broad-except
        # Oniguruma gives up after ten million attempts, and the package panics.
        if "retry-limit" not in str(e):
            raise
        return {"gave_up": True}
    return {"sizes": [len(p.encode("utf-8")) for p in cut], "matches": kept}


def corpus():
    """Text to train on: Python's own sources, and characters of every kind."""
    chance = random.Random(1)
    folder, size = os.path.dirname(os.__file__), 0
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py") and size < 2_000_000:
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                text = f.read()
            size += len(text)
            yield text
    blocks = [(0xA0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF), (0x3040, 0x30FF),
              (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0x1F300, 0x1F64F), (0x300, 0x36F), (0x2000, 0x206F), (0x2460, 0x24FF)]
    for _ in range(20_000):
        first, last = chance.choice(blocks)
        words = ["".join(chr(min(last, first + int(chance.expovariate(0.05)))) for _ in range(chance.randint(1, 6))) for _ in range(8)]
        yield chance.choice(["", " "]).join(words)


def train(settings, out):
    """A small vocabulary with another one's split, normaliser, rules and added tokens."""
    with open(settings, encoding="utf-8") as f:
        spec = json.load(f)
    added, within = spec["added_tokens"], spec["added_tokens"][0]["id"] == 0
    spec["added_tokens"], spec["post_processor"] = [], None
    model = spec["model"]
    model["vocab"], model["merges"] = {}, []
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    first = [t["content"] for t in added] if within else []
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=8000 + len(first), show_progress=False, special_tokens=first, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    spec["model"] |= {k: v for k, v in json.loads(tokenizer.to_str())["model"].items() if k in ("vocab", "merges")}
    # Some tokens lose their merges, and are reached only where a whole piece wins.
    chance = random.Random(2)
    model["merges"] = [m for m in model["merges"] if chance.random() > 0.01]
    taken = len(model["vocab"])
    for token in added:
        known = model["vocab"].get(token["content"])
        token["id"] = taken if known is None else known
        taken += known is None
    spec["added_tokens"] = added
    with open(out, "w", encoding="utf-8") as f:
        json.dump(spec, f, ensure_ascii=False)


def train_all(folder):
    """Small vocabularies for the files NAME.settings of a folder, which say how a tokenizer.json NAME.json is made."""
    chance = random.Random(4)
    lines = [line for text in corpus() for line in text.splitlines() if line.strip()]
    lines = chance.sample(lines, 4000) + ["  ".join(chance.sample(lines, 3)) for _ in range(200)]
    names = sorted(n.removesuffix(".settings") for n in os.listdir(folder) if n.endswith(".settings"))
    all_settings, models = {}, {}
    for name in names:
        with open(os.path.join(folder, name + ".settings"), encoding="utf-8") as f:
            all_settings[name] = json.load(f)
    for name, settings in sorted(all_settings.items(), key=lambda item: bool(item[1]["like"])):
        spec, model = settings["spec"], settings["spec"]["model"]
        added, spec["added_tokens"] = spec["added_tokens"], []
        if not settings["like"]:
            models[name] = train_one(settings, lines)
        model |= {k: models[settings["like"] or name][k] for k in ("vocab", "merges")}
        taken = len(model["vocab"])
        for token in added:
            known = model["vocab"].get(token["content"])
            token["id"] = taken if known is None else known
            taken += known is None
        spec["added_tokens"] = added
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as f:
            json.dump(spec, f, ensure_ascii=False)


def train_one(settings, lines):
    spec = settings["spec"] | {"decoder": None, "model": {"type": "BPE", "vocab": {}, "merges": []}}
    unknown = settings["spec"]["model"]["unk_token"]
    first = [unknown] if unknown else []
    if settings["bytes"]:
        first += [f"<0x{b:02X}>" for b in range(256) if b not in settings["missing"]]
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=settings["size"] + len(first), show_progress=False, special_tokens=first, max_token_length=16,
        limit_alphabet=1000 if settings["alphabet"] else 200, initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if settings["alphabet"] else []))
    return json.loads(tokenizer.to_str())["model"]


def ranks(count, out):
    """A rank file: bytes, tokens of a trained vocabulary, then tokens of two and three bytes."""
    tokenizer = Tokenizer.from_str(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None, "truncation": None, "padding": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True},
        "model": {"type": "BPE", "vocab": {}, "merges": []}}))
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=12_000, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    shown = sorted(pre_tokenizers.ByteLevel.alphabet())
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    value = {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in plain)}
    assert sorted(value) == shown
    tokens = dict.fromkeys(bytes([b]) for b in range(256))
    for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda t: t[1]):
        tokens.setdefault(bytes(value[c] for c in token))
    chance = random.Random(3)
    while len(tokens) < count:
        tokens.setdefault(chance.randbytes(chance.choice([2, 3])))
    with open(out, "w", encoding="ascii") as f:
        f.writelines(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens))


def speed(documents, ours):
    """Best of three, by the time of the process; MB are 10^6 bytes."""
    with open(documents, encoding="utf-8") as f:
        texts = json.load(f)
    if isinstance(ours, HuggingFace):
        encode = lambda text: ours.all.encode(text, add_special_tokens=False)
        decode = lambda ids: ours.all.decode(ids, skip_special_tokens=False)
        lists = [encode(text).ids for text in texts]
    else:
        encode, decode = ours.encoding.encode_ordinary, ours.encoding.decode
        lists = [encode(text) for text in texts]
    size, rates = sum(len(text.encode("utf-8")) for text in texts) / 1e6, []
    for run, inputs in ((encode, texts), (decode, lists)):
        times = []
        for _ in range(3):
            start = time.process_time()
            for one in inputs:
                run(one)
            times.append(time.process_time() - start)
        rates.append(size / min(times))
    print(json.dumps({"encode": rates[0], "decode": rates[1]}))


def engine(what, arguments):
    if what == "tokenizer":
        return HuggingFace(arguments[0])
    return Tiktoken(arguments[0], json.loads(arguments[1]), json.loads(arguments[2]), "--kimi" in arguments)


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    if what in ("tokenizer", "tiktoken"):
        serve(engine(what, arguments))
    elif what == "speed":
        speed(arguments[0], engine(arguments[1], arguments[2:]))
    elif what == "split":
        serve(splitter(json.loads(arguments[0])))
    elif what == "regex":
        serve(regex)
    elif what in ("nfc", "nfd", "nfkc", "nfkd"):
        form = getattr(normalizers, what.upper())()
        serve(lambda q: {"text": form.normalize_str(q["text"])})
    elif what == "train":
        train(*arguments)
    elif what == "train-all":
        train_all(*arguments)
    elif what == "ranks":
        ranks(int(arguments[0]), arguments[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
