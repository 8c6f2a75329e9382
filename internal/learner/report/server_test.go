// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// TestHealth checks that the liveness probe is answered exactly when a heartbeat would be.
func TestHealth(t *testing.T) {
	release := make(chan struct{})
	s := Server{RunUID: "uid", Status: NewStatus("uid", 1, time.Now),
		Beat: func(r contract.HeartbeatRequest) contract.HeartbeatReply {
			if r.Attempt != 0 || r.Desired == contract.DesiredDrain {
				t.Errorf("a probe asks the learner for something: %+v", r)
			}
			<-release
			return contract.HeartbeatReply{}
		}}
	answered := make(chan int, 1)
	go func() {
		recorder := httptest.NewRecorder()
		s.routes().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		answered <- recorder.Code
	}()
	select {
	case code := <-answered:
		t.Errorf("a wedged learner answers %d", code)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if code := <-answered; code != http.StatusOK {
		t.Errorf("a learner that answers heartbeats answers %d", code)
	}
}
