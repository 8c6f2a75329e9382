// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
)

// skyExchange is a call that the official SDK made of SkyRL, as test/conformance/bodies/record.py recorded it.
type skyExchange struct {
	Method, Path, ContentType string
	Body                      json.RawMessage
	Status                    int
	Answer                    json.RawMessage
}

// TestDialectOfSkyRL repeats the calls that were recorded against SkyRL 0.3.0, and compares statuses, the names of all
// members, and the values that are not numbers of the model.
func TestDialectOfSkyRL(t *testing.T) {
	server, err := New(Options{Dir: t.TempDir(), Dialect: dialect.NameSkyRL, Aliases: []string{"Qwen/Qwen3-8B-Base"}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	file, err := os.ReadFile("../tinker/testdata/sdk-0.24.1-skyrl-0.3.0.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct{ Exchanges []skyExchange }
	if err := json.Unmarshal(file, &recorded); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{} // by the recorded id
	for i, e := range recorded.Exchanges {
		body := []byte(e.Body)
		if !strings.Contains(e.ContentType, "json") {
			body = []byte("\n\x01m\x10\x01")
		}
		request := httptest.NewRequest(e.Method, replaceIDs(e.Path, ids), strings.NewReader(replaceIDs(string(body), ids)))
		request.Header.Set("Content-Type", e.ContentType)
		request.Header.Set("X-Api-Key", "tml-test")
		response := httptest.NewRecorder()
		server.ServeHTTP(response, request)
		got := response.Body.Bytes()
		name := fmt.Sprintf("exchange %d, %s %s", i, e.Method, e.Path)
		if response.Code != e.Status {
			t.Fatalf("%s: status %d with %s, SkyRL answers %d", name, response.Code, got, e.Status)
		}
		var want, have any
		if err := json.Unmarshal(e.Answer, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &have); err != nil {
			t.Fatal(err)
		}
		learnIDs(want, have, ids)
		compare(t, name, want, have)
	}
}

// replaceIDs replaces the ids of a recorded text.
func replaceIDs(text string, ids map[string]string) string {
	for _, old := range slices.Backward(slices.Sorted(maps.Keys(ids))) {
		text = strings.ReplaceAll(text, old, ids[old])
	}
	return text
}

// learnIDs learns which id of the simulator stands for each recorded id.
func learnIDs(want, have any, ids map[string]string) {
	a, okA := want.(map[string]any)
	b, okB := have.(map[string]any)
	if !okA || !okB {
		return
	}
	for _, key := range []string{"session_id", "model_id", "request_id", "sampling_session_id"} {
		old, _ := a[key].(string)
		id, _ := b[key].(string)
		if old == "" || id == "" {
			continue
		}
		if key == "request_id" {
			ids[`"request_id": "`+old+`"`] = `"request_id": "` + id + `"`
			continue
		}
		ids[old] = id
	}
}

// notSimulated lists members that SkyRL's answers have and the simulator's have not. No client needs them.
var notSimulated = []string{"base_model", "lora_config", "sampling_session_id", "seed", "status", "metrics", "input"}

// compare compares an answer with SkyRL's: it has the same members with the same types, and lists of numbers have the
// same length.
func compare(t *testing.T, at string, want, have any) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			t.Errorf("%s is %v, SkyRL answers an object", at, have)
			return
		}
		for name, value := range h {
			if _, known := w[name]; !known {
				t.Errorf("%s has the member %s, which SkyRL does not answer", at, name)
			} else if name != "metrics" && name != "input" {
				compare(t, at+"."+name, w[name], value)
			}
		}
		for name := range w {
			if _, known := h[name]; !known && !slices.Contains(notSimulated, name) {
				t.Errorf("%s has no member %s, which SkyRL answers", at, name)
			}
		}
	case []any:
		h, ok := have.([]any)
		if !ok || (len(w) == 0) != (len(h) == 0) {
			t.Errorf("%s is %v, SkyRL answers %v", at, have, want)
			return
		}
		if len(w) == 0 {
			return
		}
		if _, number := w[0].(float64); number && len(w) != len(h) {
			t.Errorf("%s has %d numbers, and SkyRL has %d", at, len(h), len(w))
		}
		compare(t, at+"[0]", w[0], h[0])
	case string:
		if strings.HasSuffix(at, ".type") || strings.HasSuffix(at, ".stop_reason") {
			if w != have {
				t.Errorf("%s is %v, SkyRL answers %s", at, have, w)
			}
			return
		}
		if _, ok := have.(string); !ok {
			t.Errorf("%s is %v, SkyRL answers a string", at, have)
		}
	default:
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", have) {
			t.Errorf("%s is %v, SkyRL answers %v", at, have, want)
		}
	}
}
