// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
)

// seedWatch counts the samples with long seeds, and the samples that are requested while one of these is unanswered.
type seedWatch struct {
	next http.Handler

	mu       sync.Mutex
	long     int
	inFlight bool
	others   int
}

// ServeHTTP implements http.Handler.
func (s *seedWatch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/asample") {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.posted(body)
	}
	answer := statusWriter{ResponseWriter: w}
	s.next.ServeHTTP(&answer, r)
	if strings.HasSuffix(r.URL.Path, "/retrieve_future") && answer.status == http.StatusBadRequest {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inFlight = false
	}
}

func (s *seedWatch) posted(body []byte) {
	var sample struct {
		SamplingParams struct{ Seed *int64 } `json:"sampling_params"`
	}
	_ = json.Unmarshal(body, &sample)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight {
		s.others++
	}
	if seed := sample.SamplingParams.Seed; seed != nil && *seed > math.MaxInt32 {
		s.long++
		s.inFlight = true
	}
}

// statusWriter remembers the status of a response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// TestLongSeedIsTriedAlone checks a server like SkyRL, which refuses a long seed and all samples that it draws together
// with it. So no other sample may be in flight.
func TestLongSeedIsTriedAlone(t *testing.T) {
	watch := new(seedWatch)
	_, checker := serverWith(t, tinkersim.Options{Dialect: dialect.NameSkyRL}, func(next http.Handler) http.Handler {
		watch.next = next
		return watch
	})
	checker.Features = append([]capability.Feature{capability.Protobuf, capability.SamplerSnapshot}, sampling...)
	report := run(t, checker)
	if got := report.Findings[capability.Seed].Support; got != capability.Unsupported {
		t.Errorf("seed is %v, want %v", got, capability.Unsupported)
	}
	if got := report.Findings[capability.PromptLogprobs].Support; got != capability.Supported {
		t.Errorf("prompt_logprobs is %v, want %v", got, capability.Supported)
	}
	if watch.long != 1 || watch.others != 0 {
		t.Errorf("%d samples have long seeds, and %d others were asked for beside them, want 1 and none", watch.long,
			watch.others)
	}
}
