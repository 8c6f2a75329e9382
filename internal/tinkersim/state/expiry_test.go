// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
)

// TestIdleSessionsEnd checks that a server that gets no further request removes a session that is idle for too
// long, with its models, its ephemeral weights and the results that were not fetched.
func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		session := f.session()
		model := f.model(session, 0)
		f.await(f.Models.SaveSampler(tinker.SaveSamplerRequest{ModelID: model, SeqID: 1, SamplingSessionSeq: new(int64(0))}))
		path := tinker.Path{Run: model, Kind: checkpoint.Ephemeral, Name: "0"}
		if _, err := f.shared.store.Checkpoint(path); err != nil {
			t.Fatal(err)
		}
		f.clock.advance(time.Hour)
		time.Sleep(2 * time.Minute) // the fake time of the bubble, for the ticker
		synctest.Wait()
		if sessions := f.Sessions.List(); len(sessions) != 0 {
			t.Errorf("sessions %v", sessions)
		}
		f.Models.mu.Lock()
		if models := len(f.Models.trainers); models != 0 {
			t.Errorf("%d models", models)
		}
		f.Models.mu.Unlock()
		if results := f.shared.futures.Len(); results != 0 {
			t.Errorf("%d results", results)
		}
		if _, err := f.shared.store.Checkpoint(path); err == nil {
			t.Error("the ephemeral weights still exist")
		}
	})
}
