// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// sums returns a group with a usable episode, whose reply is `42` and the end of the turn, and one that broke.
func sums() rl.Group {
	return rl.Group{Key: rl.Key{Slot: 7}, Environment: "sums", Members: []rl.Member{
		{
			Reward: 1, Parts: map[string]float64{"exact": 1}, Metrics: map[string]float64{"correct": 1, "nan": math.NaN()},
			StopReason: "stop", Turns: 1, PromptTokens: 3, SampledTokens: 2,
			Trajectories: []rl.Trajectory{{Reward: 1, StopReason: "stop", Segments: []rl.Segment{{
				Tokens: []int32{5, 6, 7, 8, 9}, Actions: []bool{false, false, false, true, true},
				Logprobs: []float32{0, 0, 0, -1, -0.5},
			}}}},
			Transcript: []byte(`{"conversations":[{"messages":[{"role":"user","text":"6 * 7?"},` +
				`{"role":"assistant","text":"42","reply":1}]}]}`),
		},
		{Index: 1, Outcome: rl.EnvironmentFault, Retries: 3},
	}}
}

// trainedSums returns the datums and log-probabilities that a step makes from sums.
func trainedSums() Trained {
	return Trained{
		Datums: []rl.Datum{{Slot: 7, Targets: []int32{6, 7, 8, 9}, Mask: []bool{false, false, true, true},
			Advantages: []float32{0, 0, 0.5, 0.5}}},
		Logprobs: [][]float32{{-9, -9, -1.25, -0.5}},
	}
}

func lines(t *testing.T, groups []TaskGroup, trained Trained) []Line {
	t.Helper()
	data, err := EncodeLines(Line{Step: 12, Lineage: "abc", SampledAt: 11}, groups, trained)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := DecodeLines(data)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// wantSums returns the lines of sums.
func wantSums(recorded bool) []Line {
	head := Line{Step: 12, Lineage: "abc", SampledAt: 11, Slot: 7, Environment: "sums", Split: "train", Task: 3,
		Group: "Usable", Recorded: recorded}
	first, second := head, head
	segment := Segment{Tokens: 5, Sampled: 2, Logprob: -0.75}
	conversation := Conversation{Reward: new(1.0), StopReason: "stop"}
	if recorded {
		segment.IDs, segment.Actions, segment.Logprobs = []int32{5, 6, 7, 8, 9}, []int{3, 4}, []float32{-1, -0.5}
		segment.TrainerLogprobs, segment.Advantages = []float32{-1.25, -0.5}, []float32{0.5, 0.5}
		conversation.Messages = []Message{{Role: "user", Text: "6 * 7?"}, {Role: "assistant", Text: "42", Reply: 1}}
	}
	conversation.Segments = []Segment{segment}
	first.Episode = &Episode{Outcome: "Usable", Reward: 1, Parts: map[string]float64{"exact": 1},
		Metrics: map[string]float64{"correct": 1}, StopReason: "stop", Turns: 1, PromptTokens: 3, SampledTokens: 2,
		Conversations: []Conversation{conversation}}
	second.Episode = &Episode{Index: 1, Outcome: "EnvironmentFault", Retries: 3}
	return []Line{first, second}
}

func TestLines(t *testing.T) {
	dropped := rl.Group{Key: rl.Key{Slot: 8}, Environment: "sums", Outcome: rl.Deadline, Reason: "it took too long"}
	for name, recorded := range map[string]bool{"recorded": true, "not recorded": false} {
		t.Run(name, func(t *testing.T) {
			got := lines(t, []TaskGroup{{sums(), "train", 3, recorded, nil}, {dropped, "train", 4, recorded, nil}},
				trainedSums())
			want := append(wantSums(recorded), Line{Step: 12, Lineage: "abc", SampledAt: 11, Slot: 8, Environment: "sums",
				Split: "train", Task: 4, Group: "Deadline", Reason: "it took too long", Recorded: recorded})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			step := StepOf(got)
			if found := len(step.Groups) == 2 && len(step.Groups[0].Episodes) == 2; found != recorded {
				t.Errorf("the step has the groups %+v", step.Groups)
			}
		})
	}
}

// TestUntrainedSegments checks that a segment without a datum has no figures of training.
func TestUntrainedSegments(t *testing.T) {
	got := lines(t, []TaskGroup{{sums(), "train", 3, true, nil}}, Trained{})[0].Episode.Conversations[0].Segments[0]
	want := Segment{Tokens: 5, Sampled: 2, Logprob: -0.75, IDs: []int32{5, 6, 7, 8, 9}, Actions: []int{3, 4},
		Logprobs: []float32{-1, -0.5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("segment (-want +got):\n%s", diff)
	}
}

// bounded returns the lines of a group for which a writer has room.
func bounded(t *testing.T, group rl.Group, recorded bool, w lineWriter) []Line {
	t.Helper()
	data, err := encodeLines(Line{}, []TaskGroup{{Group: group, Recorded: recorded}}, Trained{}, w)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := DecodeLines(data)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestLinesAreBounded(t *testing.T) {
	long := rl.Group{Members: make([]rl.Member, 60), Reason: strings.Repeat("x", 900)}
	got := bounded(t, long, false, lineWriter{room: 48 << 10})
	if last := got[len(got)-1]; len(got) != 48 || last.Omitted != 13 || last.Episode != nil {
		t.Errorf("there are %d lines, and the last one counts %d episodes, want 48 and the other 13", len(got), last.Omitted)
	}
}

// TestConversationsMakeRoom checks that episodes keep their results if there is no room for their conversations.
func TestConversationsMakeRoom(t *testing.T) {
	text, err := json.Marshal(Record{Conversations: []Conversation{{Messages: []Message{{Role: "user",
		Text: strings.Repeat("x", 1<<10)}}}}})
	if err != nil {
		t.Fatal(err)
	}
	group := rl.Group{Members: make([]rl.Member, 60)}
	for i := range group.Members {
		group.Members[i].Transcript = text
	}
	with := 0
	got := bounded(t, group, true, lineWriter{room: maxBytes, recorded: 32 << 10})
	for _, line := range got {
		switch c := line.Episode.Conversations[0]; {
		case len(c.Messages) == 1:
			with++
		case !strings.Contains(c.Omitted, "32 MiB"):
			t.Errorf("a conversation without messages says %q", c.Omitted)
		}
	}
	if len(got) != 60 || with != 26 {
		t.Errorf("%d episodes have a line and %d their conversations, want 60 and 26", len(got), with)
	}
}

func TestDecodeLinesThatAreCut(t *testing.T) {
	data, err := EncodeLines(Line{}, []TaskGroup{{Group: sums()}}, Trained{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeLines(data[:len(data)-12]); err == nil {
		t.Errorf("%d lines of a file that is cut, want an error", len(got))
	}
}

// TestDocumentedLine checks that the line of docs/artifacts.md is the record of an episode, with all its fields.
func TestDocumentedLine(t *testing.T) {
	docs, err := os.ReadFile("../../docs/artifacts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(docs), "```json\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/artifacts.md has no example")
	}
	var got Line
	decoder := json.NewDecoder(strings.NewReader(example))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantSums(true)[0], got); diff != "" {
		t.Errorf("the documented line (-want +got):\n%s", diff)
	}
}

// TestFailed checks that episodes that pass are left out: by the verdict of an evaluation, and by the reward in
// training.
func TestFailed(t *testing.T) {
	step := Step{Groups: []Group{
		{Slot: 1, Episodes: []Episode{{Index: 0, Reward: 1}, {Index: 1}, {Index: 2, Reward: 1, Passed: new(false)},
			{Index: 3, Passed: new(true)}}},
		{Slot: 2, Episodes: []Episode{{Reward: 0.5}}},
	}}
	step.Failed()
	want := []Group{{Slot: 1, Episodes: []Episode{{Index: 1}, {Index: 2, Reward: 1, Passed: new(false)}}}}
	if diff := cmp.Diff(want, step.Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}
