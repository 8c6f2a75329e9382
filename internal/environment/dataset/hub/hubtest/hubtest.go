// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubtest simulates a Hugging Face hub for tests: the parts of its HTTP API that data sets are read with, from
// files in memory, with redirects to a store of files, pages of listings, ranges, access, and faults.
package hubtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Commit is the commit of every revision of a new Hub.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// Hub is a hub with one repository.
type Hub struct {
	// URL is the URL of the hub.
	URL string

	mu sync.Mutex
	// Repository is the name of the repository, and Card the text of its card.
	Repository string
	Card       string
	// Revisions are the commits of revisions.
	Revisions map[string]string
	// Files are the files of every commit, by path.
	Files map[string][]byte
	// Token is the token that gives access; empty for a public repository. Granted says that the owner of the token has
	// accepted the conditions.
	Token   string
	Granted bool
	// Busy is the number of requests that are answered with status 429 first.
	Busy int
	// BreakAfter is the number of bytes after which the next answer with a file breaks off; 0 means that none does.
	BreakAfter int
	// Damage changes the bytes of files on the way.
	Damage bool
	// Requests are the paths that were asked for, in order.
	Requests []string
	// downloads counts the files that are being sent, and MostDownloads is the largest count so far.
	downloads, MostDownloads int
}

// New starts a hub with the files of a repository, until the test ends.
func New(t *testing.T, repository string, files map[string][]byte) *Hub {
	t.Helper()
	h := &Hub{Repository: repository, Card: "{}", Revisions: map[string]string{"main": Commit, Commit: Commit},
		Files: files, Granted: true}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.URL = server.URL
	return h
}

// Change changes the hub while it serves.
func (h *Hub) Change(change func(*Hub)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// ServeHTTP implements http.Handler.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.Requests = append(h.Requests, r.URL.EscapedPath())
	busy := h.Busy > 0
	if busy {
		h.Busy--
	}
	h.mu.Unlock()
	if busy {
		w.Header().Set("Retry-After", "0")
		http.Error(w, "rate limit", http.StatusTooManyRequests)
		return
	}
	if path, ok := strings.CutPrefix(r.URL.Path, "/store/"); ok {
		h.sendFile(w, r, path)
		return
	}
	if status := h.access(r); status != 0 {
		http.Error(w, `{"error":"refused"}`, status)
		return
	}
	for prefix, answer := range map[string]func(http.ResponseWriter, *http.Request, string){
		"/api/datasets/" + h.Repository + "/revision/": h.sendRevision,
		"/api/datasets/" + h.Repository + "/tree/":     h.sendTree,
		"/datasets/" + h.Repository + "/resolve/":      h.resolve,
	} {
		if rest, ok := strings.CutPrefix(r.URL.Path, prefix); ok {
			answer(w, r, rest)
			return
		}
	}
	http.Error(w, `{"error":"Repository not found"}`, http.StatusNotFound)
}

// access returns the status of a refusal, or 0 if the request is permitted. As at the hub, a repository that does not
// exist looks like a private one.
func (h *Hub) access(r *http.Request) int {
	exists := strings.Contains(r.URL.Path, "datasets/"+h.Repository+"/")
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case (h.Token != "" || !exists) && token == "", h.Token != "" && token != h.Token:
		return http.StatusUnauthorized
	case exists && !h.Granted:
		return http.StatusForbidden
	default:
		return 0
	}
}

func (h *Hub) sendRevision(w http.ResponseWriter, _ *http.Request, revision string) {
	commit, ok := h.Revisions[revision]
	if !ok {
		http.Error(w, `{"error":"Invalid rev id"}`, http.StatusNotFound)
		return
	}
	fmt.Fprintf(w, `{"id": %q, "sha": %q, "cardData": %s}`, h.Repository, commit, h.Card)
}

// sendTree lists two files on a page.
func (h *Hub) sendTree(w http.ResponseWriter, r *http.Request, commit string) {
	type lfs struct {
		OID string `json:"oid"`
	}
	type entry struct {
		Type string `json:"type"`
		Path string `json:"path"`
		Size int    `json:"size"`
		LFS  *lfs   `json:"lfs,omitempty"`
	}
	entries := []entry{{Type: "directory", Path: "data"}}
	for _, path := range slices.Sorted(maps.Keys(h.Files)) {
		e := entry{Type: "file", Path: path, Size: len(h.Files[path])}
		if isLarge(path) {
			sum := sha256.Sum256(h.Files[path])
			e.LFS = &lfs{OID: hex.EncodeToString(sum[:])}
		}
		entries = append(entries, e)
	}
	const perPage = 2
	from := 0
	if _, err := fmt.Sscan(r.URL.Query().Get("cursor"), &from); err != nil {
		from = 0
	}
	to := min(from+perPage, len(entries))
	if to < len(entries) {
		w.Header().Set("Link", fmt.Sprintf(`<%s/api/datasets/%s/tree/%s?recursive=true&cursor=%d>; rel="next"`, h.URL,
			h.Repository, commit, to))
	}
	// The client's connection may be closed already.
	_ = json.NewEncoder(w).Encode(entries[from:to])
}

// isLarge reports whether the hub stores a file by its digest.
func isLarge(path string) bool {
	return strings.HasSuffix(path, ".parquet") || strings.Contains(path, "large")
}

// resolve redirects to the store of large files.
func (h *Hub) resolve(w http.ResponseWriter, r *http.Request, rest string) {
	_, path, _ := strings.Cut(rest, "/")
	if isLarge(path) {
		http.Redirect(w, r, strings.Replace(h.URL, "127.0.0.1", "localhost", 1)+"/store/"+path, http.StatusFound)
		return
	}
	h.sendFile(w, r, path)
}

func (h *Hub) sendFile(w http.ResponseWriter, r *http.Request, path string) {
	h.mu.Lock()
	file, ok := h.Files[path]
	breakAfter := h.BreakAfter
	h.BreakAfter = 0
	if h.Damage && ok {
		file = bytes.Clone(file)
		file[len(file)/2] ^= 1
	}
	h.downloads++
	h.MostDownloads = max(h.MostDownloads, h.downloads)
	h.mu.Unlock()
	defer h.Change(func(h *Hub) { h.downloads-- })
	if !ok {
		http.NotFound(w, r)
		return
	}
	if isLarge(path) && r.Header.Get("Authorization") != "" {
		http.Error(w, "the token was sent to another host", http.StatusBadRequest)
		return
	}
	if breakAfter > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(file)))
		// The panic below ends the connection in any case.
		_, _ = w.Write(file[:min(breakAfter, len(file)-1)])
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		panic(http.ErrAbortHandler)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
}
