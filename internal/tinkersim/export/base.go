// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// arceeConfig is the configuration of the base model as the Python package transformers reads it. Its class Arcee is the network of
// this simulator: rotary positions, norms by the root mean square, and MLPs of two matrices with the square of ReLU.
type arceeConfig struct {
	Architectures  []string `json:"architectures"`
	Type           string   `json:"model_type"`
	Activation     string   `json:"hidden_act"`
	Vocab          int      `json:"vocab_size"`
	Width          int      `json:"hidden_size"`
	Hidden         int      `json:"intermediate_size"`
	Layers         int      `json:"num_hidden_layers"`
	Heads          int      `json:"num_attention_heads"`
	KeyValueHeads  int      `json:"num_key_value_heads"`
	HeadWidth      int      `json:"head_dim"`
	Context        int      `json:"max_position_embeddings"`
	Epsilon        float64  `json:"rms_norm_eps"`
	RotaryBase     float64  `json:"rope_theta"`
	TiedEmbeddings bool     `json:"tie_word_embeddings"`
	AttentionBias  bool     `json:"attention_bias"`
	MLPBias        bool     `json:"mlp_bias"`
	BeginToken     int      `json:"bos_token_id"`
	EndToken       int      `json:"eos_token_id"`
	PadToken       int      `json:"pad_token_id"`
	Type32         string   `json:"torch_dtype"`
}

// BaseFiles returns the files of a base model with its own vocabulary, as the Python package transformers loads them from a folder.
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
	config, err := json.MarshalIndent(arceeConfig{
		Architectures: []string{"ArceeForCausalLM"}, Type: "arcee", Activation: "relu2", Vocab: model.Vocab, Width: transformer.Width,
		Hidden: transformer.Hidden, Layers: transformer.Layers, Heads: transformer.Heads, KeyValueHeads: transformer.Heads,
		HeadWidth: transformer.Width / transformer.Heads, Context: transformer.MaxContext, Epsilon: transformer.NormEpsilon,
		RotaryBase: transformer.RotaryBase, BeginToken: model.TokenBOS, EndToken: model.TokenEnd, PadToken: model.TokenPad, Type32: "float32",
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the model's configuration: %w", err)
	}
	tokenizer, err := json.MarshalIndent(map[string]any{
		"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": transformer.MaxContext, "clean_up_tokenization_spaces": false,
		"eos_token": "<|end|>", "pad_token": "<|pad|>",
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the tokenizer's configuration: %w", err)
	}
	return []File{
		{"config.json", config}, {"model.safetensors", matrices}, {"tokenizer.json", model.TokenizerJSON()}, {"tokenizer_config.json", tokenizer},
	}, nil
}

func ones(n int) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = 1
	}
	return all
}
