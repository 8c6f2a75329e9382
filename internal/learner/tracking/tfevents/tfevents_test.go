// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tfevents

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// written returns the file that testdata/scalars.tfevents records of the official package, and its events.
func written() (file []byte, events []Event) {
	file = Header(time.Unix(1000, 0))
	for step := range int64(3) {
		e := Event{Step: step, Time: time.UnixMilli(1000_250 + 1000*step), Scalars: map[string]float32{
			"env/all/reward/total": float32(step) / 4, "optim/lr": 0.0003,
		}}
		file, events = Append(file, e), append(events, e)
	}
	return file, events
}

func TestFileIsThatOfThePackage(t *testing.T) {
	want, err := os.ReadFile("testdata/scalars.tfevents")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := written(); !bytes.Equal(want, got) {
		t.Errorf("the file is\n%q\nand the package writes\n%q", got, want)
	}
}

func TestDecode(t *testing.T) {
	file, events := written()
	records, valid := Decode(file)
	if valid != len(file) {
		t.Errorf("%d of %d bytes are valid", valid, len(file))
	}
	var got []Event
	end := len(Header(time.Unix(1000, 0)))
	for _, r := range records {
		if r.Start != end {
			t.Errorf("step %d begins at byte %d, and the step before ends at %d", r.Step, r.Start, end)
		}
		end, got = r.End, append(got, r.Event)
	}
	if diff := cmp.Diff(events, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestDecodeDamagedFile cuts the file at each place and changes each of its bytes, and checks that all records before
// the damaged one are read.
func TestDecodeDamagedFile(t *testing.T) {
	file, _ := written()
	whole, _ := Decode(file)
	for i := range file {
		before, start := 0, 0
		for _, r := range whole {
			if r.End <= i {
				before, start = before+1, r.End
			} else if r.Start <= i {
				start = r.Start
			}
		}
		if records, valid := Decode(file[:i]); len(records) != before || valid != start {
			t.Fatalf("of the first %d bytes, %d records and %d bytes are valid, want %d and %d", i, len(records), valid, before,
				start)
		}
		changed := bytes.Clone(file)
		changed[i] ^= 0x10
		if records, valid := Decode(changed); len(records) != before || valid != start {
			t.Fatalf("with byte %d changed, %d records and %d bytes are valid, want %d and %d", i, len(records), valid, before,
				start)
		}
	}
}
