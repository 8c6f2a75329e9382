// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// tokenizerFile answers as a Hugging Face hub does, so that a client whose HF_ENDPOINT is this
// server finds the tokenizer of its model. Everything else there is a plain 404.
func tokenizerFile(r *request) (response, error) {
	if !r.life.Knows(r.PathValue("org") + "/" + r.PathValue("model")) {
		return response{}, notFound("model", r.PathValue("model"))
	}
	body, err := hubFile(r.PathValue("file"))
	if err != nil || body == nil {
		return response{}, notFound("file", r.PathValue("file"))
	}
	sum := sha256.Sum256(body)
	all := sha256.Sum256(model.TokenizerJSON())
	header := http.Header{"Etag": {`"` + hex.EncodeToString(sum[:]) + `"`}, "X-Repo-Commit": {hex.EncodeToString(all[:20])}}
	return response{status: http.StatusOK, contentType: typeJSON, header: header, body: body}, nil
}

// hubFile returns the contents of a file of the model's repository, nil if there is none.
func hubFile(name string) ([]byte, error) {
	switch name {
	case "tokenizer.json":
		return model.TokenizerJSON(), nil
	case "tokenizer_config.json":
		return json.Marshal(map[string]any{
			"tokenizer_class":              "PreTrainedTokenizerFast",
			"model_max_length":             model.MaxContext,
			"clean_up_tokenization_spaces": false,
			"eos_token":                    "<|end|>",
		})
	case "config.json":
		return json.Marshal(map[string]any{
			"model_type":              "gpt2",
			"vocab_size":              model.Vocab,
			"max_position_embeddings": model.MaxContext,
			"bos_token_id":            model.TokenBOS,
			"eos_token_id":            model.TokenEnd,
		})
	}
	return nil, nil
}
