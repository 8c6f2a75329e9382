// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport/transporttest"
)

// served is an environment with a server that may be down.
type served struct {
	environment.Environment
	down   atomic.Bool
	panics atomic.Bool
	checks atomic.Int64
}

func (s *served) Checker() environment.Checker { return s }

// Check implements environment.Checker.
func (s *served) Check(context.Context) error {
	s.checks.Add(1)
	if s.panics.Load() {
		panic("a nil answer")
	}
	if s.down.Load() {
		return errors.New("still down")
	}
	return nil
}

// local is an environment that runs in this process.
type local struct{ environment.Environment }

var (
	errDown  = &environment.Fault{Unavailable: true, Err: errors.New("connection refused")}
	errFault = &environment.Fault{Err: errors.New("the tool raised")}
)

// run runs a test with a monitor on a clock of its own.
func run(t *testing.T, test func(t *testing.T, m *Monitor, s *served)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		m := NewMonitor(ctx, slog.New(slog.DiscardHandler), nil)
		test(t, m, &served{})
		stop()
		m.Wait()
	})
}

func TestEpisodesWaitUntilTheServerIsAvailable(t *testing.T) {
	run(t, func(t *testing.T, m *Monitor, s *served) {
		s.down.Store(true)
		g := m.Group("e", s, 1, false)
		g.Ended(false, errDown)
		problems, codes := m.Problems()
		if diff := cmp.Diff(map[string]string{"e": "connection refused"}, problems); diff != "" || len(codes) > 0 {
			t.Errorf("Problems with the codes %v (-want +got):\n%s", codes, diff)
		}
		began := time.Now()
		time.AfterFunc(100*time.Second, func() { s.down.Store(false) })
		if err := g.Admit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 100*time.Second || took > 130*time.Second || s.checks.Load() > 10 {
			t.Errorf("waited %v with %d checks, want an end within 30 s of the outage's, and few checks", took, s.checks.Load())
		}
		if got, _ := m.Problems(); len(got) > 0 {
			t.Errorf("Problems = %v after the outage", got)
		}
	})
}

// TestServerOfAPrivateAuthority checks that the code for a server whose authority is not trusted is reported until the
// server fails in another way.
func TestServerOfAPrivateAuthority(t *testing.T) {
	server := transporttest.PrivateServer(t)
	_, refused := tls.Dial("tcp", server.Listener.Addr().String(), nil)
	run(t, func(t *testing.T, m *Monitor, s *served) {
		s.down.Store(true)
		m.Group("e", s, 1, false).Ended(false, &environment.Fault{Unavailable: true, Err: refused})
		problems, codes := m.Problems()
		want := map[string]string{"e": string(problem.ServersAuthorityUnknown)}
		if diff := cmp.Diff(want, codes); diff != "" || !strings.Contains(problems["e"], "x509") {
			t.Errorf("Problems = %v with codes (-want +got):\n%s", problems, diff)
		}
		time.Sleep(time.Minute)
		if problems, codes := m.Problems(); problems["e"] != "still down" || len(codes) > 0 {
			t.Errorf("Problems = %v with the codes %v, want none after a check with another failure", problems, codes)
		}
	})
}

func TestAdmitEndsWithItsContext(t *testing.T) {
	run(t, func(t *testing.T, m *Monitor, s *served) {
		s.down.Store(true)
		g := m.Group("e", s, 1, false)
		g.Ended(false, errDown)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := g.Admit(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Admit = %v, want the context's error", err)
		}
	})
}

func TestSkippedGroupsEndInFaults(t *testing.T) {
	run(t, func(t *testing.T, m *Monitor, s *served) {
		s.down.Store(true)
		m.Skip([]string{"e"})
		training, evaluation := m.Group("e", s, 1, true), m.Group("e", s, 2, false)
		if err := training.Admit(t.Context()); err != nil {
			t.Errorf("Admit = %v while the environment is available", err)
		}
		training.Ended(false, errDown)
		var fault *environment.Fault
		if err := training.Admit(t.Context()); !errors.As(err, &fault) || !fault.Permanent || fault.Unavailable {
			t.Errorf("Admit = %v, want a permanent fault", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := evaluation.Admit(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Admit = %v for an evaluation, want that it waits", err)
		}
	})
}

func TestFailuresThatOpenABreaker(t *testing.T) {
	cases := map[string]struct {
		events func(a, b *Group)
		open   bool
	}{
		"nothing": {events: func(*Group, *Group) {}},
		"a server that takes no session": {
			events: func(a, _ *Group) { a.Ended(false, errDown) }, open: true,
		},
		"a server that takes no further session": {events: func(a, b *Group) {
			a.Begun()
			b.Ended(false, errDown)
		}},
		"a server that takes no session after the others ended": {open: true, events: func(a, b *Group) {
			a.Begun()
			a.Ended(true, nil)
			b.Ended(false, errDown)
		}},
		"many faults of one group": {events: func(a, _ *Group) { fail(a, 3*maxFaults) }},
		"many faults of two groups": {open: true, events: func(a, b *Group) {
			fail(a, maxFaults-1)
			fail(b, 1)
		}},
		"as many with a success between": {events: func(a, b *Group) {
			fail(a, maxFaults-1)
			a.Begun()
			a.Ended(true, nil)
			fail(b, 1)
		}},
		"many faults of a judge": {events: func(a, b *Group) {
			for _, g := range []*Group{a, b} {
				for range maxFaults {
					g.Begun()
					g.Ended(true, &environment.Fault{Kind: environment.JudgeFault, Err: errors.New("asleep")})
				}
			}
		}},
		"episodes that were stopped": {events: func(a, b *Group) {
			for range maxFaults {
				a.Begun()
				a.Ended(true, context.Canceled)
				b.Begun()
				b.Ended(true, context.Canceled)
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, m *Monitor, s *served) {
				s.down.Store(true)
				tc.events(m.Group("e", s, 1, false), m.Group("e", s, 2, false))
				problems, _ := m.Problems()
				if open := len(problems) > 0; open != tc.open {
					t.Errorf("open is %v, want %v", open, tc.open)
				}
			})
		})
	}
}

func fail(g *Group, times int) {
	for range times {
		g.Begun()
		g.Ended(true, errFault)
	}
}

// TestPausesGrowUntilAnEpisodeSucceeds uses a server whose checks succeed and whose episodes fail.
func TestPausesGrowUntilAnEpisodeSucceeds(t *testing.T) {
	run(t, func(t *testing.T, m *Monitor, s *served) {
		a, b := m.Group("e", s, 1, false), m.Group("e", s, 2, false)
		pause := func() time.Duration {
			fail(a, maxFaults)
			fail(b, 1)
			began := time.Now()
			if err := a.Admit(t.Context()); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		got := []time.Duration{pause(), pause(), pause()}
		a.Begun()
		a.Ended(true, nil)
		got = append(got, pause())
		if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, time.Second}, got); diff != "" {
			t.Errorf("pauses (-want +got):\n%s", diff)
		}
	})
}

func TestEnvironmentsWithoutAServerAreNotWatched(t *testing.T) {
	run(t, func(t *testing.T, m *Monitor, _ *served) {
		if g := m.Group("e", local{}, 1, true); g != nil {
			t.Errorf("Group = %v, want nil", g)
		}
	})
}

// TestChecksMayPanic checks that an environment whose check panics is unavailable until a check succeeds.
func TestChecksMayPanic(t *testing.T) {
	run(t, func(t *testing.T, m *Monitor, s *served) {
		s.panics.Store(true)
		g := m.Group("e", s, 1, false)
		g.Ended(false, errDown)
		time.Sleep(10 * time.Second)
		problems, _ := m.Problems()
		if got, want := problems["e"], "checking environment e panicked: a nil answer"; got != want {
			t.Errorf("the problem is %q, want %q", got, want)
		}
		s.panics.Store(false)
		if err := g.Admit(t.Context()); err != nil {
			t.Errorf("Admit = %v after a check that succeeded, want no error", err)
		}
	})
}
