// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Line is the record of one episode, or of a group without episodes. Lines are all that a run keeps of its episodes.
type Line struct {
	// Step is the number of the version that the step made, from 1, or that was evaluated.
	Step    int64  `json:"step"`
	Lineage string `json:"lineage"`
	// SampledAt is the version that sampled the episode.
	SampledAt int64 `json:"sampledAt"`
	// Evaluation is the digest of the definition that was evaluated; it is empty for an episode of training.
	Evaluation  string `json:"evaluation,omitempty"`
	Slot        int64  `json:"slot"`
	Environment string `json:"environment,omitempty"`
	// Split and Task say which task of the environment it is.
	Split string `json:"split,omitempty"`
	Task  int64  `json:"task"`
	// Group is the outcome of the group, and Reason says why it is not trained on.
	Group  string `json:"group,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Recorded says that the conversations and tokens of the group are recorded.
	Recorded bool     `json:"recorded,omitempty"`
	Episode  *Episode `json:"episode,omitempty"`
	// Omitted counts the episodes that have no line for lack of room.
	Omitted int `json:"omitted,omitempty"`
}

const (
	// maxBytes bounds the lines of a step or an evaluation before they are compressed. A last line counts the episodes
	// beyond it.
	maxBytes = 48 << 20
	// maxRecorded is the part of maxBytes that conversations and tokens may fill. The lines of later episodes have no
	// messages or tokens.
	maxRecorded = 32 << 20
)

// TaskGroup is a group with its task.
type TaskGroup struct {
	rl.Group

	Split string
	Task  int64
	// Recorded says that the conversations and tokens are recorded.
	Recorded bool
	// Passed says whether an episode of an evaluation passes; nil for training.
	Passed func(rl.Member) bool
}

// best returns the index of the first usable member with the highest reward in an evaluated group, or -1 if there is
// none.
func (g TaskGroup) best() int {
	best := -1
	for i, m := range g.Members {
		if g.Passed != nil && m.Outcome == rl.Usable && (best < 0 || m.Reward > g.Members[best].Reward) {
			best = i
		}
	}
	return best
}

// Trained has the data of a step, and the log-probabilities of their targets by the trainer. The log-probabilities may
// be missing.
type Trained struct {
	Datums   []rl.Datum
	Logprobs [][]float32
}

// place identifies the segment of a datum.
type place struct {
	slot                        int64
	member, trajectory, segment int
}

func (t Trained) places() map[place]int {
	places := map[place]int{}
	for i, d := range t.Datums {
		places[place{d.Slot, d.Member, d.Trajectory, d.Segment}] = i
	}
	return places
}

// EncodeLines returns the lines of groups, compressed by gzip. They have the fields of head.
func EncodeLines(head Line, groups []TaskGroup, trained Trained) ([]byte, error) {
	return encodeLines(head, groups, trained, lineWriter{room: maxBytes, recorded: maxRecorded})
}

func encodeLines(head Line, groups []TaskGroup, trained Trained, w lineWriter) ([]byte, error) {
	w.packed = gzip.NewWriter(&w.out)
	places := trained.places()
	for _, g := range groups {
		line := head
		line.Slot, line.Environment, line.Split, line.Task = g.Key.Slot, g.Environment, g.Split, g.Task
		line.Group, line.Reason, line.Recorded = g.Outcome.String(), g.Reason, g.Recorded
		if len(g.Members) == 0 {
			w.write(line)
		}
		best := g.best()
		for m, member := range g.Members {
			e := fromMember(member)
			e.Best = m == best
			if g.Passed != nil && member.Outcome == rl.Usable {
				e.Passed = new(g.Passed(member))
			}
			if g.Recorded {
				e.addTokens(member, func(t, s int) (rl.Datum, []float32) {
					return trained.of(places, place{g.Key.Slot, m, t, s})
				})
			} else {
				e.strip("")
			}
			line.Episode = &e
			w.write(line)
		}
	}
	if w.omitted > 0 {
		head.Omitted = w.omitted
		w.room = math.MaxInt
		w.write(head)
	}
	if w.err = errors.Join(w.err, w.packed.Close()); w.err != nil {
		return nil, fmt.Errorf("encoding episodes: %w", w.err)
	}
	return w.out.Bytes(), nil
}

// of returns the datum of a segment and its log-probabilities, if it was trained on.
func (t Trained) of(places map[place]int, at place) (rl.Datum, []float32) {
	i, ok := places[at]
	if !ok {
		return rl.Datum{}, nil
	}
	if i < len(t.Logprobs) {
		return t.Datums[i], t.Logprobs[i]
	}
	return t.Datums[i], nil
}

// lineWriter compresses lines, as far as there is room.
type lineWriter struct {
	out            bytes.Buffer
	packed         *gzip.Writer
	room, recorded int
	omitted        int
	err            error
}

func (w *lineWriter) write(line Line) {
	data, err := json.Marshal(line)
	if line.Recorded && line.Episode != nil && err == nil {
		if w.recorded -= len(data); w.recorded < 0 {
			line.Episode.strip(fmt.Sprintf("the conversations of a step have at most %d MiB, which the episodes before this "+
				"one fill", maxRecorded>>20))
			data, err = json.Marshal(line)
		}
	}
	if err != nil {
		w.err = cmp.Or(w.err, err)
		return
	}
	if w.room -= len(data) + 1; w.room < 0 {
		w.omitted++
		return
	}
	if _, err := w.packed.Write(append(data, '\n')); err != nil {
		w.err = cmp.Or(w.err, err)
	}
}

// strip leaves out the conversations and tokens, and says why.
func (e *Episode) strip(why string) {
	for i := range e.Conversations {
		c := &e.Conversations[i]
		c.Tools, c.Messages, c.Judgements, c.Omitted = nil, nil, nil, why
		for j := range c.Segments {
			s := &c.Segments[j]
			s.IDs, s.Actions, s.Logprobs, s.TrainerLogprobs, s.Advantages = nil, nil, nil, nil, nil
		}
	}
}

// DecodeLines returns the lines that EncodeLines has encoded. A line that is cut is an error.
func DecodeLines(encoded []byte) ([]Line, error) {
	packed, err := gzip.NewReader(bytes.NewReader(encoded))
	if err != nil {
		return nil, fmt.Errorf("decoding episodes: %w", err)
	}
	var lines []Line
	for decoder := json.NewDecoder(bufio.NewReader(packed)); ; {
		var line Line
		switch err := decoder.Decode(&line); {
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil:
			return nil, fmt.Errorf("decoding episodes: %w", err)
		}
		lines = append(lines, line)
	}
}

// StepOf returns the recorded groups among the lines of a step, and the results of all tasks of an evaluation.
func StepOf(lines []Line) Step {
	var s Step
	for _, line := range lines {
		s.Step, s.Lineage, s.SampledAt, s.Evaluation = line.Step, line.Lineage, line.SampledAt, line.Evaluation
		if !line.Recorded {
			continue
		}
		if n := len(s.Groups); n == 0 || s.Groups[n-1].Slot != line.Slot {
			s.Groups = append(s.Groups, Group{Slot: line.Slot, Environment: line.Environment, Split: line.Split,
				Task: line.Task, Outcome: line.Group, Reason: line.Reason})
		}
		if line.Episode != nil {
			last := &s.Groups[len(s.Groups)-1]
			last.Episodes = append(last.Episodes, *line.Episode)
		}
	}
	if s.Evaluation != "" {
		s.Tasks = resultsOf(lines)
	}
	if len(s.Groups) == 0 {
		s.Missing = "no conversations of it were recorded"
	}
	return s
}

// Segment is one sequence that goes through the model as a whole.
type Segment struct {
	// Turn is the turn that the segment begins with.
	Turn   int `json:"turn"`
	Tokens int `json:"tokens"`
	// Sampled counts the tokens that the policy sampled, and Logprob is their mean log-probability under it, in nats.
	Sampled int     `json:"sampled"`
	Logprob float64 `json:"logprob"`
	// IDs are the tokens, if the group is recorded, and Actions are the indexes of the sampled tokens. Logprobs are the
	// log-probabilities of the sampled tokens when they were sampled, and TrainerLogprobs when they were trained on.
	// TrainerLogprobs and Advantages are nil if the segment was not trained on.
	IDs             []int32   `json:"ids,omitempty"`
	Actions         []int     `json:"actions,omitempty"`
	Logprobs        []float32 `json:"logprobs,omitempty"`
	TrainerLogprobs []float32 `json:"trainerLogprobs,omitempty"`
	Advantages      []float32 `json:"advantages,omitempty"`
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

// addTokens adds the tokens of a member's segments. trained returns the datum of a segment and its log-probabilities.
func (e *Episode) addTokens(m rl.Member, trained func(trajectory, segment int) (rl.Datum, []float32)) {
	for t, trajectory := range m.Trajectories {
		c := e.conversation(trajectory.Role, trajectory.Key)
		for i, s := range trajectory.Segments {
			datum, logprobs := trained(t, i)
			c.Segments[i].addTokens(s, datum, logprobs)
		}
	}
}

// addTokens adds the tokens of a segment. Advantage and log-probability of the target i of a datum belong to the token
// i+1.
func (out *Segment) addTokens(s rl.Segment, datum rl.Datum, trainer []float32) {
	out.IDs = s.Tokens
	advantages := datum.TargetAdvantages()
	for i, sampled := range s.Actions {
		if !sampled {
			continue
		}
		out.Actions = append(out.Actions, i)
		out.Logprobs = append(out.Logprobs, orZero(s.Logprobs[i]))
		if i > 0 && i-1 < len(advantages) {
			out.Advantages = append(out.Advantages, orZero(advantages[i-1]))
		}
		if i > 0 && i-1 < len(trainer) {
			out.TrainerLogprobs = append(out.TrainerLogprobs, orZero(trainer[i-1]))
		}
	}
}

// orZero returns 0 for NaN and infinities, which JSON cannot carry. Groups with such rewards are refused before they
// reach a batch.
func orZero[F float32 | float64](value F) F {
	if finite.Is(float64(value)) {
		return value
	}
	return 0
}
