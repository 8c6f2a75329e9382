// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// BaseFiles returns the files of a base model with its own vocabulary, as the Python package transformers loads them
// from a folder.
func BaseFiles(base *model.BaseModel) ([]File, error) {
	tensors := map[string]tensor{}
	for _, m := range base.Matrices() {
		tensors[m.Name+".weight"] = tensor{shape: []int{m.Rows, m.Cols}, values: m.Values}
	}
	norms := []string{"model.norm"}
	for layer := range transformer.Layers {
		at := fmt.Sprintf("model.layers.%d.", layer)
		norms = append(norms, at+"input_layernorm", at+"post_attention_layernorm")
	}
	for _, name := range norms {
		tensors[name+".weight"] = tensor{shape: []int{transformer.Width}, values: ones(transformer.Width)}
	}
	matrices, err := encodeTensors(tensors)
	if err != nil {
		return nil, err
	}
	// The class Arcee of transformers is the network of this simulator: rotary positions, norms by the root mean square,
	// and MLPs of two matrices with the square of ReLU.
	config, err := json.MarshalIndent(map[string]any{
		"architectures": []string{"ArceeForCausalLM"}, "model_type": "arcee", "hidden_act": "relu2", "torch_dtype": "float32",
		"vocab_size": model.Vocab, "hidden_size": transformer.Width, "intermediate_size": transformer.Hidden,
		"num_hidden_layers": transformer.Layers, "num_attention_heads": transformer.Heads,
		"num_key_value_heads": transformer.Heads,
		"head_dim":            transformer.Width / transformer.Heads, "max_position_embeddings": transformer.MaxContext,
		"rms_norm_eps": transformer.NormEpsilon, "rope_theta": transformer.RotaryBase,
		"tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false,
		"bos_token_id": model.TokenBOS, "eos_token_id": model.TokenEnd, "pad_token_id": model.TokenPad,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the model's configuration: %w", err)
	}
	tokenizer, err := json.MarshalIndent(map[string]any{
		"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": transformer.MaxContext,
		"clean_up_tokenization_spaces": false,
		"eos_token":                    "<|end|>", "pad_token": "<|pad|>",
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the tokenizer's configuration: %w", err)
	}
	return []File{
		{"config.json", config}, {"model.safetensors", matrices}, {"tokenizer.json", model.TokenizerJSON()},
		{"tokenizer_config.json", tokenizer},
	}, nil
}

func ones(n int) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = 1
	}
	return all
}
