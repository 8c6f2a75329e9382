// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
)

// atURL makes the fixture keep its artifacts at a URL. The next learner has an empty folder for its copy.
func (w *fixture) atURL(url string) {
	w.file.ArtifactsURL = url
	w.file.ArtifactsDir = w.t.TempDir()
}

// download copies the objects of the URL to the folder in which the fixture's checks look for artifacts.
func (w *fixture) download() {
	w.t.Helper()
	objects, err := bucket.Open(w.t.Context(), w.file.ArtifactsURL, os.Getenv)
	if err != nil {
		w.t.Fatal(err)
	}
	names, err := objects.List(w.t.Context(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	w.artifacts = w.t.TempDir()
	for _, name := range names {
		data, err := objects.Get(w.t.Context(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		path := filepath.Join(w.artifacts, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestResumeFromArtifactsAtURL kills a learner at each fault point, and starts the next one with nothing but the URL.
func TestResumeFromArtifactsAtURL(t *testing.T) {
	t.Parallel()
	want := baseline(t)
	for _, point := range learner.FaultPoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, withTensorBoard)
			w.startWorker("w0", behavior{})
			step := int64(2)
			if strings.HasPrefix(point, "open.") {
				step = -1
			}
			server := buckettest.Start(t, nil)
			w.atURL(server.URL("team/runs"))
			<-w.startLearner(1, w.dieAt(point, step)).done
			w.atURL(server.URL("team/runs"))
			verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
			w.download()
			w.compare(verdict, want)
			w.checkTensorBoard()
			w.checkEpisodes()
		})
	}
}

// TestArtifactsAtURLWithFaults answers a fifth of the requests with a 503, and closes the connection of every eleventh
// request without an answer.
func TestArtifactsAtURLWithFaults(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := buckettest.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch n := requests.Add(1); {
			case n%5 == 0:
				rw.WriteHeader(http.StatusServiceUnavailable)
				_, _ = rw.Write([]byte("<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"))
			case n%11 == 0:
				panic(http.ErrAbortHandler)
			default:
				next.ServeHTTP(rw, r)
			}
		})
	})
	w := newFixture(t, nil)
	w.startWorker("w0", behavior{})
	w.atURL(server.URL(""))
	<-w.startLearner(1, w.dieAt(learner.FaultPoints()[len(learner.FaultPoints())/2], 2)).done
	w.atURL(server.URL(""))
	verdict := w.waitFor(w.startLearner(2, nil), contract.CauseCompleted)
	w.file.ArtifactsURL = server.URL("")
	w.download()
	w.compare(verdict, baseline(t))
	w.checkEpisodes()
}
