// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package opening

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// fakeAPI makes the sessions s1, s2 and so on. A session is alive until a test expires it.
type fakeAPI struct {
	mu      sync.Mutex
	made    int
	err     error
	expired map[string]bool
	lost    map[string]func(error)
}

func newFake() *fakeAPI { return &fakeAPI{expired: map[string]bool{}, lost: map[string]func(error){}} }

func (f *fakeAPI) CreateSession(context.Context, client.SessionRequest) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return "", f.err
	}
	f.made++
	return fmt.Sprintf("s%d", f.made), nil
}

func (f *fakeAPI) Heartbeat(_ context.Context, session string) error {
	if f.expired[session] {
		return errors.New("the session has expired")
	}
	return nil
}

func (f *fakeAPI) KeepAlive(ctx context.Context, session string, lost func(error)) {
	f.mu.Lock()
	f.lost[session] = lost
	f.mu.Unlock()
	<-ctx.Done()
}

// expire waits until a session is kept alive, and expires it.
func (f *fakeAPI) expire(t *testing.T, session string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		f.mu.Lock()
		lost := f.lost[session]
		f.mu.Unlock()
		if lost != nil {
			lost(errors.New("404"))
			return
		}
	}
	t.Fatalf("session %s is not kept alive", session)
}

// keep returns a keeper, and a function that returns the sessions that the keeper has reported.
func keep(t *testing.T, f *fakeAPI) (*SessionKeeper, func() []string) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	t.Cleanup(func() {
		end()
		tasks.Wait()
	})
	var mu sync.Mutex
	var reported []string
	k := NewSessionKeeper(ctx, f, &tasks, slog.New(slog.DiscardHandler), func(session string) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, session)
	})
	return k, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), reported...)
	}
}

func TestKeeper(t *testing.T) {
	get := func(t *testing.T, k *SessionKeeper) string {
		t.Helper()
		session, err := k.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	cases := map[string]struct {
		do   func(t *testing.T, k *SessionKeeper, f *fakeAPI)
		want []string
	}{
		"a session is made once": {
			func(t *testing.T, k *SessionKeeper, _ *fakeAPI) { get(t, k); get(t, k) }, []string{"s1"},
		},
		"an expired session is replaced": {
			func(t *testing.T, k *SessionKeeper, f *fakeAPI) { get(t, k); f.expire(t, "s1"); get(t, k) }, []string{"s1", "s2"},
		},
		"a dropped session is replaced": {
			func(t *testing.T, k *SessionKeeper, _ *fakeAPI) { k.Drop(get(t, k)); get(t, k) }, []string{"s1", "s2"},
		},
		"dropping an older session changes nothing": {
			func(t *testing.T, k *SessionKeeper, _ *fakeAPI) { get(t, k); k.Drop("s0"); get(t, k) }, []string{"s1"},
		},
		"a session that is alive is adopted": {
			func(t *testing.T, k *SessionKeeper, _ *fakeAPI) { k.Adopt(t.Context(), "old"); get(t, k) }, []string{"old"},
		},
		"an expired session is not adopted": {
			func(t *testing.T, k *SessionKeeper, f *fakeAPI) {
				f.expired["old"] = true
				k.Adopt(t.Context(), "old")
				get(t, k)
			}, []string{"s1"},
		},
		"no session is adopted": {
			func(t *testing.T, k *SessionKeeper, _ *fakeAPI) { k.Adopt(t.Context(), ""); get(t, k) }, []string{"s1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			k, reported := keep(t, f)
			tc.do(t, k, f)
			if diff := cmp.Diff(tc.want, reported()); diff != "" {
				t.Errorf("sessions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGetFails(t *testing.T) {
	f := newFake()
	f.err = errors.New("the server is restarting")
	k, reported := keep(t, f)
	if _, err := k.Get(t.Context()); !errors.Is(err, f.err) {
		t.Errorf("Get = %v, want %v", err, f.err)
	}
	if len(reported()) > 0 {
		t.Errorf("sessions %v are reported", reported())
	}
}

func TestKeep(t *testing.T) {
	f := newFake()
	k, reported := keep(t, f)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Keep(ctx, time.Millisecond)
	}()
	f.expire(t, "s1")
	f.expire(t, "s2")
	end()
	<-done
	if got := reported(); len(got) < 2 {
		t.Errorf("sessions %v, want a new one for each that expired", got)
	}
}
