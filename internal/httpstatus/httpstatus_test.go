// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package httpstatus

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestFrom(t *testing.T) {
	cases := map[string]struct{ body, want string }{
		"a line":               {"no such file\nat line 3", "GET hub.test/a/b answers 404 Not Found: no such file"},
		"no text":              {" \n", "GET hub.test/a/b answers 404 Not Found"},
		"a page for a browser": {"\n<html>no such file</html>", "GET hub.test/a/b answers 404 Not Found"},
		"a credential": {"the key tml-1 is not known",
			"GET hub.test/a/b answers 404 Not Found: the key [redacted] is not known"},
		"a body that is repeated": {`{"msg":"wrong","input":"a prompt"}`,
			`GET hub.test/a/b answers 404 Not Found: {"msg":"wrong","input: [redacted]`},
		"bytes that are no text": {"no\x00 \xffsuch", "GET hub.test/a/b answers 404 Not Found: no such"},
		"a line of many words": {strings.Repeat("word ", 100),
			"GET hub.test/a/b answers 404 Not Found: " + strings.Repeat("word ", 59) + "wo..."},
		"a line longer than reads": {strings.Repeat("word ", 10_000),
			"GET hub.test/a/b answers 404 Not Found: " + strings.Repeat("word ", 59) + "wo..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"https://user:password@hub.test/a/b?signature=secret", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			answer := &http.Response{StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader(tc.body))}
			if got := From(request, answer, "tml-1", "").Error(); got != tc.want {
				t.Errorf("From: %s\nwant: %s", got, tc.want)
			}
		})
	}
}

func TestErrorHasAdviceAndNoEmptyParts(t *testing.T) {
	for want, e := range map[string]Error{
		"the server answers 404 Not Found":                     {Status: 404},
		"the server answers 599":                               {Status: 599},
		"the server answers 403 Forbidden: private: set a key": {Status: 403, Detail: "private", Advice: "set a key"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("Error = %q, want %q", got, want)
		}
	}
}
