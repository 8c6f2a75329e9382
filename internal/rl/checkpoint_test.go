// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCheckpointNameRoundTrips(t *testing.T) {
	cases := map[string]CheckpointName{
		"r1f3a9c2b-s000123-c00004567-a002m1-0123456789-abcdef0123": {
			Run: "1f3a9c2b", Step: 123, Cursor: 4567, Attempt: 2, Model: 1, Lineage: lineageFromShort("0123456789"),
			Parent: lineageFromShort("abcdef0123")},
		"r00000000-s000000-c00000000-a001m1-ffffffffff-0000000000": {
			Run: "00000000", Attempt: 1, Model: 1, Lineage: lineageFromShort("ffffffffff"),
			Parent: lineageFromShort("0000000000")},
		"rffffffff-s1234567-c123456789-a1000m12-ffffffffff-0000000000": {
			Run: "ffffffff", Step: 1234567, Cursor: 123456789, Attempt: 1000, Model: 12, Lineage: lineageFromShort("ffffffffff"),
			Parent: lineageFromShort("0000000000")},
	}
	for want, name := range cases {
		if got := name.String(); got != want {
			t.Errorf("String = %s, want %s", got, want)
		}
		got, err := ParseCheckpointName(want)
		if err != nil || got != name {
			t.Errorf("ParseCheckpointName(%s) = %+v, %v", want, got, err)
		}
	}
}

func TestParseCheckpointNameRefuses(t *testing.T) {
	cases := map[string]string{
		"another program's":    "000123",
		"the final one of it":  "final",
		"nothing":              "",
		"capitals":             "r1F3A9C2B-s000123-c00004567-a002m1-0123456789-abcdef0123",
		"no parent":            "r1f3a9c2b-s000123-c00004567-a002m1-0123456789",
		"more behind":          "r1f3a9c2b-s000123-c00004567-a002m1-0123456789-abcdef0123-x",
		"too little padding":   "r1f3a9c2b-s123-c00004567-a002m1-0123456789-abcdef0123",
		"too much padding":     "r1f3a9c2b-s0000123-c00004567-a002m1-0123456789-abcdef0123",
		"a padded model":       "r1f3a9c2b-s000123-c00004567-a002m01-0123456789-abcdef0123",
		"a line behind":        "r1f3a9c2b-s000123-c00004567-a002m1-0123456789-abcdef0123\n",
		"an attempt too large": "r1f3a9c2b-s000123-c00004567-a9999999999m1-0123456789-abcdef0123",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if n, err := ParseCheckpointName(text); err == nil {
				t.Errorf("ParseCheckpointName(%q) = %+v, want an error", text, n)
			}
		})
	}
}

func TestCheckpointNamesAgeByAttemptThenModelThenStep(t *testing.T) {
	sorted := []CheckpointName{
		{Attempt: 1, Model: 1, Step: 3, Cursor: 90},
		{Attempt: 1, Model: 1, Step: 12, Cursor: 80},
		{Attempt: 1, Model: 2, Step: 11, Cursor: 70},
		{Attempt: 2, Model: 1, Step: 11, Cursor: 70},
		{Attempt: 2, Model: 1, Step: 12, Cursor: 60},
		{Attempt: 10, Model: 1, Step: 2, Cursor: 1},
	}
	shuffled := slices.Clone(sorted)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j],
			shuffled[i]
	})
	slices.SortFunc(shuffled, CheckpointName.Compare)
	if !slices.Equal(shuffled, sorted) {
		t.Errorf("sorted by age: %+v", shuffled)
	}
}

func TestRunTag(t *testing.T) {
	cases := map[string]string{
		"1f3a9c2b-0d5e-4b7a-9a53-1c2d3e4f5a6b": "1f3a9c2b",
		"1F3A9C2B-0d5e-4b7a-9a53-1c2d3e4f5a6b": "1f3a9c2b",
		"uid-1":                                "",
		"":                                     "",
	}
	for uid, want := range cases {
		got := RunTag(uid)
		if want != "" && got != want {
			t.Errorf("RunTag(%q) = %q, want %q", uid, got, want)
		}
		name := CheckpointName{Run: got, Attempt: 1, Model: 1}
		if _, err := ParseCheckpointName(name.String()); err != nil {
			t.Errorf("RunTag(%q) = %q makes no name: %v", uid, got, err)
		}
	}
}

func FuzzParseCheckpointName(f *testing.F) {
	f.Add("r1f3a9c2b-s000123-c00004567-a002m1-0123456789-abcdef0123")
	f.Add("r1f3a9c2b-s0000123-c00004567-a002m1-0123456789-abcdef0123")
	f.Fuzz(func(t *testing.T, text string) {
		name, err := ParseCheckpointName(text)
		if err == nil && name.String() != text {
			t.Errorf("%q was read as %+v, which is spelt %q", text, name, name)
		}
	})
}
