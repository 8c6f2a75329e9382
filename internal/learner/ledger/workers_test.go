// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// numbered returns a report with a sequence number.
func numbered(sequence int64, spent exchange.Spent) exchange.Spent {
	spent.Sequence = sequence
	return spent
}

// TestReportsThatOvertake checks that the newest report counts, in whatever order reports with the same answered
// tokens arrive.
func TestReportsThatOvertake(t *testing.T) {
	f := start(t, nil)
	f.renew("w0", numbered(3, report("p0", 10, 40)), leased{1, 10, 50})
	f.Report("w0", numbered(2, report("p0", 10, 0)), nil)
	f.expect(t, "a report from before the request", 10, 40)
	f.Report("w0", numbered(5, report("p0", 10, 0)), []rl.Key{key(1)})
	f.expect(t, "the request has failed", 10, 0)
	f.renew("w0", numbered(4, report("p0", 10, 40)), leased{2, 0, 60})
	f.End()
	f.expect(t, "a renewal from before that, which lists another lease", 10, 60)
	f.renew("w0", numbered(1, report("p0", 10, 40)))
	f.expect(t, "a renewal from before the other lease", 10, 60)
}

// TestOpenLeases checks that the possible requests of live workers are unconfirmed when the run is complete.
func TestOpenLeases(t *testing.T) {
	for name, tt := range map[string]struct {
		// do is called before the run is complete.
		do   func(f *fixture)
		want int64
	}{
		"a lease that was sent": {func(f *fixture) { f.OpenLease("p0", key(1), 50) }, 50},
		"a lease that was sent again before the group was reported": {func(f *fixture) {
			f.OpenLease("p0", key(1), 50)
			f.OpenLease("p0", key(1), 50)
		}, 100},
		"a group that was submitted": {func(f *fixture) {
			f.OpenLease("p0", key(1), 50)
			f.Report("w0", report("p0", 0, 0), []rl.Key{key(1)})
		}, 0},
		"a group in progress": {func(f *fixture) {
			f.OpenLease("p0", key(1), 50)
			f.renew("w0", report("p0", 0, 0), leased{1, 0, 20})
		}, 20},
		"a group that is in progress no more": {func(f *fixture) {
			f.OpenLease("p0", key(1), 50)
			f.renew("w0", report("p0", 0, 0))
		}, 0},
		"a group that is in progress when the worker says Hello": {func(f *fixture) {
			f.Hello("w0", report("p0", 0, 0), nil, []exchange.Progress{{Key: key(1), Next: 30}})
		}, 30},
		"a lease of a process that another has followed": {func(f *fixture) {
			f.OpenLease("p0", key(1), 50)
			f.hello("w0", report("p1", 0, 0), nil)
		}, 50},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, nil)
			f.hello("w0", report("p0", 0, 0), nil)
			tt.do(f)
			f.End()
			f.expect(t, "the run is complete", 0, tt.want)
			if err := f.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			start(t, f).expect(t, "another attempt begins", 0, tt.want)
		})
	}
}

// TestJoined checks that Joined reports processes that the last record does not name.
func TestJoined(t *testing.T) {
	f := start(t, nil)
	expect := func(what string, want bool) {
		t.Helper()
		got := false
		select {
		case <-f.Joined():
			got = true
		default:
		}
		if got != want {
			t.Errorf("%s: a record is wanted: %t, want %t", what, got, want)
		}
	}
	f.hello("w0", report("p0", 0, 0), nil)
	f.hello("w1", report("p1", 0, 0), nil)
	expect("two workers say Hello", true)
	f.renew("w0", report("p0", 10, 0))
	expect("a worker renews its leases", false)
	f.Lose("w1")
	expect("a worker is lost", false)
	f.renew("w1", report("p1", 10, 0))
	expect("it returns", true)
}
