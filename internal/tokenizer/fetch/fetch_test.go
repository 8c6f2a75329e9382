// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// hub serves the simulator's tokenizer as a Hugging Face hub that redirects to a file store, and counts requests.
type hub struct {
	*httptest.Server
	calls int
	// answer replaces the file that is served, unless it is nil.
	answer http.HandlerFunc
}

func newHub(t *testing.T) *hub {
	h := &hub{}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("the token went to another server: got %q, want none", r.Header.Get("Authorization"))
		}
		w.Write(model.TokenizerJSON())
	}))
	t.Cleanup(elsewhere.Close)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.calls++
		switch {
		case h.answer != nil:
			h.answer(w, r)
		case r.URL.EscapedPath() != "/org/model/resolve/refs%2Fpr%2F1/sub/tokenizer.json" &&
			r.URL.Path != "/org/model/resolve/main/tokenizer.json":
			http.NotFound(w, r)
		default:
			// The client sees another host name.
			http.Redirect(w, r, strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1), http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

func TestLoad(t *testing.T) {
	h := newHub(t)
	file := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(file, model.TokenizerJSON(), 0o600); err != nil {
		t.Fatal(err)
	}
	right := sum(model.TokenizerJSON())
	cases := map[string]Source{
		"a file":                          {Path: file},
		"a file of a digest":              {Path: file, SHA256: right},
		"a URL":                           {URL: h.URL + "/org/model/resolve/main/tokenizer.json", SHA256: right},
		"a repository":                    {Repository: "org/model"},
		"a repository of a digest":        {Repository: "org/model", SHA256: right},
		"a revision and a file in folder": {Repository: "org/model", Revision: "refs/pr/1", File: "sub/tokenizer.json"},
	}
	for name, source := range cases {
		t.Run(name, func(t *testing.T) {
			f := &Fetcher{Endpoint: h.URL, Token: "hf_secret", Cache: t.TempDir()}
			tokens, digest, err := f.Load(t.Context(), source)
			if err != nil || digest != right {
				t.Fatalf("Load: digest %s, %v, want %s", digest, err, right)
			}
			if diff := cmp.Diff([]int32{72, 105, 256}, tokens.AppendEncode(nil, "Hi<|end|>", tokenizer.Specials)); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
		})
	}
}

func writeToken(t *testing.T, file, token string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTokenOfAFile checks that a token is read for each download, since a Secret may change, and that only the hub
// receives it, instead of the token of the environment.
func TestTokenOfAFile(t *testing.T) {
	h := newHub(t)
	var got []string
	h.answer = func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		w.Write(model.TokenizerJSON())
	}
	f := &Fetcher{Endpoint: h.URL, Token: "hf_other", TokenFile: filepath.Join(t.TempDir(), "key")}
	for _, token := range []string{"hf_first", "hf_second"} {
		writeToken(t, f.TokenFile, token)
		if _, _, err := f.Load(t.Context(), Source{Repository: "org/model"}); err != nil {
			t.Fatal(err)
		}
	}
	url := Source{URL: h.URL + "/tokenizer.json", SHA256: sum(model.TokenizerJSON())}
	if _, _, err := f.Load(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Bearer hf_first", "Bearer hf_second", ""}, got); diff != "" {
		t.Errorf("tokens that the hub receives (-want +got):\n%s", diff)
	}
}

func TestLoadFromTheSimulator(t *testing.T) {
	_, url := simulatortest.Serve(t, tinkersim.Options{})
	f := &Fetcher{Endpoint: url, Cache: t.TempDir()}
	tokens, _, err := f.Load(t.Context(), Source{Repository: "tinkersim/byte-136k"})
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := tokens.Special("<|end|>"); !ok || id != model.TokenEnd {
		t.Errorf("Special(<|end|>) = %d, %v, want %d", id, ok, model.TokenEnd)
	}
}

func TestLoadErrors(t *testing.T) {
	other := strings.Repeat("ab", 32)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	cases := map[string]struct {
		source Source
		answer http.HandlerFunc
		token  string
		// file is the content of a token's file; "-" if the file does not exist.
		file string
		want string // It is a part of the error, such as its advice.
	}{
		"no place": {source: Source{}, want: "one of path, url and repository"},
		"two places": {source: Source{Path: "a", Repository: "org/model"},
			want: "one of path, url and repository"},
		"a URL without digest":  {source: Source{URL: "http://x/y"}, want: "needs sha256"},
		"an invalid digest":     {source: Source{Path: "a", SHA256: "AB"}, want: "64 hexadecimal digits"},
		"an invalid repository": {source: Source{Repository: "../model"}, want: "org/name"},
		"a file outside": {source: Source{Repository: "org/model", File: "../tokenizer.json"},
			want: "not a path within a repository"},
		"a file that is not there": {source: Source{Path: "/nowhere/tokenizer.json"}, want: "no such file"},
		"an unknown repository":    {source: Source{Repository: "org/other"}, want: "check repository, revision and file"},
		"no token":                 {source: Source{Repository: "org/model"}, answer: status(401), want: "set HF_TOKEN"},
		"a token that may not read": {source: Source{Repository: "org/model"}, answer: status(403), token: "hf_x",
			want: "licence may have to be accepted"},
		"a token of a file that may not read": {source: Source{Repository: "org/model"}, answer: status(403), file: "hf_x",
			want: "the owner of the token in model.tokenizer.tokenSecretKeyRef may not read the repository"},
		"a token of a file that is refused": {source: Source{Repository: "org/model"}, answer: status(401), file: "hf_x",
			want: "put a valid token into the Secret of model.tokenizer.tokenSecretKeyRef"},
		"a token's file that is not there": {source: Source{Repository: "org/model"}, file: "-",
			want: "model.tokenizer.tokenSecretKeyRef: the Secret does not exist, or lacks the key: create it"},
		"a server that is ill": {source: Source{Repository: "org/model"}, answer: status(503), want: "try again later"},
		"a page of another kind": {source: Source{Repository: "org/model"}, want: "tokenizer.json",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, "<html>sign in</html>")
			}},
		"a download that breaks off": {source: Source{Repository: "org/model"}, want: "unexpected EOF",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000")
				io.WriteString(w, "{")
			}},
		"another digest": {source: Source{Repository: "org/model", SHA256: other},
			want: "set sha256 to the new one"},
		"ranks of an unknown model": {source: Source{Repository: "org/model", Ranks: "other"}, want: "kimi_k2, o200k_base"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.answer = tc.answer
			f := &Fetcher{Endpoint: h.URL, Token: tc.token, Cache: t.TempDir()}
			if tc.file != "" {
				f.TokenFile = filepath.Join(t.TempDir(), "key")
			}
			if tc.file != "" && tc.file != "-" {
				writeToken(t, f.TokenFile, tc.file)
			}
			_, _, err := f.Load(t.Context(), tc.source)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Load: %v, want an error that says %q", err, tc.want)
			}
		})
	}
}

func TestDigestError(t *testing.T) {
	h := newHub(t)
	cache := t.TempDir()
	source := Source{Repository: "org/model", SHA256: strings.Repeat("ab", 32)}
	_, _, err := (&Fetcher{Endpoint: h.URL, Cache: cache}).Load(t.Context(), source)
	var changed *DigestError
	if !errors.As(err, &changed) {
		t.Fatalf("Load of another digest: %v", err)
	}
	if diff := cmp.Diff(&DigestError{Source: source, Got: sum(model.TokenizerJSON())}, changed); diff != "" {
		t.Errorf("DigestError (-want +got):\n%s", diff)
	}
	if kept, err := os.ReadDir(cache); err != nil || len(kept) != 0 {
		t.Errorf("the cache keeps %v, %v, want nothing", kept, err)
	}
}

func TestCache(t *testing.T) {
	h := newHub(t)
	f := &Fetcher{Endpoint: h.URL, Cache: filepath.Join(t.TempDir(), "made", "on", "demand")}
	load := func(what string, source Source, calls int) {
		t.Helper()
		h.calls = 0
		if _, _, err := f.Load(t.Context(), source); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if h.calls != calls {
			t.Errorf("%s: %d calls, want %d", what, h.calls, calls)
		}
	}
	known := Source{Repository: "org/model", SHA256: sum(model.TokenizerJSON())}
	load("what nobody knows is downloaded", known, 1)
	load("a known digest is in the cache", known, 0)
	load("without a digest the hub is asked again", Source{Repository: "org/model"}, 1)
	load("the place does not matter, the digest does", Source{Repository: "moved/away", SHA256: known.SHA256}, 0)
	if err := os.WriteFile(f.path(known.SHA256), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	load("a damaged file is downloaded again", known, 1)
	load("and is whole then", known, 0)
	kept, err := os.ReadDir(f.Cache)
	if err != nil || len(kept) != 1 {
		t.Errorf("the cache keeps %v, %v, want one file", kept, err)
	}
}

func TestSizeIsBounded(t *testing.T) {
	if _, err := bounded(endless{}); err == nil || !strings.Contains(err.Error(), "MiB") {
		t.Errorf("an endless file: %v", err)
	}
}

// endless is a file of infinite length.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
