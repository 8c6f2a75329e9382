// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// joins says Hello for the first process of a worker.
func joins(t *testing.T, f *fixture, worker string, playing ...rl.Key) exchange.HelloReply {
	t.Helper()
	spent := exchange.Spent{Process: worker + "'s first"}
	return hello(t, f, worker, exchange.HelloRequest{Spent: spent, Playing: playing})
}

// dies ends a worker's connection, and lets the learner give its leases to others.
func dies(f *fixture, c *clock, worker string) {
	f.Disconnected(worker)
	c.now = c.now.Add(redial + time.Second)
	f.Tick()
}

func acquire(t *testing.T, f *fixture, worker string) []exchange.Lease {
	t.Helper()
	return f.grant(worker, 16)
}

// slotsOf describes leases: their slots, and the slots that are played alone.
func slotsOf(list []exchange.Lease) (slots, alone []int64) {
	for _, l := range list {
		slots = append(slots, l.Key.Slot)
		if l.Alone {
			alone = append(alone, l.Key.Slot)
		}
	}
	return slots, alone
}

// wantLeases fails unless the worker is leased exactly the slots: all of them alone, or none of them.
func wantLeases(t *testing.T, got []exchange.Lease, alone bool, want ...int64) {
	t.Helper()
	slots, alones := slotsOf(got)
	var wantAlone []int64
	if alone {
		wantAlone = want
	}
	if diff := cmp.Diff(want, slots); diff != "" {
		t.Fatalf("leases (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantAlone, alones); diff != "" {
		t.Fatalf("leases that are played alone (-want +got):\n%s", diff)
	}
}

// renews reports how many members of a worker's group are done, and returns the permits.
func renews(f *fixture, worker string, slot int64, done int) []exchange.Permit {
	return f.Renew(worker, exchange.Renewal{Progress: []exchange.Progress{{Key: key(slot), MembersDone: done}}}).Permits
}

// TestOneDeathMakesNoSuspect checks that the groups of a worker that died are leased as before.
func TestOneDeathMakesNoSuspect(t *testing.T) {
	f, c := open(t, 0)
	f.Demand("train", leases(0, 1))
	joins(t, f, "a")
	wantLeases(t, acquire(t, f, "a"), false, 0, 1)
	dies(f, c, "a")
	joins(t, f, "b")
	wantLeases(t, acquire(t, f, "b"), false, 0, 1)
}

// suspected returns a table in which slots 0 and 1 are suspects, with the worker c.
func suspected(t *testing.T) (*fixture, *clock) {
	t.Helper()
	f, c := open(t, 0)
	f.Demand("train", leases(0, 1, 2))
	for _, worker := range []string{"a", "b"} {
		joins(t, f, worker)
		if got := len(acquire(t, f, worker)); got != 3 {
			t.Fatalf("worker %s is leased %d groups, want 3", worker, got)
		}
		if worker == "a" {
			submit(f, worker, group(2, 4))
			f.Demand("train", leases(0, 1, 3))
		}
		dies(f, c, worker)
	}
	joins(t, f, "c")
	return f, c
}

func TestSuspectsArePlayedOneAtATime(t *testing.T) {
	f, _ := suspected(t)
	wantLeases(t, acquire(t, f, "c"), true, 0)
	if got := acquire(t, f, "c"); len(got) > 0 {
		t.Errorf("beside a suspect %v is leased, want nothing", got)
	}
	joins(t, f, "d")
	wantLeases(t, acquire(t, f, "d"), false, 3)
	for done := range 4 {
		want := []exchange.Permit{{Key: key(0), Member: done}}
		if diff := cmp.Diff(want, renews(f, "c", 0, done)); diff != "" {
			t.Errorf("permits after %d members (-want +got):\n%s", done, diff)
		}
	}
	submit(f, "c", group(0, 4))
	wantLeases(t, acquire(t, f, "c"), true, 1)
	submit(f, "c", group(1, 4))
	if got := f.Remarks(); len(got) > 1 {
		t.Errorf("remarks are %q, want none of groups that are known", got)
	}
}

// TestHostEndsWhatItPlaysFirst checks that a worker which plays other groups is leased nothing more until it can play a
// suspect.
func TestHostEndsWhatItPlaysFirst(t *testing.T) {
	f, c := open(t, 0)
	f.Demand("train", leases(0, 1))
	joins(t, f, "z")
	f.Demand("first", leases(9))
	wantLeases(t, f.grant("z", 4), false, 0)
	for _, worker := range []string{"x", "y"} {
		joins(t, f, worker)
		wantLeases(t, f.grant(worker, 4), false, 1)
		dies(f, c, worker)
		f.Renew("z", exchange.Renewal{Progress: []exchange.Progress{{Key: key(0)}}})
	}
	if got := acquire(t, f, "z"); len(got) > 0 {
		t.Errorf("worker z is leased %v, want nothing before it has ended slot 0", got)
	}
	submit(f, "z", group(0, 4))
	wantLeases(t, acquire(t, f, "z"), true, 1)
}

// TestSecondDeathAloneIsAFault checks that the member that was in play at both of two deaths, and no other member, is
// a fault.
func TestSecondDeathAloneIsAFault(t *testing.T) {
	f, c := suspected(t)
	for i, worker := range []string{"c", "d"} {
		if i > 0 {
			joins(t, f, worker)
		}
		got := acquire(t, f, worker)
		wantLeases(t, got, true, 0)
		if len(got[0].Faulty) > 0 {
			t.Errorf("members %v are faults after %d deaths alone, want none", got[0].Faulty, i)
		}
		if diff := cmp.Diff([]exchange.Permit{{Key: key(0), Member: 0}}, renews(f, worker, 0, 0)); diff != "" {
			t.Errorf("first permits of worker %s (-want +got):\n%s", worker, diff)
		}
		renews(f, worker, 0, 2)
		dies(f, c, worker)
	}
	joins(t, f, "e")
	got := acquire(t, f, "e")
	wantLeases(t, got, true, 0)
	if diff := cmp.Diff([]int{2}, got[0].Faulty); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if got := strings.Join(f.Remarks(), "; "); !strings.Contains(got, "member 2 of slot 0") {
		t.Errorf("remarks are %q, want the member that is left out", got)
	}
}

// TestDeathsAloneOfDifferentMembersAreNoFault checks that deaths that have nothing to do with the group cause no
// fault.
func TestDeathsAloneOfDifferentMembersAreNoFault(t *testing.T) {
	f, c := suspected(t)
	for done, worker := range []string{"c", "d", "e", "f"} {
		joins(t, f, worker)
		got := acquire(t, f, worker)
		wantLeases(t, got, true, 0)
		if len(got[0].Faulty) > 0 {
			t.Errorf("members %v are faults, want none", got[0].Faulty)
		}
		renews(f, worker, 0, done)
		dies(f, c, worker)
	}
}

// TestSilenceMakesNoSuspects checks that workers which fall silent on an open connection are not taken for dead
// processes: a learner that was stopped for a while hears nothing of any worker.
func TestSilenceMakesNoSuspects(t *testing.T) {
	f, c := open(t, 0)
	f.Demand("train", leases(0))
	for _, worker := range []string{"a", "b", "c", "d"} {
		joins(t, f, worker)
		wantLeases(t, acquire(t, f, worker), false, 0)
		silence(f, c, time.Minute)
	}
}

// TestWorkersThatWereCutOffAreNotDead checks that the conclusions from a worker's death are taken back when the
// learner hears from the worker again.
func TestWorkersThatWereCutOffAreNotDead(t *testing.T) {
	f, c := open(t, 0)
	f.Demand("train", leases(0))
	for _, worker := range []string{"a", "b"} {
		joins(t, f, worker)
		wantLeases(t, acquire(t, f, worker), false, 0)
		dies(f, c, worker)
	}
	joins(t, f, "a")
	wantLeases(t, acquire(t, f, "a"), false, 0)
}

// TestDrainedWorkersMakeNoSuspects checks that leases which are released say nothing about their groups.
func TestDrainedWorkersMakeNoSuspects(t *testing.T) {
	f, c := open(t, 0)
	f.Demand("train", leases(0))
	for _, worker := range []string{"a", "b", "c", "d"} {
		joins(t, f, worker)
		wantLeases(t, acquire(t, f, worker), false, 0)
		f.Release(worker, []rl.Key{key(0)}, exchange.Drained)
		dies(f, c, worker)
	}
}

// TestNextProcessOfAName checks that a Hello of another process means that the earlier one has died.
func TestNextProcessOfAName(t *testing.T) {
	f, _ := open(t, 0)
	f.Demand("train", leases(0))
	for i, process := range []string{"1", "2", "3"} {
		hello(t, f, "a", exchange.HelloRequest{Spent: exchange.Spent{Process: process}})
		wantLeases(t, acquire(t, f, "a"), i == 2, 0)
	}
	// A process that says Hello again, as it does after its connection broke, has not died.
	hello(t, f, "a", exchange.HelloRequest{Spent: exchange.Spent{Process: "3"}, Playing: []rl.Key{key(0)}})
	hello(t, f, "a", exchange.HelloRequest{Spent: exchange.Spent{Process: "4"}})
	if got := acquire(t, f, "a"); len(got) != 1 || len(got[0].Faulty) > 0 {
		t.Errorf("leases are %v, want slot 0 without faults", got)
	}
}

// TestSuspectsOfAnEarlierLearner checks that a worker keeps the group that it plays, and needs no permits, if the
// learner knows of no deaths.
func TestSuspectsOfAnEarlierLearner(t *testing.T) {
	f, _ := open(t, 0)
	f.Demand("train", leases(0))
	reply := joins(t, f, "a", key(0))
	wantLeases(t, reply.Keep, false, 0)
	if got := renews(f, "a", 0, 1); len(got) > 0 {
		t.Errorf("permits are %v, want none: a lease that is not alone needs none", got)
	}
}

// TestSuspectAtAWorkerThatWasSilent checks that a worker that was taken for dead while it played a suspect still gets
// permits, and gets all of them once the group is no longer a suspect.
func TestSuspectAtAWorkerThatWasSilent(t *testing.T) {
	f, c := suspected(t)
	wantLeases(t, acquire(t, f, "c"), true, 0)
	silence(f, c, time.Minute)
	if diff := cmp.Diff([]exchange.Permit{{Key: key(0), Member: 1}}, renews(f, "c", 0, 1)); diff != "" {
		t.Errorf("permits after the silence (-want +got):\n%s", diff)
	}
	for _, dead := range []string{"a", "b"} {
		f.Renew(dead, exchange.Renewal{})
	}
	if diff := cmp.Diff([]exchange.Permit{{Key: key(0), Member: 4}}, renews(f, "c", 0, 2)); diff != "" {
		t.Errorf("permits of a group that is no suspect any more (-want +got):\n%s", diff)
	}
}

// TestWorkersWithoutAProcessPlayNoSuspects checks that a worker whose Hello names no process is leased no suspect
// while there is another worker, and that suspects are leased like other groups if there is none.
func TestWorkersWithoutAProcessPlayNoSuspects(t *testing.T) {
	f, c := suspected(t)
	hello(t, f, "a-first", exchange.HelloRequest{})
	wantLeases(t, acquire(t, f, "a-first"), false, 3)
	wantLeases(t, acquire(t, f, "c"), true, 0)
	dies(f, c, "c")
	f.Renew("a-first", exchange.Renewal{Progress: []exchange.Progress{{Key: key(3)}}})
	wantLeases(t, acquire(t, f, "a-first"), false, 0, 1)
}
