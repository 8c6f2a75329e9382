// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokenizer

import (
	"encoding/json"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// TestByteLevelEqualsSimulator compares the built-in tokenizer with the simulator's tokenizer.json.
func TestByteLevelEqualsSimulator(t *testing.T) {
	var file struct {
		AddedTokens []struct {
			ID      int32  `json:"id"`
			Content string `json:"content"`
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int32  `json:"vocab"`
			Merges []json.RawMessage `json:"merges"`
		} `json:"model"`
	}
	if err := json.Unmarshal(model.TokenizerJSON(), &file); err != nil {
		t.Fatalf("reading tokenizer.json: %v", err)
	}
	if len(file.Model.Merges) != 0 {
		t.Fatalf("the simulator's tokenizer has %d merges", len(file.Model.Merges))
	}
	tokens := forModel(t, "tinkersim/byte-136k")
	for _, added := range file.AddedTokens {
		if id, ok := tokens.Special(added.Content); !ok || id != added.ID {
			t.Errorf("Special(%q) = %d, %v, want %d", added.Content, id, ok, added.ID)
		}
	}
	ids := map[int32]bool{}
	for _, id := range file.Model.Vocab {
		ids[id] = true
	}
	for _, added := range file.AddedTokens {
		ids[added.ID] = true
	}
	if len(ids) != model.Vocab || len(file.AddedTokens) != model.Vocab-byteIDs {
		t.Errorf("the simulator knows %d ids, %d of them special", len(ids), len(file.AddedTokens))
	}
	for id := range int32(model.Vocab) {
		if _, err := tokens.Decode([]int32{id}); err != nil {
			t.Errorf("Decode of id %d: %v", id, err)
		}
	}
	if _, err := tokens.Decode([]int32{model.Vocab}); err == nil {
		t.Error("an id beyond the simulator's is decoded")
	}
}
