// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// breaking serves the tokenizer and breaks its first connections after some bytes. It is down after that, unless up is
// set.
type breaking struct {
	mu     sync.Mutex
	breaks []int
	up     bool
	ranges []string
}

// ServeHTTP implements http.Handler.
func (b *breaking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ranges = append(b.ranges, r.Header.Get("Range"))
	w.Header().Set("ETag", `"v1"`)
	if len(b.breaks) == 0 {
		if !b.up {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(model.TokenizerJSON()))
		return
	}
	n := b.breaks[0]
	b.breaks = b.breaks[1:]
	if r.Header.Get("Range") != "" {
		size := len(model.TokenizerJSON())
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 1000-%d/%d", size-1, size))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(model.TokenizerJSON()[1000 : 1000+n])
	} else {
		w.Header().Set("Content-Length", fmt.Sprint(len(model.TokenizerJSON())))
		_, _ = w.Write(model.TokenizerJSON()[:n])
	}
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// TestDownloadContinues kills the transfer of a tokenizer in the middle. The same call continues it, and so does a call
// of another process that shares the cache once the hub is up again.
func TestDownloadContinues(t *testing.T) {
	source := Source{Repository: "org/model"}
	cases := map[string]struct {
		cache  bool
		breaks []int
		// fails is the number of failed fetches before the hub is up.
		fails int
		want  []string
	}{
		"in the memory":                      {false, []int{1000}, 0, []string{"", "bytes=1000-"}},
		"on the disk":                        {true, []int{1000}, 0, []string{"", "bytes=1000-"}},
		"twice":                              {true, []int{1000, 500}, 0, []string{"", "bytes=1000-", "bytes=1500-"}},
		"by a later process":                 {true, []int{1000}, 1, []string{"", "bytes=1000-", "bytes=1000-"}},
		"not by one that has nothing stored": {false, []int{1000}, 1, []string{"", "bytes=1000-", ""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &breaking{breaks: tc.breaks, up: tc.fails == 0}
			h := newHub(t)
			h.answer = server.ServeHTTP
			dir := t.TempDir()
			process := func() *Fetcher {
				f := &Fetcher{Endpoint: h.URL}
				if tc.cache {
					f.Cache = dir
				}
				return f
			}
			for range tc.fails {
				if _, _, err := process().File(t.Context(), source); err == nil {
					t.Fatal("a hub that is down has a file")
				}
			}
			server.mu.Lock()
			server.up = true
			server.mu.Unlock()
			data, _, err := process().File(t.Context(), source)
			if err != nil || !bytes.Equal(data, model.TokenizerJSON()) {
				t.Fatalf("File has %d bytes, %v, want %d", len(data), err, len(model.TokenizerJSON()))
			}
			if diff := cmp.Diff(tc.want, server.ranges); diff != "" {
				t.Errorf("ranges (-want +got):\n%s", diff)
			}
			if kept, err := os.ReadDir(dir); err != nil || tc.cache != (len(kept) == 1) {
				t.Errorf("the cache keeps %v, %v", kept, err)
			}
		})
	}
}

// TestDownloadBesideAnotherProcess downloads a file that another process is downloading, and leaves the part of that
// process alone.
func TestDownloadBesideAnotherProcess(t *testing.T) {
	h := newHub(t)
	f := &Fetcher{Endpoint: h.URL, Cache: t.TempDir()}
	source := Source{Repository: "org/model"}
	address, err := source.address(h.URL)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(f.Cache, "partial-"+sum([]byte(address)))
	other := flock.New(name)
	if locked, err := other.TryLock(); err != nil || !locked {
		t.Fatalf("the other process has no lock: %v", err)
	}
	if err := os.WriteFile(name, []byte("part"), 0o600); err != nil {
		t.Fatal(err)
	}
	data, _, err := f.File(t.Context(), source)
	if err != nil || !bytes.Equal(data, model.TokenizerJSON()) {
		t.Errorf("File has %d bytes, %v, want %d", len(data), err, len(model.TokenizerJSON()))
	}
	if part, err := os.ReadFile(name); err != nil || string(part) != "part" {
		t.Errorf("the other process has %d bytes, %v, want its 4", len(part), err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if owns(other, name) {
		t.Error("a lock of a file that was removed counts")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}
