// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// server is the server that is checked: it notes the requests, and answers as the test says.
type server struct {
	mu    sync.Mutex
	asked []string
	json  []bool
	// found are the findings that are not Supported, err is the error of the next checks, and took the length of a
	// check.
	found map[capability.Feature]capability.Support
	err   error
	took  time.Duration
}

func (s *server) run(ctx context.Context, r tinker.CheckRequest, knownJSON bool) (capability.Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.BaseModel+" "+strings.Join(r.Features, ","))
	s.json = append(s.json, knownJSON)
	took, failed := s.took, s.err
	s.mu.Unlock()
	select {
	case <-time.After(took):
	case <-ctx.Done():
		failed = ctx.Err()
	}
	s.mu.Lock()
	if failed != nil {
		return capability.Report{}, failed
	}
	report := capability.Report{Findings: map[capability.Feature]capability.Finding{}}
	for _, f := range r.Features {
		support, ok := s.found[capability.Feature(f)]
		if !ok {
			support = capability.Supported
		}
		report.Findings[capability.Feature(f)] = capability.Finding{Support: support}
	}
	return report, nil
}

func (s *server) since() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func opened(t *testing.T, dir, version string, s *server) *Checks {
	t.Helper()
	c, err := Open(Config{Dir: dir, Run: s.run, Lease: func() error { return nil }, ClientVersion: version,
		Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	c.SetConnection("c")
	return c
}

func of(model string, features ...string) tinker.CheckRequest {
	return tinker.CheckRequest{BaseModel: model, Lora: tinker.DefaultLora(), Features: features}
}

// ask asks for a check, and fails the test unless there is an answer.
func ask(t *testing.T, c *Checks, r tinker.CheckRequest) endpoint.Check {
	t.Helper()
	found, ended, err := c.Ask(t.Context(), r)
	if err != nil || !ended {
		t.Fatalf("asking for %v: %v, %v", r, ended, err)
	}
	return found
}

// TestOnce checks each feature once for all runs: a known feature is not checked again, a run that asks while a check
// is in progress waits for it, and another choice of matrices or another model is another check.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: time.Minute, found: map[capability.Feature]capability.Support{"ttl": capability.Ignored,
			"protobuf": capability.Unsupported}}
		c := opened(t, t.TempDir(), "v1", s)
		defer c.Close()
		var asking sync.WaitGroup
		for range 5 {
			asking.Go(func() {
				found := ask(t, c, of("m", "seed", "ttl", "no such feature"))
				if !slices.Equal(found.Supported, []string{"seed"}) ||
					!slices.Equal(found.Ignored, []string{"ttl"}) {
					t.Errorf("found %+v", found)
				}
			})
		}
		asking.Wait()
		ask(t, c, of("m", "seed"))
		ask(t, c, of("m", "seed", "protobuf"))
		all := ask(t, c, of("m", "top_k", "seed"))
		attention := of("m", "seed")
		attention.Lora.TrainMLP, attention.Lora.TrainUnembed, attention.Lora.Rank = false, false, 4
		ask(t, c, attention)
		attention.Lora.Rank = 8
		ask(t, c, attention)
		ask(t, c, of("n", "seed"))
		want := []string{"m seed,ttl", "m protobuf", "m top_k", "m seed", "n seed"}
		if got := s.since(); !slices.Equal(got, want) {
			t.Errorf("checked %q, want %q", got, want)
		}
		if !slices.Equal(s.json, []bool{false, false, true, false, false}) {
			t.Errorf("the encoding was known as JSON: %v", s.json)
		}
		if !slices.Equal(all.Supported, []string{"seed", "top_k"}) || all.ClientVersion != "v1" || all.Connection != "c" ||
			!slices.Equal(all.TrainModules, []string{"Attention", "MLP", "Unembed"}) {
			t.Errorf("found %+v", all)
		}
		report := c.Report()
		if len(report) != 3 || !slices.Equal(report[0].TrainModules, []string{"Attention"}) || report[2].Model != "n" {
			t.Errorf("reported %+v", report)
		}
	})
}

// TestAgain checks that a feature is checked again after a day, at another connection, and by another version of the
// client, even if another broker found it.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir := &server{}, t.TempDir()
		c := opened(t, dir, "v1", s)
		first := ask(t, c, of("m", "seed"))
		time.Sleep(time.Hour)
		if second := ask(t, c, of("m", "seed", "top_k")); !second.CheckedAt.Equal(first.CheckedAt) {
			t.Errorf("checked at %v, want the time of the oldest finding, %v", second.CheckedAt, first.CheckedAt)
		}
		c.Close()
		c = opened(t, dir, "v1", s)
		if diff := cmp.Diff([]string{"seed", "top_k"}, ask(t, c, of("m", "seed", "top_k")).Supported); diff != "" {
			t.Errorf("the next broker (-want +got):\n%s", diff)
		}
		s.since()
		for name, change := range map[string]func(){
			"a day later":           func() { time.Sleep(life) },
			"at another connection": func() { c.SetConnection("d") },
			"with another client": func() {
				c.Close()
				c = opened(t, dir, "v2", s)
			},
		} {
			change()
			if found := ask(t, c, of("m", "seed")); !slices.Equal(found.Supported, []string{"seed"}) {
				t.Errorf("%s: found %+v, want seed alone", name, found)
			}
			if got := s.since(); !slices.Equal(got, []string{"m seed"}) {
				t.Errorf("%s: checked %q", name, got)
			}
		}
		c.Close()
	})
}

// TestFailures checks two failures: after an outage, the next run that asks repeats the check; a refusal is kept for a
// minute, and is forgotten when no run asks any more.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{err: &client.Error{Category: tinker.CategoryServer, Message: "overloaded"}}
		c := opened(t, t.TempDir(), "v1", s)
		defer c.Close()
		fails := func() error {
			_, ended, err := c.Ask(t.Context(), of("m", "seed"))
			if err == nil || ended {
				t.Fatalf("a failed check: ended %v, %v", ended, err)
			}
			return err
		}
		if refused := new(RefusedError); errors.As(fails(), &refused) || len(c.Report()) > 0 {
			t.Errorf("an outage is reported: %+v", c.Report())
		}
		s.err = &client.Error{Category: tinker.CategoryUser, Message: "unknown model"}
		for range 3 {
			refused := new(RefusedError)
			if !errors.As(fails(), &refused) || !strings.Contains(refused.Message, "unknown model") {
				t.Errorf("refused with %v", refused)
			}
		}
		if got := len(s.since()); got != 2 {
			t.Errorf("%d checks, want one of the outage and one of the refusal", got)
		}
		if report := c.Report(); len(report) != 1 || !strings.Contains(report[0].Refused, "unknown model") {
			t.Errorf("reported %+v", report)
		}
		time.Sleep(refusedLife)
		fails()
		if got := len(s.since()); got != 1 {
			t.Errorf("%d checks a minute later, want 1", got)
		}
		time.Sleep(forgottenLife)
		if report := c.Report(); len(report) != 0 {
			t.Errorf("a refusal that nobody asks about is reported: %+v", report)
		}
		s.err = nil
		if found := ask(t, c, of("m", "seed")); found.Refused != "" || len(found.Supported) != 1 {
			t.Errorf("after the repair: %+v", found)
		}
	})
}

// TestUndecided checks that a feature that cannot be decided is tried twice, and then left undecided until the check
// is old.
func TestUndecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{found: map[capability.Feature]capability.Support{"seed": capability.Unknown}}
		c := opened(t, t.TempDir(), "v1", s)
		defer c.Close()
		for range 2 {
			found := ask(t, c, of("m", "seed", "ttl"))
			if !slices.Equal(found.Undecided, []string{"seed"}) || !slices.Equal(found.Supported, []string{"ttl"}) {
				t.Errorf("found %+v", found)
			}
		}
		if got := s.since(); !slices.Equal(got, []string{"m seed,ttl", "m seed"}) {
			t.Errorf("checked %q", got)
		}
	})
}

// TestPending checks that a caller that stops waiting gets an answer, and that the check goes on.
func TestPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{took: time.Minute}
		c := opened(t, t.TempDir(), "v1", s)
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ended, err := c.Ask(ctx, of("m", "seed")); ended || err != nil {
			t.Errorf("ended %v, %v, want neither", ended, err)
		}
		if report := c.Report(); len(report) != 1 || !report[0].Checking {
			t.Errorf("reported %+v", report)
		}
		ask(t, c, of("m", "seed"))
		if got := s.since(); len(got) != 1 {
			t.Errorf("checked %q, want once", got)
		}
	})
}

// TestDeath checks that a check ends with its broker and leaves no file: the next broker checks again. A file that
// cannot be decoded counts as missing.
func TestDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir := &server{took: time.Minute}, t.TempDir()
		c := opened(t, dir, "v1", s)
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, ended, err := c.Ask(t.Context(), of("m", "seed")); err == nil || ended {
				t.Errorf("the check of a broker that ends: ended %v, %v", ended, err)
			}
		})
		time.Sleep(time.Second)
		c.Close()
		asking.Wait()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%d files are left (%v)", len(left), err)
		}
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte("[{"), 0o600); err != nil {
			t.Fatal(err)
		}
		c = opened(t, dir, "v1", s)
		defer c.Close()
		ask(t, c, of("m", "seed"))
		if got := s.since(); len(got) != 2 {
			t.Errorf("checked %q, want twice", got)
		}
	})
}

// TestBound checks that the check for which no run has asked for the longest time is forgotten.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		c := opened(t, t.TempDir(), "v1", s)
		defer c.Close()
		for i := range endpoint.MaxChecks {
			ask(t, c, of(fmt.Sprintf("m%d", i), "seed"))
			time.Sleep(time.Second)
		}
		ask(t, c, of("m0", "seed"))
		s.since()
		ask(t, c, of("another", "seed"))
		ask(t, c, of("m0", "seed"))
		ask(t, c, of("m1", "seed"))
		if got := s.since(); !slices.Equal(got, []string{"another seed", "m1 seed"}) {
			t.Errorf("checked %q", got)
		}
		if got := len(c.Report()); got != endpoint.MaxChecks {
			t.Errorf("%d checks are reported, want %d", got, endpoint.MaxChecks)
		}
	})
}

// TestLostLease checks that nothing is recorded once another broker may act.
func TestLostLease(t *testing.T) {
	s, dir := &server{}, t.TempDir()
	c := opened(t, dir, "v1", s)
	defer c.Close()
	c.config.Lease = func() error { return errors.New("lost") }
	ask(t, c, of("m", "seed"))
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d files are written (%v)", len(left), err)
	}
}
