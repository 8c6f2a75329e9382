// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
)

func TestToolsOf(t *testing.T) {
	var list toolList
	if err := json.Unmarshal([]byte(`{"tools": [
		{"name": "add", "description": "Adds.", "input_schema": {"type": "object"}},
		{"name": "stop", "description": "Stops.", "input_schema": null},
		{"name": "answer", "description": "Ends.", "input_schema": {"type": "object"}}
	]}`), &list); err != nil {
		t.Fatal(err)
	}
	want := []chat.Tool{
		{Name: "add", Description: "Adds.", Parameters: json.RawMessage(`{"type": "object"}`)},
		{Name: "stop", Description: "Stops."},
	}
	if diff := cmp.Diff(want, toolsOf(list, &terminalTool{Name: "answer"})); diff != "" {
		t.Errorf("toolsOf (-want +got):\n%s", diff)
	}
}

func TestCheckURL(t *testing.T) {
	for _, text := range []string{"http://host", "https://host:8080/path"} {
		if err := checkURL(text); err != nil {
			t.Errorf("checkURL(%q): %v", text, err)
		}
	}
	for _, text := range []string{"", "host", "ftp://host", "http://", "http://host?a=b", "http://host#part",
		"http://user@host", "http://a b"} {
		if err := checkURL(text); err == nil {
			t.Errorf("checkURL(%q): no error, want one", text)
		}
	}
}

// TestDetail reads the forms in which FastAPI and other servers describe an error.
func TestDetail(t *testing.T) {
	for body, want := range map[string]string{
		`{"detail": "no such task"}`:     "no such task",
		`{"detail": [{"loc": "split"}]}`: `[{"loc": "split"}]`,
		`{"error": "x"}`:                 `{"error": "x"}`,
		"no such task\nat line 3":        "no such task\nat line 3",
		"":                               "",
	} {
		if got := detailOf([]byte(body)); got != want {
			t.Errorf("the detail of %q is %q, want %q", body, got, want)
		}
	}
}

func TestDecodeRefusesLongReplies(t *testing.T) {
	text := `"` + strings.Repeat("a", maxReply-2) + `"`
	var got string
	if err := decode(request{}, strings.NewReader(text), &got); err != nil || len(got) != maxReply-2 {
		t.Errorf("decode of %d bytes: %v, want their text", len(text), err)
	}
	if err := decode(request{}, strings.NewReader(text+" "), &got); !errors.Is(err, errTooLarge) {
		t.Errorf("decode of one byte more: err = %v, want %v", err, errTooLarge)
	}
}

// TestRefusalsDoNotRepeatSecrets refuses a request with an answer that repeats its secrets.
func TestRefusalsDoNotRepeatSecrets(t *testing.T) {
	b := &Backend{options: Options{APIKey: "key-1", Secrets: []Secret{{Name: "TOKEN", Value: "value-2"}}},
		secrets: deliveredSecrets{header: "header-3"}}
	request := httptest.NewRequest(http.MethodPost, "http://server.test/create", http.NoBody)
	response := &http.Response{StatusCode: http.StatusBadRequest,
		Body: io.NopCloser(strings.NewReader(`{"detail": "bad: key-1, value-2, header-3"}`))}
	const want = "POST server.test/create answers 400 Bad Request: bad: [redacted], [redacted], [redacted]"
	if got := b.refusalOf(request, response).Error(); got != want {
		t.Errorf("refusalOf = %q, want %q", got, want)
	}
}
