// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/vocabulary"
)

// tokenizerFile responds as a Hugging Face hub does, so that a client whose HF_ENDPOINT is this server finds
// the tokenizer of its model. Any other file is a 404.
func (s *Server) tokenizerFile(r *request) (response, error) {
	name := r.PathValue("org") + "/" + r.PathValue("model")
	if !r.state.HasBaseModel(name) {
		return response{}, notFound("model", name)
	}
	file := r.PathValue("file")
	body, err := baseModelFile(file)
	commit := sha256.Sum256(model.TokenizerJSON())
	if v, ok := s.options.Vocabularies[name]; ok {
		body, err = vocabularyFile(v, file)
		commit = v.Digest()
	}
	if err != nil || body == nil {
		return response{}, notFound("file", file)
	}
	sum := sha256.Sum256(body)
	header := http.Header{"Etag": {`"` + hex.EncodeToString(sum[:]) + `"`}, "X-Repo-Commit": {hex.EncodeToString(commit[:20])}}
	return response{status: http.StatusOK, contentType: tinker.ContentJSON, header: header, body: body}, nil
}

// vocabularyFile returns a file of a base model with the vocabulary of another model, or nil if it does not exist:
// the file that was loaded, or a generated one that clients require.
func vocabularyFile(v *vocabulary.Vocabulary, name string) ([]byte, error) {
	if body := v.File(name); body != nil {
		return body, nil
	}
	switch name {
	case "tokenizer_config.json":
		return json.Marshal(map[string]any{
			"tokenizer_class":              "PreTrainedTokenizerFast",
			"model_max_length":             model.LongContext,
			"clean_up_tokenization_spaces": false,
			"eos_token":                    v.EndName(),
		})
	case "config.json":
		return json.Marshal(map[string]any{
			"model_type":              "gpt2",
			"vocab_size":              v.Size(),
			"max_position_embeddings": model.LongContext,
			"eos_token_id":            v.End(),
		})
	}
	return nil, nil
}

// baseModelFile returns a file of the built-in base model's repository, or nil if it does not exist.
func baseModelFile(name string) ([]byte, error) {
	switch name {
	case "tokenizer.json":
		return model.TokenizerJSON(), nil
	case "tokenizer_config.json":
		return json.Marshal(map[string]any{
			"tokenizer_class":              "PreTrainedTokenizerFast",
			"model_max_length":             model.Window,
			"clean_up_tokenization_spaces": false,
			"eos_token":                    "<|end|>",
		})
	case "config.json":
		return json.Marshal(map[string]any{
			"model_type":              "gpt2",
			"vocab_size":              model.Vocab,
			"max_position_embeddings": model.Window,
			"bos_token_id":            model.TokenBOS,
			"eos_token_id":            model.TokenEnd,
		})
	}
	return nil, nil
}
