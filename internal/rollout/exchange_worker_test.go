// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
)

// answering is a learner of which only the attempt is asked.
type answering struct{ Learner }

func (answering) Attempt() int32 { return 1 }

// TestHelloLeavesFinishedGroupsOfKeptLeasesInTheOutbox has a learner that no longer requests finished groups which waited in
// the outbox for too long. It waits for the group whose lease it keeps, so that this must be sent; it does not need the other.
func TestHelloLeavesFinishedGroupsOfKeptLeasesInTheOutbox(t *testing.T) {
	store, err := groupstore.Open(groupstore.Config{
		Dir: t.TempDir(), Version: contract.FormatVersion, MemoryBytes: 1 << 20, DiskBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := New(Config{Learner: answering{}, Groups: store, Logger: slog.New(slog.DiscardHandler)})
	kept, dropped := trainKey(1), trainKey(2)
	for _, key := range []rl.Key{kept, dropped} {
		w.submitter.store(rl.Group{Key: key, Environment: "sums", Outcome: rl.EnvironmentFault, Reason: "no server"})
	}
	w.active.add(&activeGroup{key: kept, cancel: func() {}, lease: exchange.Lease{Key: kept}})
	play, err := contract.EncodePlay(contract.Play{Version: contract.FormatVersion, Model: contract.Model{Name: "tinkersim/byte-136k"}})
	if err != nil {
		t.Fatal(err)
	}
	side := &exchangeWorker{worker: w, fail: func(err error) { t.Error(err) }}
	request := side.Hello()
	if len(request.Stored) != 2 || !slices.Equal(request.Playing, []rl.Key{kept}) {
		t.Fatalf("Hello = %+v, want two stored groups, and one in progress", request)
	}
	side.HandleHello(exchange.HelloReply{Keep: []exchange.Lease{{Key: kept}}, Play: play})
	if key, ok := w.submitter.outbox.take(); !ok || key != kept {
		t.Errorf("the outbox gives %v, %v, want the group whose lease was kept", key, ok)
	}
	if key, ok := w.submitter.outbox.take(); ok {
		t.Errorf("the outbox still has %v, which the learner does not want", key)
	}
}
