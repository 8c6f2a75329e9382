// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package buckettest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Google is a server with one bucket that speaks the part of Google Cloud Storage's interface that its client uses for
// small objects.
type Google struct {
	mu      sync.Mutex
	objects map[string][]byte
}

// StartGoogle runs a Google server until the test ends, and makes Google's client use it. If change is not nil, it
// wraps the handler of requests.
func StartGoogle(t *testing.T, change func(http.Handler) http.Handler) {
	t.Helper()
	var handler http.Handler = &Google{objects: map[string][]byte{}}
	if change != nil {
		handler = change(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(server.URL, "http://"))
}

// GoogleURL returns the URL of a prefix in a bucket of a Google server, as in artifacts.url.
func GoogleURL(bucket, prefix string) string { return "gs://" + bucket + "/" + prefix }

// ServeHTTP implements http.Handler.
func (g *Google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	where := strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), "/upload"), "/storage/v1")
	bucket, object, ok := strings.Cut(strings.TrimPrefix(where, "/b/"), "/o")
	if !ok { // content is read at /BUCKET/OBJECT
		bucket, object, _ = strings.Cut(strings.TrimPrefix(where, "/"), "/")
		object = "/" + object
	}
	name, err := url.PathUnescape(strings.TrimPrefix(object, "/"))
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, "The path cannot be read.")
	case bucket != Name:
		refuse(w, http.StatusNotFound, "The specified bucket does not exist.")
	case r.Method == http.MethodPost:
		g.insert(w, r)
	case name == "":
		g.list(w, r.URL.Query().Get("prefix"))
	default:
		g.object(w, r, name)
	}
}

// insert writes an object, whose name and content are the two parts of the body.
func (g *Google) insert(w http.ResponseWriter, r *http.Request) {
	_, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	body := multipart.NewReader(r.Body, parameters["boundary"])
	var described struct{ Name string }
	var content []byte
	for part := range 2 {
		next, err := body.NextPart()
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		text, _ := io.ReadAll(next)
		if part == 0 {
			_ = json.Unmarshal(text, &described)
		} else {
			content = text
		}
	}
	if _, exists := g.objects[described.Name]; exists && r.URL.Query().Get("ifGenerationMatch") == "0" {
		refuse(w, http.StatusPreconditionFailed, "At least one of the pre-conditions you specified did not hold.")
		return
	}
	g.objects[described.Name] = content
	respond(w, http.StatusOK, resource(described.Name, content))
}

func (g *Google) list(w http.ResponseWriter, prefix string) {
	items := []map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(g.objects)) {
		if strings.HasPrefix(name, prefix) {
			items = append(items, resource(name, g.objects[name]))
		}
	}
	respond(w, http.StatusOK, map[string]any{"kind": "storage#objects", "items": items})
}

// object reads or deletes an object.
func (g *Google) object(w http.ResponseWriter, r *http.Request, name string) {
	content, exists := g.objects[name]
	switch {
	case !exists:
		refuse(w, http.StatusNotFound, "No such object: "+Name+"/"+name)
	case r.Method == http.MethodDelete:
		delete(g.objects, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("X-Goog-Generation", "1")
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = io.Copy(w, bytes.NewReader(content))
	}
}

func resource(name string, content []byte) map[string]string {
	return map[string]string{
		"kind": "storage#object", "bucket": Name, "name": name, "size": strconv.Itoa(len(content)), "generation": "1",
		"metageneration": "1",
		"updated":        "2026-01-01T00:00:00Z", "timeCreated": "2026-01-01T00:00:00Z",
	}
}

func refuse(w http.ResponseWriter, status int, message string) {
	respond(w, status, map[string]any{"error": map[string]any{"code": status, "message": message}})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
