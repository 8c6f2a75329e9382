# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads a base model and an adapter with transformers and peft, for peft_test.go.

names BASE              prints the names and shapes of the tensors that transformers saves of such a model
logprobs BASE ADAPTER   reads a list of sequences of tokens, and prints the log-probability of each token but the first
tokens BASE             reads a list of texts, and prints their tokens
"""

import json
import sys
import tempfile

import torch
from peft import PeftModel
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer


def names(base):
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(base))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with safe_open(folder + "/model.safetensors", "pt") as file:
            return {name: list(file.get_slice(name).get_shape()) for name in file.keys()}


def load(base, adapter):
    model, report = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, output_loading_info=True)
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not report[problem], (problem, report[problem])
    model = PeftModel.from_pretrained(model, adapter)
    trained = [name for name, _ in model.named_parameters() if "lora_" in name]
    with safe_open(adapter + "/adapter_model.safetensors", "pt") as file:
        assert len(trained) == len(file.keys()), (trained, file.keys())
    return model.eval()


@torch.no_grad()
def logprobs(base, adapter):
    model = load(base, adapter)
    result = []
    for tokens in json.load(sys.stdin):
        scores = torch.log_softmax(model(torch.tensor([tokens])).logits[0, :-1].double(), -1)
        result.append(scores[torch.arange(len(tokens) - 1), torch.tensor(tokens[1:])].tolist())
    return result


def tokens(base):
    tokenizer = AutoTokenizer.from_pretrained(base)
    return [tokenizer.encode(text) for text in json.load(sys.stdin)]


if __name__ == "__main__":
    print(json.dumps({"names": names, "logprobs": logprobs, "tokens": tokens}[sys.argv[1]](*sys.argv[2:])))
