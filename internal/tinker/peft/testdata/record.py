# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Print the names and shapes of adapters at Tinker and in PEFT, for the golden list beside this file.

From the root of the repository:

    $(cd test/conformance && ./venv cookbook)/bin/python internal/tinker/peft/testdata/record.py > internal/tinker/peft/testdata/golden.json

The layers are those of the package transformers for the published sizes of each model, with fewer layers and experts. The
names in PEFT are those that tinker-cookbook makes, and are checked against the layers of transformers where these have them.
"""

import json

import torch
import transformers as t
from tinker_cookbook.weights._adapter import _convert_adapter
from tinker_cookbook.weights._merge import detect_merge_profile

RANK = 2

MODELS = {
    "Qwen/Qwen3-8B": t.Qwen3Config(
        hidden_size=4096, intermediate_size=12288, num_hidden_layers=1, num_attention_heads=32, num_key_value_heads=8,
        head_dim=128, vocab_size=151936, tie_word_embeddings=False),
    "Qwen/Qwen3-4B-Instruct-2507": t.Qwen3Config(
        hidden_size=2560, intermediate_size=9728, num_hidden_layers=1, num_attention_heads=32, num_key_value_heads=8,
        head_dim=128, vocab_size=151936, tie_word_embeddings=True),
    "Qwen/Qwen3-30B-A3B": t.Qwen3MoeConfig(
        hidden_size=2048, moe_intermediate_size=768, num_hidden_layers=1, num_attention_heads=32, num_key_value_heads=4,
        head_dim=128, num_experts=3, vocab_size=151936, tie_word_embeddings=False),
    "meta-llama/Llama-3.1-8B": t.LlamaConfig(
        hidden_size=4096, intermediate_size=14336, num_hidden_layers=1, num_attention_heads=32, num_key_value_heads=8,
        vocab_size=128256, tie_word_embeddings=False),
    "meta-llama/Llama-3.2-1B": t.LlamaConfig(
        hidden_size=2048, intermediate_size=8192, num_hidden_layers=1, num_attention_heads=32, num_key_value_heads=8, head_dim=64,
        vocab_size=128256, tie_word_embeddings=True),
    "deepseek-ai/DeepSeek-V3.1": t.DeepseekV3Config(num_hidden_layers=2, first_k_dense_replace=1, n_routed_experts=3),
}


def pair(adapter, name, a, b):
    adapter[f"base_model.model.{name}.lora_A.weight"] = torch.zeros(a)
    adapter[f"base_model.model.{name}.lora_B.weight"] = torch.zeros(b)


def tinker_adapter(layers, expert_layers):
    """Return an adapter with the names and shapes of Tinker: the matrix on the side of the hidden states is shared by all experts."""
    adapter = {}
    for name, (outputs, inputs) in layers.items():
        pair(adapter, "model.unembed_tokens" if name == "lm_head" else name, (RANK, inputs), (outputs, RANK))
    for name, (experts, hidden, inner) in expert_layers.items():
        for w in ("w1", "w3"):
            pair(adapter, f"{name}.{w}", (1, RANK, hidden), (experts, inner, RANK))
        pair(adapter, f"{name}.w2", (experts, RANK, inner), (1, hidden, RANK))
    return adapter


def shapes(adapter):
    return {name: list(tensor.shape) for name, tensor in sorted(adapter.items())}


def profile_of(config, network, keys):
    return detect_merge_profile({**config.to_dict(), "architectures": [type(network).__name__]}, keys)


golden = {}
for model, config in MODELS.items():
    with torch.device("meta"):
        network = t.AutoModelForCausalLM.from_config(config)
    layers = {n: tuple(m.weight.shape) for n, m in network.named_modules() if isinstance(m, torch.nn.Linear)}
    expert_layers = {
        n: (m.down_proj.shape[0], m.down_proj.shape[1], m.down_proj.shape[2])
        for n, m in network.named_modules() if n.endswith(".experts")}
    adapter = tinker_adapter(layers, expert_layers)
    keys = {f"{n}.weight" for n in layers}
    # tinker-cookbook would adapt the input layer of a model whose output layer shares its matrix; Tinker has trained the output.
    peft, modules, overrides = _convert_adapter(adapter, keys, profile_of(config, network, keys))
    assert not overrides
    for name, tensor in peft.items():
        module = name.removeprefix("base_model.model.").removesuffix(".weight").rsplit(".", 1)[0]
        if ".experts." in module:
            continue
        outputs, inputs = layers[module]
        assert list(tensor.shape) == ([RANK, inputs] if name.endswith("lora_A.weight") else [outputs, RANK]), name
    golden[model] = {"tinker": shapes(adapter), "peft": shapes(peft), "target_modules": modules}

lines = []
for model, lists in golden.items():
    parts = [f'    {json.dumps(key)}: {json.dumps(value)}' for key, value in lists.items()]
    lines.append(f"  {json.dumps(model)}: {{\n" + ",\n".join(parts) + "\n  }")
print("{\n" + ",\n".join(lines) + "\n}")
