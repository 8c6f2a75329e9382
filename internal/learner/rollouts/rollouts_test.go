// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func decode(t *testing.T, data []byte) []Line {
	t.Helper()
	packed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var lines []Line
	for decoder := json.NewDecoder(packed); ; {
		var line Line
		err := decoder.Decode(&line)
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
}

func TestEncode(t *testing.T) {
	groups := []rl.Group{
		{Key: rl.Key{Slot: 7}, Environment: "sums", Members: []rl.Member{
			{
				Index: 0, Reward: 1, Parts: map[string]float64{"exact": 1}, Metrics: map[string]float64{"correct": 1,
					"nan": math.NaN()},
				StopReason: "stop", Turns: 1, PromptTokens: 3, SampledTokens: 2,
				Trajectories: []rl.Trajectory{{Role: "solver", Key: "k", Reward: 1, StopReason: "stop", Segments: []rl.Segment{{
					Turn: 0, Tokens: []int32{5, 6, 7, 8, 9}, Actions: []bool{false, false, false, true, true},
					Logprobs: []float32{0, 0, 0, -1, -0.5},
				}}}},
			},
			{Index: 1, Outcome: rl.EnvironmentFault, Retries: 3},
		}},
		{Key: rl.Key{Slot: 8}, Environment: "sums", Outcome: rl.Deadline, Reason: "it took too long"},
	}
	data, err := Encode(12, "abc", 11, groups)
	if err != nil {
		t.Fatal(err)
	}
	of := func(slot int64, group, reason string, e *Episode) Line {
		return Line{Step: 12, Lineage: "abc", SampledAt: 11, Slot: slot, Environment: "sums", Group: group, Reason: reason,
			Episode: e}
	}
	want := []Line{
		of(7, "Usable", "", &Episode{
			Outcome: "Usable", Reward: 1, Parts: map[string]float64{"exact": 1}, Metrics: map[string]float64{"correct": 1},
			StopReason: "stop", Turns: 1, PromptTokens: 3, SampledTokens: 2,
			Trajectories: []Trajectory{{Role: "solver", Key: "k", Reward: 1, StopReason: "stop",
				Segments: []Segment{{Tokens: 5, Sampled: 2, Logprob: -0.75}}}},
		}),
		of(7, "Usable", "", &Episode{Index: 1, Outcome: "EnvironmentFault", Retries: 3}),
		of(8, "Deadline", "it took too long", nil),
	}
	if diff := cmp.Diff(want, decode(t, data)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestEncodeIsBounded(t *testing.T) {
	long := rl.Group{Members: make([]rl.Member, 40), Reason: strings.Repeat("x", 1<<20)}
	data, err := Encode(1, "abc", 0, []rl.Group{long})
	if err != nil {
		t.Fatal(err)
	}
	lines := decode(t, data)
	if last := lines[len(lines)-1]; len(lines) != 32 || last.Omitted != 9 || last.Episode != nil {
		t.Errorf("there are %d lines, and the last one counts %d episodes, want 32 lines and 9 episodes", len(lines),
			last.Omitted)
	}
}
