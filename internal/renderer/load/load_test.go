// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/families"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// hub answers with a status and a tokenizer.json.
func hub(t *testing.T, status int) *fetch.Fetcher {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write(model.TokenizerJSON())
	}))
	t.Cleanup(server.Close)
	return &fetch.Fetcher{Endpoint: server.URL}
}

func own() contract.Model {
	return contract.Model{Name: "own/model", Renderer: "role_colon",
		Tokenizer: &contract.Tokenizer{Repository: "own/model", SHA256: digest(model.TokenizerJSON())}}
}

// TestRenderersOfTable checks that a run may name every renderer that exists: the manager knows them by the
// table alone.
func TestRenderersOfTable(t *testing.T) {
	if diff := cmp.Diff(families.Names(), models.Renderers()); diff != "" {
		t.Errorf("renderers (-built in +in models.json):\n%s", diff)
	}
}

func TestLoad(t *testing.T) {
	cases := map[string]contract.Model{
		"the built-in model":               {Name: "tinkersim/byte-136k", Renderer: "role_colon_end"},
		"what is right for a model's name": {Name: "tinkersim/byte-136k"},
		"a known model whose tokenizer is elsewhere": {Name: "tinkersim/byte-136k",
			Tokenizer: &contract.Tokenizer{Repository: "a/copy"}},
	}
	for name, m := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := ForModel(t.Context(), hub(t, http.StatusOK), m)
			if err != nil {
				t.Fatal(err)
			}
			ids, err := r.Prompt(renderer.Conversation{Messages: []chat.Message{{Role: "user", Content: "q"}}})
			if err != nil {
				t.Fatal(err)
			}
			var want []int32
			for _, b := range []byte("User: q\n\nAssistant:") {
				want = append(want, int32(b))
			}
			if diff := cmp.Diff(want, ids); diff != "" {
				t.Errorf("Prompt (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadFails(t *testing.T) {
	cases := map[string]struct {
		change func(*contract.Model)
		status int
		names  string
		final  bool
	}{
		"a model that nobody knows": {func(m *contract.Model) { *m = contract.Model{Name: "no/body"} }, http.StatusOK,
			"model.renderer", true},
		"no tokenizer for it":    {func(m *contract.Model) { m.Tokenizer = nil }, http.StatusOK, "own/model", true},
		"a renderer that is not": {func(m *contract.Model) { m.Renderer = "qwen1" }, http.StatusOK, "qwen1", true},
		"a renderer of another model": {func(m *contract.Model) { m.Renderer = "qwen3" }, http.StatusOK, "<|im_start|>",
			true},
		"another digest": {func(m *contract.Model) { m.Tokenizer.SHA256 = strings.Repeat("0", 64) }, http.StatusOK,
			"sha256", false},
		"a file of another kind": {func(m *contract.Model) { m.Tokenizer.Ranks = "kimi_k2" }, http.StatusOK,
			"reading the tokenizer", false},
		"a file that is missing": {nil, http.StatusNotFound, "404", false},
		"a server that is down":  {nil, http.StatusServiceUnavailable, "503", false},
		"a server that is busy":  {nil, http.StatusTooManyRequests, "429", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := own()
			if tc.change != nil {
				tc.change(&m)
			}
			_, err := ForModel(t.Context(), hub(t, tc.status), m)
			var final *Error
			if err == nil || !strings.Contains(err.Error(), tc.names) || errors.As(err, &final) != tc.final {
				t.Errorf("Load: %v, want an error that names %q, final %v", err, tc.names, tc.final)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var final *Error
	if _, err := ForModel(ctx, hub(t, http.StatusOK), own()); err == nil || errors.As(err, &final) {
		t.Errorf("Load of an ended context: %v, want an error that is not final", err)
	}
}

func TestCheck(t *testing.T) {
	read := digest(model.TokenizerJSON())
	pinned := own()
	open := own()
	open.Tokenizer.SHA256 = ""
	cases := map[string]struct {
		of     contract.Model
		change func(*contract.Model)
		ok     bool
	}{
		"the same model":            {of: pinned, ok: true},
		"the same without a digest": {of: open, ok: true},
		"a digest that came later":  {of: open, change: func(m *contract.Model) { m.Tokenizer.SHA256 = read }, ok: true},
		"another digest that came later": {of: open,
			change: func(m *contract.Model) { m.Tokenizer.SHA256 = strings.Repeat("0", 64) }},
		"another rank":           {of: pinned, change: func(m *contract.Model) { m.LoraRank = 3 }, ok: true},
		"another model":          {of: pinned, change: func(m *contract.Model) { m.Name = "other/model" }},
		"another renderer":       {of: pinned, change: func(m *contract.Model) { m.Renderer = "role_colon_end" }},
		"another repository":     {of: pinned, change: func(m *contract.Model) { m.Tokenizer.Repository = "other/model" }},
		"the built-in tokenizer": {of: pinned, change: func(m *contract.Model) { m.Tokenizer = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := ForModel(t.Context(), hub(t, http.StatusOK), tc.of)
			if err != nil {
				t.Fatal(err)
			}
			other := tc.of
			source := *tc.of.Tokenizer
			other.Tokenizer = &source
			if tc.change != nil {
				tc.change(&other)
			}
			if err := f.Check(other); (err == nil) != tc.ok {
				t.Errorf("Check: %v, want ok %v", err, tc.ok)
			}
		})
	}
}
