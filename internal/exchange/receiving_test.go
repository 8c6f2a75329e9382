// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// holder is a learner that counts the bytes of the groups that it receives at the same time. A group of the slot held
// stays until release is closed.
type holder struct {
	*learner
	size    map[int64]int64
	held    int64
	entered chan int64
	release chan struct{}
	full    chan struct{}

	mu        sync.Mutex
	now, most int64
	isFull    func()
}

func newHolder(held int64) *holder {
	h := &holder{learner: newLearner(), size: map[int64]int64{}, held: held, entered: make(chan int64, 3),
		release: make(chan struct{}), full: make(chan struct{})}
	h.isFull = sync.OnceFunc(func() { close(h.full) })
	return h
}

func (h *holder) Submit(_ string, group rl.Group, _ rl.Digest) *SubmitReply {
	slot := group.Key.Slot
	h.add(h.size[slot])
	defer h.add(-h.size[slot])
	select {
	case h.entered <- slot:
	default:
	}
	if slot == h.held {
		<-h.release
	} else {
		select { // until too many have arrived, if nothing bounds them
		case <-h.full:
		case <-time.After(time.Second):
		}
	}
	return &SubmitReply{}
}

func (h *holder) add(bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += bytes
	if h.most = max(h.most, h.now); h.now > maxSubmitBytes {
		h.isFull()
	}
}

// TestSubmitsAreBoundedInBytes submits large groups from many workers at the same time.
func TestSubmitsAreBoundedInBytes(t *testing.T) {
	const workers, members = 6, 20 // groups of 10 MiB
	h := newHolder(-1)
	var groups []EncodedGroup
	for n := range int64(workers) {
		g := encodedGroup(n, members, 1<<16)
		groups, h.size[n] = append(groups, g), int64(len(g.Message))
	}
	if one := h.size[0]; one*maxSubmits <= maxSubmitBytes || one > maxSubmitBytes {
		t.Fatalf("a group has %d bytes, which the bound does not concern", one)
	}
	s := serve(t, "", epochOf(1), h, Timing{})
	var all sync.WaitGroup
	for n, group := range groups {
		config := clientConfig(t, s.address)
		config.Worker = fmt.Sprintf("worker-%d", n)
		a := runClient(t, config, newWorker())
		all.Go(func() {
			reply, err := a.Submit(t.Context(), group)
			for errors.Is(err, ErrUnreachable) { // A busy machine takes longer; a worker submits again as well.
				reply, err = a.Submit(t.Context(), group)
			}
			if err != nil || reply.Status != Accepted {
				t.Errorf("Submit = %v, %v", reply, err)
			}
		})
	}
	all.Wait()
	if h.most > maxSubmitBytes {
		t.Errorf("%d MiB of groups were received at the same time, want at most %d", h.most>>20, maxSubmitBytes>>20)
	}
}

// TestSmallGroupsDoNotWaitForLargeOnes submits a large group that takes all the room for large groups, another large
// group, which waits for the first, and then a small group.
func TestSmallGroupsDoNotWaitForLargeOnes(t *testing.T) {
	h := newHolder(1)
	s := serve(t, "", epochOf(1), h, Timing{})
	a := runClient(t, clientConfig(t, s.address), newWorker())
	large, small := encodedGroup(1, 65, 1<<16), encodedGroup(2, 2, 64)
	if len(large.Message) < maxSubmitBytes {
		t.Fatalf("the large group has only %d bytes", len(large.Message))
	}
	var all sync.WaitGroup
	submit := func(g EncodedGroup) {
		if reply, err := a.Submit(t.Context(), g); err != nil || reply.Status != Accepted {
			t.Errorf("Submit of slot %d = %v, %v", g.Key.Slot, reply, err)
		}
	}
	all.Go(func() { submit(large) })
	take(t, "large group", h.entered)
	all.Go(func() { submit(encodedGroup(3, 40, 1<<16)) })
	submit(small)
	if slot := take(t, "small group", h.entered); slot != small.Key.Slot {
		t.Errorf("slot %d came beside a group that has all the room, want %d", slot, small.Key.Slot)
	}
	close(h.release)
	all.Wait()
}
