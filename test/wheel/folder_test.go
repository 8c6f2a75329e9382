// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wheel

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// TestFolder asks for the wheels of a package by the name that pip asks for, and for one of them.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	file := Name("two_words.here", "1.0")
	if err := os.WriteFile(filepath.Join(dir, file), []byte("a wheel"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(Folder(dir))
	t.Cleanup(server.Close)
	link := `<a href="/wheels/` + file + `">` + file + "</a>\n"
	for path, want := range map[string]string{"/simple/two-words-here/": "<!DOCTYPE html>\n" + link,
		"/simple/two/": "404 page not found\n", "/wheels/" + file: "a wheel"} {
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if got, err := io.ReadAll(response.Body); string(got) != want || err != nil {
			t.Errorf("%s is %q (%v), want %q", path, got, err, want)
		}
	}
}
