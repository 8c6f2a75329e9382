// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package supervised_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// recorded returns the lines that an evaluation writes for one task whose episodes have these rewards.
func recorded(t *testing.T, rewards ...float64) []string {
	t.Helper()
	record, err := json.Marshal(transcript.Record{Conversations: []transcript.Conversation{{Messages: []transcript.Message{
		{Role: "user", Text: "2+2?"}, {Role: "assistant", Text: "4", Reply: 1},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	group := transcript.TaskGroup{Recorded: true, Passed: func(m rl.Member) bool { return m.Reward > 0 }}
	for i, reward := range rewards {
		group.Members = append(group.Members, rl.Member{Index: i, Reward: reward, Transcript: record})
	}
	packed, err := transcript.EncodeLines(transcript.Line{Evaluation: "e"}, []transcript.TaskGroup{group},
		transcript.Trained{})
	if err != nil {
		t.Fatal(err)
	}
	unzip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unzip)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// TestEpisodesAreRows trains on records of episodes as on the same messages, and leaves out the ones that a filter
// names.
func TestEpisodesAreRows(t *testing.T) {
	for name, tc := range map[string]struct {
		filter supervised.Episodes
		rows   []int
	}{
		"all":                      {supervised.Episodes{}, []int{0, 1, 2, 3}},
		"rejection sampling":       {supervised.Episodes{MinReward: new(0.5)}, []int{1, 2, 3}},
		"best of n":                {supervised.Episodes{BestOfTask: true}, []int{1}},
		"best of n, if it is good": {supervised.Episodes{MinReward: new(2.0), BestOfTask: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := byteBuilder(t)
			want, err := b.Datum([]byte(sumRow))
			if err != nil {
				t.Fatal(err)
			}
			b.Episodes = tc.filter
			var rows []int
			for i, line := range recorded(t, 0, 1, 0.5, 1) {
				got, err := b.Datum([]byte(line))
				var left *supervised.Unusable
				switch {
				case errors.As(err, &left) && left.Reason == supervised.Filtered:
					continue
				case err != nil:
					t.Fatal(err)
				}
				rows = append(rows, i)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("datum (-of messages +of the episode):\n%s", diff)
				}
			}
			if diff := cmp.Diff(tc.rows, rows); diff != "" {
				t.Errorf("episodes that are trained on (-want +got):\n%s", diff)
			}
			if _, err := b.Datum([]byte(sumRow)); err != nil {
				t.Errorf("the filter leaves out a row that is no episode: %v", err)
			}
		})
	}
}

// TestEpisodesThatAreNoRows reads records that cannot be trained on.
func TestEpisodesThatAreNoRows(t *testing.T) {
	const messages = `"messages": [{"role": "user", "text": "q"}, {"role": "assistant", "text": "a"}]`
	for name, tc := range map[string]struct {
		row    string
		reason supervised.Reason
		says   string
	}{
		"a fault": {`{"episode": {"outcome": "EnvironmentFault", "conversations": [{` + messages + `}]}}`,
			supervised.Filtered, "EnvironmentFault"},
		"no conversations": {`{"episode": {"outcome": "Usable"}}`, supervised.NotRendered, "artifacts.episodes All"},
		"several conversations": {`{"episode": {"outcome": "Usable", "conversations": [{` + messages + `}, {` + messages +
			`}]}}`, supervised.NotRendered, "2 conversations"},
		"a reply that could not be parsed": {
			`{"episode": {"outcome": "Usable", "conversations": [{"messages": [
				{"role": "assistant", "text": "<", "problem": "cut"}]}]}}`,
			supervised.NotRendered, "message 0 of the episode could not be parsed (cut)"},
		"a prompt that begins anew": {
			`{"episode": {"outcome": "Usable", "conversations": [{"messages": [
				{"role": "user", "text": "q", "newPrompt": true}]}]}}`,
			supervised.NotRendered, "begins the prompt anew"},
		"two forms": {`{"text": "t", "episode": {}}`, supervised.NotRendered, "several forms"},
		"no object": {`{"episode": 7}`, supervised.NotRendered, "episode: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := byteBuilder(t).Datum([]byte(tc.row))
			var left *supervised.Unusable
			if !errors.As(err, &left) || left.Reason != tc.reason || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Datum: %v, want %s and %q", err, tc.reason, tc.says)
			}
		})
	}
}
