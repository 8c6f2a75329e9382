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
	header := http.Header{"Etag": {`"` + hex.EncodeToString(sum[:]) + `"`},
		"X-Repo-Commit": {hex.EncodeToString(commit[:20])}}
	return response{status: http.StatusOK, contentType: tinker.ContentJSON, header: header, body: body}, nil
}

// vocabularyFile returns a file of a base model with the vocabulary of another model, or nil if it does not exist:
// the file that was loaded, or a generated one that clients require.
func vocabularyFile(v *vocabulary.Vocabulary, name string) ([]byte, error) {
	if body := v.File(name); body != nil {
		return body, nil
	}
	return generatedFile(name, model.LongContext, v.EndName(),
		map[string]any{"vocab_size": v.Size(), "eos_token_id": v.End()})
}

// baseModelFile returns a file of the built-in base model's repository, or nil if it does not exist.
func baseModelFile(name string) ([]byte, error) {
	if name == "tokenizer.json" {
		return model.TokenizerJSON(), nil
	}
	return generatedFile(name, model.Window, "<|end|>", map[string]any{
		"vocab_size": model.Vocab, "bos_token_id": model.TokenBOS, "eos_token_id": model.TokenEnd,
	})
}

// generatedFile returns a file that clients require beside the tokenizer, or nil for any other. config has the values
// of config.json that differ between models.
func generatedFile(name string, window int, end string, config map[string]any) ([]byte, error) {
	switch name {
	case "tokenizer_config.json":
		return json.Marshal(map[string]any{
			"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": window, "clean_up_tokenization_spaces": false,
			"eos_token": end,
		})
	case "config.json":
		config["model_type"], config["max_position_embeddings"] = "gpt2", window
		return json.Marshal(config)
	}
	return nil, nil
}
