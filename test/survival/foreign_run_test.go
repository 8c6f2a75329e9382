// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
)

// TestWorkersAndManagerOfAnotherRunFenceNobody sends messages of a run with higher attempts to the learner of another
// run, as when an address is given to another pod: neither a worker nor a heartbeat fences it.
func TestWorkersAndManagerOfAnotherRunFenceNobody(t *testing.T) {
	t.Parallel()
	w, other := newFixture(t, nil), newFixture(t, nil)
	foreign := other.startWorker("w0", behavior{})
	<-other.startLearner(5, other.dieAt("covered.sent", 1)).done

	w.startWorker("w0", behavior{})
	arrived, resume := make(chan struct{}), make(chan struct{})
	a := w.startLearner(1, func(ctx context.Context, _ func() error, point string, step int64) error {
		if point == "covered.sent" && step == 1 {
			close(arrived)
			select {
			case <-resume:
			case <-ctx.Done():
			}
		}
		return nil
	})
	<-arrived
	other.mu.Lock()
	other.address = w.address
	other.mu.Unlock()
	select {
	case <-foreign.ended:
	case <-time.After(200 * time.Millisecond): // it dials every 100 ms at first
	}
	if _, err := other.heartbeat(a, 6, contract.DesiredRun); err == nil {
		t.Error("the learner answers a heartbeat of another run")
	}
	// With the certificate of the learner's run, the token of the other run is refused. With the certificate and the
	// token of the learner's run, the UID of the other run is refused.
	for name, tc := range map[string]struct {
		credentials contract.Credentials
		want        error
	}{
		"the token": {contract.Credentials{Certificate: w.credentials.Certificate, Token: other.credentials.Token},
			exchange.ErrUnauthorized},
		"the run UID": {w.credentials, exchange.ErrForeign},
	} {
		client, err := exchange.NewClient(exchange.ClientConfig{
			Address: other.file.LearnerAddress, Credentials: tc.credentials, RunUID: other.file.Run.UID,
			SpecDigest: w.file.SpecDigest, Worker: "x", Logger: w.logger(), Renew: 50 * time.Millisecond, Dial: w.dial,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := client.Run(ctx, foreign); !errors.Is(err, tc.want) {
			t.Errorf("%s of another run: %v, want %v", name, err, tc.want)
		}
		cancel()
		_ = client.Close()
	}
	close(resume)
	w.checkSame(w.waitFor(a, contract.CauseCompleted))
}
