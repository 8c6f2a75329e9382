// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollouts encodes the results of a step's episodes, one line for each, for programs that analyze a run. It has
// neither texts nor tokens: transcripts have those of the first groups.
package rollouts

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// MaxBytes bounds the lines of a step before they are compressed. A last line counts the episodes beyond it.
const MaxBytes = 32 << 20

// Line is one episode of a step, or a group that has none.
type Line struct {
	// Step is the number of the version that the step made, from 1.
	Step    int64  `json:"step"`
	Lineage string `json:"lineage"`
	// SampledAt is the version that sampled the episode.
	SampledAt   int64  `json:"sampledAt"`
	Slot        int64  `json:"slot"`
	Environment string `json:"environment,omitempty"`
	// Group is the outcome of the group, and Reason says why it is not trained on.
	Group   string   `json:"group,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Episode *Episode `json:"episode,omitempty"`
	// Omitted is how many episodes of the step have no line for lack of room.
	Omitted int `json:"omitted,omitempty"`
}

// Episode is one member of a group.
type Episode struct {
	Index         int                `json:"index"`
	Outcome       string             `json:"outcome"`
	Reward        float64            `json:"reward"`
	Parts         map[string]float64 `json:"parts,omitempty"`
	Metrics       map[string]float64 `json:"metrics,omitempty"`
	StopReason    string             `json:"stopReason,omitempty"`
	Turns         int                `json:"turns"`
	PromptTokens  int64              `json:"promptTokens"`
	SampledTokens int64              `json:"sampledTokens"`
	Retries       int                `json:"retries,omitempty"`
	Trajectories  []Trajectory       `json:"trajectories,omitempty"`
}

// Trajectory is one conversation of an episode that is trained on.
type Trajectory struct {
	Role        string    `json:"role,omitempty"`
	Key         string    `json:"key,omitempty"`
	Reward      float64   `json:"reward"`
	StepRewards []float64 `json:"stepRewards,omitempty"`
	StopReason  string    `json:"stopReason,omitempty"`
	Segments    []Segment `json:"segments,omitempty"`
}

// Segment is one sequence that goes through the model as a whole.
type Segment struct {
	// Turn that the segment begins with.
	Turn   int `json:"turn"`
	Tokens int `json:"tokens"`
	// Sampled counts the tokens that the policy sampled, and Logprob is their mean log-probability under it, in nats.
	Sampled int     `json:"sampled"`
	Logprob float64 `json:"logprob"`
}

// Encode returns the lines of a step's groups, compressed by gzip.
func Encode(step int64, lineage string, sampledAt int64, groups []rl.Group) ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	room, omitted := MaxBytes, 0
	for _, group := range groups {
		for _, line := range linesOf(group) {
			line.Step, line.Lineage, line.SampledAt = step, lineage, sampledAt
			data, err := json.Marshal(line)
			if err != nil {
				return nil, fmt.Errorf("encoding an episode of slot %d: %w", line.Slot, err)
			}
			if room -= len(data) + 1; room < 0 {
				omitted++
				continue
			}
			if _, err := packed.Write(append(data, '\n')); err != nil {
				return nil, fmt.Errorf("compressing rollouts: %w", err)
			}
		}
	}
	if omitted > 0 {
		if err := json.NewEncoder(packed).Encode(Line{Step: step, Lineage: lineage, SampledAt: sampledAt,
			Omitted: omitted}); err != nil {
			return nil, fmt.Errorf("compressing rollouts: %w", err)
		}
	}
	if err := packed.Close(); err != nil {
		return nil, fmt.Errorf("compressing rollouts: %w", err)
	}
	return out.Bytes(), nil
}

func linesOf(g rl.Group) []Line {
	line := Line{Slot: g.Key.Slot, Environment: g.Environment, Group: g.Outcome.String(), Reason: g.Reason}
	if len(g.Members) == 0 {
		return []Line{line}
	}
	lines := make([]Line, 0, len(g.Members))
	for _, m := range g.Members {
		line.Episode = episodeOf(m)
		lines = append(lines, line)
	}
	return lines
}

func episodeOf(m rl.Member) *Episode {
	e := &Episode{
		Index: m.Index, Outcome: m.Outcome.String(), Reward: orZero(m.Reward), Parts: finite.Only(m.Parts),
		Metrics:    finite.Only(m.Metrics),
		StopReason: m.StopReason, Turns: m.Turns, PromptTokens: m.PromptTokens, SampledTokens: m.SampledTokens,
		Retries: m.Retries,
	}
	for _, t := range m.Trajectories {
		out := Trajectory{Role: t.Role, Key: t.Key, Reward: orZero(t.Reward), StopReason: t.StopReason}
		for _, reward := range t.StepRewards {
			out.StepRewards = append(out.StepRewards, orZero(reward))
		}
		for _, s := range t.Segments {
			out.Segments = append(out.Segments, segmentOf(s))
		}
		e.Trajectories = append(e.Trajectories, out)
	}
	return e
}

func segmentOf(s rl.Segment) Segment {
	out := Segment{Turn: s.Turn, Tokens: len(s.Tokens)}
	var sum float64
	for i, sampled := range s.Actions {
		if sampled {
			out.Sampled++
			sum += float64(s.Logprobs[i])
		}
	}
	if out.Sampled > 0 {
		out.Logprob = orZero(sum / float64(out.Sampled))
	}
	return out
}

// orZero returns 0 for what JSON cannot carry. Groups with such rewards are refused before they reach a batch.
func orZero(value float64) float64 {
	if finite.Is(value) {
		return value
	}
	return 0
}
