// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package distilltest compares package distill with steps that test/supervised has recorded of tinker-cookbook.
package distilltest

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rl/distill"
)

// tolerance is the permitted difference of numbers, relative to the terms of their sums: the reference computes in
// float32.
const tolerance = 1e-5

// Step has the results of train_on_policy.py in one step.
type Step struct {
	Groups []struct {
		Rewards    []float64 `json:"rewards"`
		Advantages []float32 `json:"advantages"`
	} `json:"groups"`
	Data []struct {
		Teacher         int       `json:"teacher"`
		Targets         []int32   `json:"target_tokens"`
		Logprobs        []float32 `json:"logprobs"`
		Mask            []float32 `json:"mask"`
		TeacherLogprobs []float32 `json:"teacher_logprobs"`
		Before          []float32 `json:"before"`
		After           []float32 `json:"after"`
	} `json:"data"`
	Metrics     map[string]float64 `json:"metrics"`
	Coefficient float64            `json:"coefficient"`
	Discount    float64            `json:"discount"`
}

// Read reads a step a line.
func Read(t testing.TB, lines []byte) []Step {
	t.Helper()
	var steps []Step
	for line := range bytes.Lines(lines) {
		var step Step
		if err := json.Unmarshal(line, &step); err != nil {
			t.Fatalf("%v in %.100s", err, line)
		}
		steps = append(steps, step)
	}
	return steps
}

// Compare compares the advantages within groups, the advantages with the teachers, and the divergence from the
// teachers.
func Compare(t testing.TB, step Step) {
	t.Helper()
	compareGroups(t, step)
	lessons := make([]distill.Lesson, len(step.Data))
	for i, d := range step.Data {
		mask := make([]bool, len(d.Mask))
		for j := range mask {
			mask[j] = d.Mask[j] != 0
		}
		lessons[i] = distill.Lesson{
			Datum: rl.Datum{
				Targets: d.Targets, Logprobs: d.Logprobs, Mask: mask, Advantages: append([]float32(nil), d.Before...),
			},
			Environment: strconv.Itoa(d.Teacher), Teacher: d.TeacherLogprobs,
			Coefficient: step.Coefficient, Discount: step.Discount,
		}
	}
	divergence, err := distill.Teach(lessons)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, l := range lessons {
		compared += compareDatum(t, step, i, l)
	}
	if compared == 0 {
		t.Error("no sampled token is compared")
	}
	total := distill.KL{}
	for name, kl := range divergence {
		compareNumber(t, "teacher_kl/dataset_"+name, kl.Mean(), step.Metrics["teacher_kl/dataset_"+name], 0)
		total.Sum, total.Tokens = total.Sum+kl.Sum, total.Tokens+kl.Tokens
	}
	compareNumber(t, "teacher_kl", total.Mean(), step.Metrics["teacher_kl"], 0)
}

// compareGroups compares the advantages without teachers.
func compareGroups(t testing.TB, step Step) {
	t.Helper()
	var groups []rl.Group
	for _, g := range step.Groups {
		group := rl.Group{}
		for i, reward := range g.Rewards {
			group.Members = append(group.Members, rl.Member{
				Index: i, Reward: reward, Trajectories: []rl.Trajectory{{Reward: reward}},
			})
		}
		groups = append(groups, group)
	}
	alg := algorithm.Algorithm{
		Advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleNone},
	}
	for g, members := range rl.Advantages(groups, alg) {
		for m, trajectories := range members {
			// Equal rewards have advantages of exactly 0 here, and of about 1e-8 in the reference.
			scale := math.Abs(step.Groups[g].Rewards[m])
			got, want := float64(trajectories[0].Values[0]), float64(step.Groups[g].Advantages[m])
			compareNumber(t, "the advantage within the group", got, want, scale)
		}
	}
}

// compareDatum compares the advantages of a datum, and returns how many tokens were sampled.
func compareDatum(t testing.TB, step Step, i int, l distill.Lesson) (sampled int) {
	t.Helper()
	d := step.Data[i]
	terms := 0.0
	for j := len(d.Mask) - 1; j >= 0; j-- {
		terms *= step.Discount
		if d.Mask[j] == 0 {
			// With a discount, the reference also changes the advantages of tokens that were not sampled.
			if got := l.Datum.Advantages[j]; got != d.Before[j] {
				t.Errorf("token %d of datum %d was not sampled, and its advantage is %v instead of %v", j, i, got, d.Before[j])
			}
			continue
		}
		sampled++
		terms += step.Coefficient * math.Abs(float64(d.Logprobs[j])-float64(d.TeacherLogprobs[j]))
		scale := max(terms, math.Abs(float64(d.Before[j])))
		compareNumber(t, "the advantage with the teacher", float64(l.Datum.Advantages[j]), float64(d.After[j]), scale)
	}
	return sampled
}

func compareNumber(t testing.TB, name string, got, want, scale float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*max(math.Abs(want), scale) {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}
