// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker/journal"
)

// clock is a clock of a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_800_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

func mustOpenOwners(t *testing.T, dir string, now func() time.Time) *owners {
	t.Helper()
	o, err := openOwners(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.journal.Close)
	return o
}

func mustAdd(t *testing.T, o *owners, records ...record) {
	t.Helper()
	if err := o.add(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
}

func recordOf(of kind, id, run string, made time.Time) record {
	return record{Kind: of, ID: id, Owner: Owner{UID: run, Namespace: "team"}, Made: made.Unix()}
}

// checkOwner checks the owner of an object; want is empty if the object has no owner.
func checkOwner(t *testing.T, o *owners, of kind, id, want string) {
	t.Helper()
	if got, _ := o.get(of, id); got.UID != want {
		t.Errorf("owner of %s %s = %q, want %q", of, id, got.UID, want)
	}
}

func TestOwnersSurviveTheBroker(t *testing.T) {
	dir, time := t.TempDir(), newClock()
	for i := range 3 {
		o := mustOpenOwners(t, dir, time.Now)
		for earlier := range i {
			checkOwner(t, o, model, fmt.Sprint("m", earlier), fmt.Sprint("run", earlier))
		}
		checkOwner(t, o, model, fmt.Sprint("m", i), "")
		mustAdd(t, o, recordOf(model, fmt.Sprint("m", i), fmt.Sprint("run", i), time.Now()))
		o.journal.Close()
		err := o.add(context.Background(), recordOf(model, "late", "run", time.Now()))
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("adding after the end: %v, want %v", err, journal.ErrClosed)
		}
	}
}

func TestPartOfALineIsRemovedOnce(t *testing.T) {
	zeros := strings.Repeat("\x00", 1<<17)
	for name, rest := range map[string]string{
		"part":           `{"kind":"session","id":"pa`,
		"part and zeros": `{"kind":"session","id":"pa` + zeros,
		"zeros":          zeros,
		// The disk may write the sectors of one write in any order.
		"a later sector": `{"kind":"ses` + zeros[:512] + `ll"}` + "\n" + `{"kind":"session","id":"later","run":"r"}` + "\n" + zeros,
	} {
		t.Run(name, func(t *testing.T) {
			dir, time := t.TempDir(), newClock()
			o := mustOpenOwners(t, dir, time.Now)
			mustAdd(t, o, recordOf(session, "whole", "run", time.Now()))
			o.journal.Close()
			file, err := os.OpenFile(journal.SegmentName(dir, "owners", 1), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteString(rest); err != nil {
				t.Fatal(err)
			}
			_ = file.Close()
			for range 3 { // from the second time on the segment is not the last one
				o = mustOpenOwners(t, dir, time.Now)
				checkOwner(t, o, session, "whole", "run")
				checkOwner(t, o, session, "later", "")
				o.journal.Close()
			}
		})
	}
}

// TestSegmentsEndWithTheirRecords checks the files of a journal that was closed, and of one whose process died: the
// latter have room after their records.
func TestSegmentsEndWithTheirRecords(t *testing.T) {
	dir, time := t.TempDir(), newClock()
	o := mustOpenOwners(t, dir, time.Now)
	mustAdd(t, o, recordOf(session, "s", "run", time.Now()))
	left := t.TempDir()
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	o.journal.Close()
	ended, err := os.ReadFile(journal.SegmentName(dir, "owners", 1))
	if err != nil {
		t.Fatal(err)
	}
	died, err := os.ReadFile(journal.SegmentName(left, "owners", 1))
	if err != nil {
		t.Fatal(err)
	}
	if rest, ok := bytes.CutPrefix(died, ended); !ok || len(rest) == 0 || len(bytes.Trim(rest, "\x00")) > 0 {
		t.Errorf("a dead journal has left %q behind its records %q, want zeros", bytes.Trim(rest, "\x00"), ended)
	}
	if bytes.IndexByte(ended, 0) >= 0 {
		t.Errorf("a journal that ended has left zeros")
	}
	o = mustOpenOwners(t, left, time.Now)
	checkOwner(t, o, session, "s", "run")
}

func TestRecordsThatCannotBeReadAreNotPassedOver(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(journal.SegmentName(dir, "owners", 1), []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openOwners(dir, time.Now); err == nil {
		t.Error("a journal with a line that is no record is opened, want an error")
	}
}

func TestOldSegmentsGoAndWhatCountsStays(t *testing.T) {
	dir, time := t.TempDir(), newClock()
	o := mustOpenOwners(t, dir, time.Now)
	o.journal.Limit = 1 << 10
	mustAdd(t, o, recordOf(model, "kept", "first", time.Now()), recordOf(future, "delivered", "first", time.Now()),
		recordOf(future, "forgotten", "first", time.Now()))
	o.deliver("delivered")
	time.advance(futureLife + deliveredLife)
	for i := range 200 {
		mustAdd(t, o, recordOf(future, fmt.Sprint("f", i), "run", time.Now()))
	}
	o.journal.Close()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) > journal.MaxSegments+1 {
		t.Errorf("there are %d segments (%v), want at most %d", len(names), err, journal.MaxSegments+1)
	}
	o = mustOpenOwners(t, dir, time.Now)
	checkOwner(t, o, model, "kept", "first")
	checkOwner(t, o, future, "delivered", "")
	checkOwner(t, o, future, "forgotten", "")
	checkOwner(t, o, future, "f0", "run")
	checkOwner(t, o, future, "f199", "run")
}

func TestFuturesStayForAWhileAfterTheirDelivery(t *testing.T) {
	time := newClock()
	o := mustOpenOwners(t, t.TempDir(), time.Now)
	mustAdd(t, o, recordOf(future, "a", "run", time.Now()), recordOf(future, "b", "run", time.Now()))
	o.deliver("a")
	time.advance(deliveredLife)
	o.deliver("b")
	checkOwner(t, o, future, "a", "run")
	time.advance(1)
	o.deliver("b")
	checkOwner(t, o, future, "a", "")
	checkOwner(t, o, future, "b", "run")
}

func TestSweepForgetsWhatDoesNotCount(t *testing.T) {
	time := newClock()
	o := mustOpenOwners(t, t.TempDir(), time.Now)
	named := func(owner Owner) bool { return owner.UID == "named" }
	check := func(what string, want map[string]bool) {
		t.Helper()
		o.sweep(named)
		for name, known := range want {
			of, run, _ := strings.Cut(name, " of ")
			if _, got := o.get(kind(of), run); got != known {
				t.Errorf("%s: %s is known: %t, want %t", what, name, got, known)
			}
		}
	}
	for _, run := range []string{"named", "deleted"} {
		for _, of := range []kind{session, model, sampler, future} {
			mustAdd(t, o, recordOf(of, run, run, time.Now()))
		}
	}
	time.advance(futureLife)
	check("after a day", map[string]bool{"future of named": true, "session of deleted": true})
	time.advance(1e9)
	check("after more than a day", map[string]bool{"future of named": false, "future of deleted": false,
		"sampler of deleted": true})
	time.advance(ownerlessLife)
	check("after a week", map[string]bool{"session of named": true, "sampler of named": true, "model of named": true,
		"session of deleted": false, "sampler of deleted": false, "model of deleted": true})
}

func TestNothingIsInForceThatIsNotOnTheDisk(t *testing.T) {
	time := newClock()
	o := mustOpenOwners(t, t.TempDir(), time.Now)
	broken := errors.New("the disk is full")
	o.journal.Sync = func(*os.File) error { return broken }
	for range 2 {
		if err := o.add(t.Context(), recordOf(session, "s", "run", time.Now())); !errors.Is(err, broken) {
			t.Errorf("adding: %v, want %v", err, broken)
		}
		checkOwner(t, o, session, "s", "")
		o.journal.Sync = (*os.File).Sync // After a failure nobody knows the content of the disk.
	}
}

func TestManyRecordsAtOnce(t *testing.T) {
	time := newClock()
	dir := t.TempDir()
	o := mustOpenOwners(t, dir, time.Now)
	o.journal.Limit = 4 << 10
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() {
			if err := o.add(t.Context(), recordOf(future, fmt.Sprint(i), "run", time.Now())); err != nil {
				t.Error(err)
			}
			checkOwner(t, o, future, fmt.Sprint(i), "run")
		})
	}
	all.Wait()
	o.journal.Close()
	o = mustOpenOwners(t, dir, time.Now)
	for i := range 500 {
		checkOwner(t, o, future, fmt.Sprint(i), "run")
	}
}
