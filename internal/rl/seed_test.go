// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"math/bits"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asking returns a request with changes.
func asking(change func(*Request)) Request {
	r := Request{Slot: 1234, Member: 7, Try: 1, Conversation: "solver", Content: theContent(nil).Digest(), Repeat: 2}
	if change != nil {
		change(&r)
	}
	return r
}

func theContent(change func(*Content)) Content {
	c := Content{Prompt: []int32{1, 2, 3}, MaxTokens: 9, Temperature: 1, TopP: 1, StopTokens: []int32{256}}
	if change != nil {
		change(&c)
	}
	return c
}

func TestSeedsArePinned(t *testing.T) {
	got := []uint64{
		asking(nil).Seed(UsePolicy, 42), asking(nil).Seed(UseSharedPrompt, 42), asking(nil).Seed(UseJudge, 42),
		uint64(asking(nil).Number(UsePolicy, 0)), uint64(asking(nil).Number(UseReference, 1)),
		EpisodeSeed(42, Train, 1234, 7, 1),
	}
	want := []uint64{6568135858126162909, 3408744470234727673, 229886737472770749, 932002441975730100, 134613327573182015,
		5038891374008962858}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seeds changed, and with them every sample (-want +got):\n%s", diff)
	}
}

// TestRequestsDifferInEveryField checks that requests that differ in anything that identifies them have different
// seeds and numbers.
func TestRequestsDifferInEveryField(t *testing.T) {
	requests := map[string]Request{
		"":                                 asking(nil),
		"the kind":                         asking(func(r *Request) { r.Kind = Evaluate }),
		"the slot":                         asking(func(r *Request) { r.Slot++ }),
		"a slot of many bits":              asking(func(r *Request) { r.Slot = 1 << 40 }),
		"the member":                       asking(func(r *Request) { r.Member++ }),
		"the try":                          asking(func(r *Request) { r.Try++ }),
		"the conversation":                 asking(func(r *Request) { r.Conversation = "judge" }),
		"the repetition":                   asking(func(r *Request) { r.Repeat++ }),
		"conversation and repetition swap": asking(func(r *Request) { r.Conversation, r.Repeat = "solver\x02", 0 }),
	}
	contents := map[string]func(*Content){
		"the prompt":       func(c *Content) { c.Prompt = []int32{1, 2, 4} },
		"a longer prompt":  func(c *Content) { c.Prompt = []int32{1, 2, 3, 4} },
		"the most tokens":  func(c *Content) { c.MaxTokens++ },
		"the temperature":  func(c *Content) { c.Temperature = 0.5 },
		"top p":            func(c *Content) { c.TopP = 0.5 },
		"top k":            func(c *Content) { c.TopK = 5 },
		"the stop tokens":  func(c *Content) { c.StopTokens = []int32{257} },
		"two stop tokens":  func(c *Content) { c.StopTokens = []int32{256, 257} },
		"the stop strings": func(c *Content) { c.StopStrings = []string{"\n"} },
	}
	for name, change := range contents {
		requests[name] = asking(func(r *Request) { r.Content = theContent(change).Digest() })
	}
	seeds, numbers := map[uint64]string{}, map[int64]string{}
	for name, r := range requests {
		for _, use := range []Use{UsePolicy, UseSharedPrompt, UseReference, UseJudge} {
			for i := range 3 {
				seed, number := r.Seed(use, uint64(i)), r.Number(use, i)
				if other, ok := seeds[seed]; ok {
					t.Errorf("a seed does not differ in %q and %q", name, other)
				}
				if other, ok := numbers[number]; ok {
					t.Errorf("a number does not differ in %q and %q", name, other)
				}
				seeds[seed], numbers[number] = name, name
			}
		}
	}
}

func TestSeedsAndNumbersAreSpread(t *testing.T) {
	const n = 20_000
	ones, low := 0, 0
	for slot := range int64(n) {
		r := asking(func(r *Request) { r.Slot = slot })
		ones += bits.OnesCount64(r.Seed(UsePolicy, 42))
		number := r.Number(UsePolicy, 0)
		if number < 0 || number >= 1e18 {
			t.Fatalf("number %d is not below 1e18", number)
		}
		if number < 5e17 {
			low++
		}
	}
	if share := float64(ones) / float64(63*n); share < 0.49 || share > 0.51 {
		t.Errorf("%.3f of the bits are set, want a half of 63", share)
	}
	if share := float64(low) / n; share < 0.48 || share > 0.52 {
		t.Errorf("%.3f of the numbers are below 5e17, want a half", share)
	}
}

func TestSamplingSessionsOfOtherPoliciesDiffer(t *testing.T) {
	seen := map[int64]bool{}
	for _, lineage := range []Lineage{{}, Genesis("a"), Genesis("b")} {
		seen[SamplingSession(Train, lineage, "")] = true
		seen[SamplingSession(Evaluate, lineage, "plan")] = true
		seen[SamplingSession(Evaluate, lineage, "another")] = true
	}
	for id := range seen {
		if id < 0 || id >= 1<<48 {
			t.Errorf("session %d has more than 48 bits", id)
		}
	}
	if len(seen) != 9 {
		t.Errorf("%d different sessions of 9", len(seen))
	}
}
