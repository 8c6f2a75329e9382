#!/usr/bin/env python3
# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Write a small Qwen3 model with random weights and the vocabulary of tinkersim's models to a directory.

    python tiny_model.py OUT [--hidden 64] [--layers 2]

The ids 0 to 255 are the bytes, so that any text is one token for each of its bytes; 256 to 259 are <|end|>, <|bos|>,
<|pad|> and <|reserved|>. The operator's built-in tokenizer of tinkersim/byte-136k is the same vocabulary.
"""
import argparse
import json
import pathlib

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

SPECIALS = ["<|end|>", "<|bos|>", "<|pad|>", "<|reserved|>"]
END, BOS, PAD = 256, 257, 258
CONTEXT = 2048


def byte_names():
    """Return the printable character by which files of byte-level tokenizers write each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def tokenizer():
    """Return the content of tokenizer.json."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    vocab = {name: b for b, name in byte_names().items()} | {name: 256 + i for i, name in enumerate(SPECIALS)}
    added = [
        {"id": 256 + i, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for i, name in enumerate(SPECIALS)
    ]
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []},
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "tokenizer.json").write_text(json.dumps(tokenizer(), ensure_ascii=False))
    (args.out / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": SPECIALS[0], "pad_token": SPECIALS[2],
        "clean_up_tokenization_spaces": False, "model_max_length": CONTEXT,
    }))
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(Qwen3Config(
        vocab_size=256 + len(SPECIALS), hidden_size=args.hidden, intermediate_size=2 * args.hidden,
        num_hidden_layers=args.layers, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        max_position_embeddings=CONTEXT, tie_word_embeddings=False,
        bos_token_id=BOS, eos_token_id=END, pad_token_id=PAD, dtype="float32",
    ))
    with torch.no_grad():  # fresh weights make every token equally likely, and settings of the sampler would not show
        model.lm_head.weight.mul_(8)
        model.model.embed_tokens.weight.mul_(8)
    model.save_pretrained(args.out, safe_serialization=True)


if __name__ == "__main__":
    main()
