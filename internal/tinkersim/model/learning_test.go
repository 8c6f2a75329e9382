// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// heldOutQuestions is the number of questions that pass@1 is measured on.
const heldOutQuestions = 768

// addition is the task of the learning tests: one question and its answer.
type addition struct{ a, b int }

func (q addition) prompt() []int32 {
	return bytesOf(fmt.Sprintf("User: What is %d + %d?\n\nAssistant:", q.a, q.b))
}

var lastInteger = regexp.MustCompile(`(\d+)\D*$`)

// reward is 1 when the reply ended its turn and its last integer is the sum.
func (q addition) reward(s Sample) float64 {
	if !s.Stopped {
		return 0
	}
	m := lastInteger.FindStringSubmatch(textOf(s.Tokens))
	if m == nil {
		return 0
	}
	if v, err := strconv.Atoi(m[1]); err != nil || v != q.a+q.b {
		return 0
	}
	return 1
}

// heldOut reports whether a question is excluded from training, which its hash decides.
func (q addition) heldOut() bool {
	h := fnv.New32a()
	fmt.Fprintf(h, "%d+%d", q.a, q.b)
	return h.Sum32()>>16%5 == 0
}

func bytesOf(text string) []int32 {
	out := make([]int32, len(text))
	for i, c := range []byte(text) {
		out[i] = int32(c)
	}
	return out
}

func textOf(tokens []int32) string {
	var out []byte
	for _, t := range tokens {
		if t < 256 {
			out = append(out, byte(t))
		}
	}
	return string(out)
}

// grpoRun is a small GRPO run: each step samples a group for each question, subtracts the mean reward of the
// group, and makes one optimizer step.
type grpoRun struct {
	adapter *Adapter
	groups  int
	members int
	// random makes the rewards random.
	random bool
	drawn  int
	// gap is the mean of the sampler's log-probability minus the trainer's, in the last step.
	gap float64
}

func (l *grpoRun) draw(heldOut bool) addition {
	for {
		l.drawn++
		q := addition{int(uniform(7, l.drawn, 0) * 100), int(uniform(7, l.drawn, 1) * 100)}
		if q.heldOut() == heldOut {
			return q
		}
	}
}

// questions draws n questions, which are excluded from training if heldOut is set.
func (l *grpoRun) questions(n int, heldOut bool) []addition {
	out := make([]addition, n)
	for i := range out {
		out[i] = l.draw(heldOut)
	}
	return out
}

// sample draws members replies to each question with the adapter's current weights.
func (l *grpoRun) sample(t *testing.T, questions []addition, seed uint64, members int) []Sample {
	t.Helper()
	var reqs []SampleRequest
	for i, q := range questions {
		for m := range members {
			r := request(q)
			r.Seed, r.Index = seed+uint64(i), m
			reqs = append(reqs, r)
		}
	}
	return mustSample(t, l.adapter.Snapshot(), reqs...)
}

// passAt1 returns the mean reward on held-out questions.
func (l *grpoRun) passAt1(t *testing.T) float64 {
	t.Helper()
	questions := new(grpoRun).questions(heldOutQuestions, true)
	sum := 0.0
	for i, s := range l.sample(t, questions, 1<<40, 1) {
		sum += questions[i].reward(s)
	}
	return sum / heldOutQuestions
}

func (l *grpoRun) step(t *testing.T, step int) {
	t.Helper()
	questions := l.questions(l.groups, false)
	samples := l.sample(t, questions, uint64(step)<<20, l.members)
	var batch []Datum
	for g, q := range questions {
		batch = append(batch, l.group(q, samples[g*l.members:(g+1)*l.members], step*1000+g)...)
	}
	if len(batch) > 0 {
		l.gap = meanGap(batch, mustRun(t, l.adapter, batch, Loss{Name: "importance_sampling"}))
	}
	mustStep(t, l.adapter, AdamParams{LearningRate: 3e-4, Beta1: .9, Beta2: .95, Eps: 1e-8})
}

// group makes datums of the members whose reward differs from the group's mean.
func (l *grpoRun) group(q addition, group []Sample, key int) []Datum {
	rewards, mean := make([]float64, len(group)), 0.0
	for i, s := range group {
		rewards[i] = q.reward(s)
		if l.random {
			rewards[i] = math.Round(uniform(9, key, i))
		}
		mean += rewards[i] / float64(len(group))
	}
	var batch []Datum
	for i, s := range group {
		if rewards[i] != mean {
			batch = append(batch, policyDatum(q.prompt(), s, rewards[i]-mean))
		}
	}
	return batch
}

// policyDatum shifts a sample into inputs and targets.
func policyDatum(prompt []int32, s Sample, advantage float64) Datum {
	all := append(prompt, s.Tokens...)
	n := len(all) - 1
	targets, logprobs, advantages := make([]int64, n), make([]float32, n), make([]float32, n)
	for i := range n {
		targets[i] = int64(all[i+1])
		if j := i + 1 - len(prompt); j >= 0 {
			logprobs[i], advantages[i] = s.Logprobs[j], float32(advantage)
		}
	}
	return Datum{Tokens: all[:n], Inputs: map[string]Tensor{
		"target_tokens": {Int: targets}, "logprobs": {Float: logprobs}, "advantages": {Float: advantages},
	}}
}

// meanGap returns the mean over sampled tokens of (r-1) - log r, an estimate of the divergence between sampler and
// trainer.
func meanGap(batch []Datum, r Result) float64 {
	sum, n := 0.0, 0
	for i, d := range batch {
		for j, q := range d.Inputs["logprobs"].Float {
			if q != 0 {
				shift := float64(r.Logprobs[i][j] - q)
				sum, n = sum+math.Exp(shift)-1-shift, n+1
			}
		}
	}
	return sum / float64(n)
}

// BenchmarkStep measures one step of training: 256 samples of up to 16 tokens, and an update with them.
func BenchmarkStep(b *testing.B) {
	cfg := Config{Rank: 8, Seed: 1, TrainAttention: true, TrainMLP: true, TrainUnembed: true}
	l := &grpoRun{groups: 32, members: 8, random: true, adapter: NewAdapter(testBase(), cfg)}
	questions := l.questions(l.groups, false)
	var reqs []SampleRequest
	var batch []Datum
	for i := range l.groups * l.members {
		r := request(questions[i/l.members])
		r.Index = i
		reqs = append(reqs, r)
	}
	for b.Loop() {
		samples, err := l.adapter.Snapshot().Sample(b.Context(), reqs)
		if err != nil {
			b.Fatal(err)
		}
		batch = batch[:0]
		for i, s := range samples {
			batch = append(batch, policyDatum(slices.Clone(reqs[i].Prompt), s, 1))
		}
		if _, err := l.adapter.ForwardBackward(b.Context(), batch, Loss{Name: "importance_sampling"}); err != nil {
			b.Fatal(err)
		}
		if _, err := l.adapter.OptimStep(AdamParams{}); err != nil {
			b.Fatal(err)
		}
	}
}
