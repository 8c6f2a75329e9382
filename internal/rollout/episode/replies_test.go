// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// keeper keeps replies, as a disk does.
type keeper struct {
	mu   sync.Mutex
	kept map[string][]byte
	// inherited means that all replies are from an earlier process.
	inherited bool
}

func (k *keeper) Reply(key rl.Key, request rl.Digest) (reply []byte, inherited, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	reply, ok = k.kept[fmt.Sprintf("%v %x", key, request)]
	return reply, k.inherited, ok
}

func (k *keeper) KeepReply(key rl.Key, request rl.Digest, reply []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept[fmt.Sprintf("%v %x", key, request)] = reply
}

var errDeath = errors.New("the worker has died")

// TestAgentAfterTheDeathOfItsWorker plays a group whose worker dies after so many replies. The next worker with the
// same disk asks only for the missing replies, and the training data equal the data of an undisturbed group.
func TestAgentAfterTheDeathOfItsWorker(t *testing.T) {
	spec := singleMember(nil)
	spec.GroupSize = 2
	whole := &seeded{}
	want := play(t, agentOf(team), whole, spec)
	total := len(whole.numbers())
	for lives := 0; lives <= total; lives++ {
		store := &keeper{kept: map[string][]byte{}}
		bought := &seeded{}
		left := lives
		var mu sync.Mutex
		dying := policyFunc(func(ctx context.Context, request Request) (Sample, error) {
			mu.Lock()
			defer mu.Unlock()
			if left == 0 {
				return Sample{}, errDeath
			}
			left--
			return bought.Sample(ctx, request)
		})
		player := newPlayer(t, agentOf(team), dying)
		player.Replies = store
		if _, err := player.Play(t.Context(), spec); lives < total && !errors.Is(err, errDeath) {
			t.Fatalf("the worker that dies after %d replies: %v", lives, err)
		}
		next := newPlayer(t, agentOf(team), bought)
		next.Replies, store.inherited = store, true
		var tokens atomic.Int64
		next.Progress.Inherited = func(prompt, sampled int) { tokens.Add(int64(prompt + sampled)) }
		got, err := next.Play(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if len(bought.numbers()) != total {
			t.Errorf("after %d replies: %d replies were bought, want %d", lives, len(bought.numbers()), total)
		}
		paid := player.Progress.PromptTokens.Load() + player.Progress.SampledTokens.Load()
		if tokens.Load() != paid {
			t.Errorf("after %d replies: %d tokens are inherited, and %d were paid for", lives, tokens.Load(), paid)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %d replies (-undisturbed +got):\n%s", lives, diff)
		}
	}
	other := spec
	other.Seed++
	store, bought := &keeper{kept: map[string][]byte{}}, &seeded{}
	for _, spec := range []Spec{spec, other} {
		player := newPlayer(t, agentOf(team), bought)
		player.Replies = store
		if _, err := player.Play(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(bought.numbers()); got != 2*total {
		t.Errorf("a group of another seed: %d replies were bought for both, want %d", got, 2*total)
	}
}
