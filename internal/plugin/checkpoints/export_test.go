// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker/archive"
)

// front is a proxy before tinkersim that counts calls by the last part of their path and refuses some.
type front struct {
	mu    sync.Mutex
	calls map[string]int
	// refuses maps the last part of a path to how many calls are refused with a status; -1 means all.
	refuses map[string]int
	status  int
}

// before serves a proxy before a server and returns its URL.
func (f *front) before(t *testing.T, server string) string {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	f.calls = map[string]int{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/v1"), "/")
		kind := path[strings.LastIndex(path, "/")+1:]
		if strings.HasPrefix(path, "archives/") {
			kind = "file"
		}
		f.mu.Lock()
		f.calls[kind]++
		refused := f.refuses[kind] != 0
		if refused && f.refuses[kind] > 0 {
			f.refuses[kind]--
		}
		f.mu.Unlock()
		if refused {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(f.status)
			_, _ = w.Write([]byte(`{"detail":"Not Found"}`))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(served.Close)
	return served.URL
}

func TestDownloadByExternalWeights(t *testing.T) {
	server, checkpoint := trained(t)
	want := downloadFlags{folder: filepath.Join(t.TempDir(), "archive")}
	older := &front{refuses: map[string]int{"external_weights_urls": -1, "save_weights_external": -1},
		status: http.StatusNotFound}
	if _, err := downloadWith(t, want, older.before(t, server), checkpoint); err != nil {
		t.Fatal(err)
	}
	if older.calls["archive"] == 0 || older.calls["create_model"] != 0 {
		t.Errorf("the calls of a server without external weights are %v, want its archive and no model", older.calls)
	}
	for name, f := range map[string]*front{
		"a server that has both": {},
		"a server that tells nothing of a state": {
			refuses: map[string]int{"archive": -1, "external_weights_urls": 1}, status: http.StatusNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := downloadFlags{folder: filepath.Join(t.TempDir(), "external")}
			if _, err := downloadWith(t, got, f.before(t, server), checkpoint); err != nil {
				t.Fatal(err)
			}
			if f.calls["save_weights_external"] != 1 || f.calls["finish"] != 1 {
				t.Errorf("the calls are %v, want one save of external weights and the end of the session", f.calls)
			}
			sameAdapter(t, want.folder, got.folder)
		})
	}
}

// sameAdapter checks that two folders have the same adapter and nothing else.
func sameAdapter(t *testing.T, want, got string) {
	t.Helper()
	entries, err := os.ReadDir(got)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, %v, want the two files of an adapter", entries, err)
	}
	for _, name := range []string{archive.ConfigFile, archive.TensorsFile} {
		a, err := os.ReadFile(filepath.Join(want, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(got, name))
		if err != nil || string(a) != string(b) {
			t.Errorf("%s differs from the archive's, %v", name, err)
		}
	}
}

// TestDownloadContinuesAnExport interrupts a download after the endpoint has saved external weights: the next download
// saves nothing again, and deletes the weights at the endpoint.
func TestDownloadContinuesAnExport(t *testing.T) {
	server, checkpoint := trained(t)
	f := &front{refuses: map[string]int{"file": -1}, status: http.StatusGone}
	address := f.before(t, server)
	flags := downloadFlags{folder: filepath.Join(t.TempDir(), "adapter")}
	checkpoint.Sampler = ""
	if _, err := downloadWith(t, flags, address, checkpoint); err == nil {
		t.Fatal("a download whose files are refused has ended without an error")
	}
	f.mu.Lock()
	f.refuses = nil
	f.mu.Unlock()
	if _, err := downloadWith(t, flags, address, checkpoint); err != nil {
		t.Fatal(err)
	}
	if f.calls["save_weights_external"] != 1 || f.calls["download"] != 1 {
		t.Errorf("the calls are %v, want one save of external weights, which is deleted", f.calls)
	}
	if entries, err := os.ReadDir(flags.folder); err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, %v, want the two files of an adapter", entries, err)
	}
}
