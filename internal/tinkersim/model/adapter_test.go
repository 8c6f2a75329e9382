// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"crypto/sha256"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

func testBase() *BaseModel { return Base() }

var testConfig = Config{Rank: 4, Seed: 11, TrainAttention: true, TrainMLP: true, TrainUnembed: true}

// trained returns an adapter whose B is not zero, so that every matrix has a gradient.
func trained(cfg Config) *Adapter {
	a := NewAdapter(testBase(), cfg)
	for i := range a.params {
		a.params[i] += float32(uniform(5, 0, i)-0.5) * 0.02
	}
	a.merge()
	return a
}

// testBatch returns datums for cross_entropy; some of them share their front.
func testBatch(n int) []Datum {
	var batch []Datum
	for i := range n {
		q := addition{i / 3 * 7 % 100, i / 3 * 13 % 100}
		tokens := append(q.prompt(), bytesOf([]string{" 12", " It's 9.", " 7"}[i%3])...)
		targets, weights := make([]int64, len(tokens)), make([]float32, len(tokens))
		for j := range tokens {
			targets[j] = TokenEnd
			if j+1 < len(tokens) {
				targets[j] = int64(tokens[j+1])
			}
			weights[j] = float32(uniform(6, i, j)) - 0.3
		}
		batch = append(batch, Datum{Tokens: tokens, Inputs: map[string]Tensor{"target_tokens": {Int: targets},
			"weights": {Float: weights}}})
	}
	return batch
}

// policyBatch turns datums into datums for the policy losses. The ratios are 1/4, 1 and 4: they are far from the
// thresholds 1/2 and 2, at which ppo has kinks.
func policyBatch(t *testing.T, a *Adapter, n int) []Datum {
	t.Helper()
	batch := testBatch(n)
	r, err := a.Forward(t.Context(), batch, Loss{Name: "cross_entropy"})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range batch {
		logprobs, advantages := make([]float32, len(d.Tokens)), make([]float32, len(d.Tokens))
		for j := range logprobs {
			logprobs[j] = r.Logprobs[i][j] + 1.4*float32(math.Floor(3*uniform(8, i, j))-1)
			advantages[j] = float32(uniform(9, i, j) - 0.4)
		}
		batch[i].Inputs = map[string]Tensor{
			"target_tokens": d.Inputs["target_tokens"], "logprobs": {Float: logprobs}, "advantages": {Float: advantages},
		}
	}
	return batch
}

func mustRun(t *testing.T, a *Adapter, batch []Datum, loss Loss) Result {
	t.Helper()
	r, err := a.ForwardBackward(t.Context(), batch, loss)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustStep(t *testing.T, a *Adapter, p AdamParams) OptimResult {
	t.Helper()
	r, err := a.OptimStep(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestGradientFiniteDifferences moves the adapter along its gradient, matrix by matrix.
func TestGradientFiniteDifferences(t *testing.T) {
	for _, loss := range []Loss{
		{Name: "cross_entropy"}, {Name: "importance_sampling"}, {Name: "dro"},
		{Name: "ppo", Config: map[string]float64{"clip_low_threshold": 0.5, "clip_high_threshold": 2}},
	} {
		t.Run(loss.Name, func(t *testing.T) {
			a := trained(testConfig)
			batch := testBatch(6)
			if loss.Name != "cross_entropy" {
				batch = policyBatch(t, a, 6)
			}
			mustRun(t, a, batch, loss)
			for _, p := range a.parts {
				checkSlope(t, a, batch, loss, [2]int{p.a, p.b})
				checkSlope(t, a, batch, loss, [2]int{p.b, p.end})
			}
		})
	}
}

// checkSlope compares the norm of a part of the gradient with a difference quotient along it.
func checkSlope(t *testing.T, a *Adapter, batch []Datum, loss Loss, part [2]int) {
	t.Helper()
	gradient := a.gradient[part[0]:part[1]]
	norm := l2(gradient)
	value := func(step float64) float64 {
		before := append([]float32{}, a.params...)
		for i, g := range gradient {
			a.params[part[0]+i] += float32(step * float64(g) / norm)
		}
		a.merge()
		r, err := a.Forward(t.Context(), batch, loss)
		if err != nil {
			t.Fatal(err)
		}
		copy(a.params, before)
		return r.Metrics["loss:sum"]
	}
	// Two quotients cancel the cubic term. The step is large enough for float32 passes and, if the loss has kinks, too
	// small for a token to reach one.
	step := min(4e-3, 0.1/norm)
	if loss.Name == "ppo" {
		step /= 2
	}
	near := (value(step) - value(-step)) / (2 * step)
	far := (value(2*step) - value(-2*step)) / (4 * step)
	a.merge()
	if want := (4*near - far) / 3; math.Abs(want-norm) > 1e-3*math.Abs(want)+5e-3 {
		t.Errorf("part %v: slope is %v, gradient's norm %v", part, want, norm)
	}
}

// TestCISPOGradient checks that the clipped ratio is a constant weight.
func TestCISPOGradient(t *testing.T) {
	loss := Loss{Name: "cispo", Config: map[string]float64{"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}}
	a, b := trained(testConfig), trained(testConfig)
	batch := policyBatch(t, a, 6)
	r := mustRun(t, a, batch, loss)
	for i, d := range batch {
		weights := make([]float32, len(d.Tokens))
		for j := range weights {
			ratio := math.Exp(float64(r.Logprobs[i][j] - d.Inputs["logprobs"].Float[j]))
			weights[j] = float32(min(max(ratio, 0.8), 1.2)) * d.Inputs["advantages"].Float[j]
		}
		batch[i].Inputs = map[string]Tensor{"target_tokens": d.Inputs["target_tokens"], "weights": {Float: weights}}
	}
	mustRun(t, b, batch, Loss{Name: "cross_entropy"})
	for i, want := range b.gradient {
		if math.Abs(float64(a.gradient[i]-want)) > 1e-4*l2(b.gradient) {
			t.Fatalf("gradient %d is %v, want %v", i, a.gradient[i], want)
		}
	}
}

func TestCrossEntropyOfSeveralTargets(t *testing.T) {
	tokens := bytesOf("User: What is 1 + 2?")
	n := len(tokens)
	broad := Datum{Tokens: tokens, Inputs: map[string]Tensor{
		"target_tokens": {Shape: []int{n, 2}, Int: make([]int64, 2*n)},
		"weights":       {Shape: []int{n, 2}, Float: make([]float32, 2*n)},
	}}
	var single [2]Datum
	for k := range single {
		targets, weights := make([]int64, n), make([]float32, n)
		for i := range targets {
			targets[i], weights[i] = int64(uniform(1, k, i)*Vocab), float32(uniform(2, k, i))
			broad.Inputs["target_tokens"].Int[2*i+k], broad.Inputs["weights"].Float[2*i+k] = targets[i], weights[i]
		}
		single[k] = Datum{Tokens: tokens, Inputs: map[string]Tensor{"target_tokens": {Int: targets},
			"weights": {Float: weights}}}
	}
	a, b := trained(testConfig), trained(testConfig)
	got := mustRun(t, a, []Datum{broad}, Loss{Name: "cross_entropy"})
	if diff := cmp.Diff([][]int{{n, 2}}, got.Shapes); diff != "" {
		t.Errorf("shapes (-want +got):\n%s", diff)
	}
	sum := 0.0
	for k, d := range single {
		r := mustRun(t, b, []Datum{d}, Loss{Name: "cross_entropy"})
		sum += r.Metrics["loss:sum"]
		for i, want := range r.Logprobs[0] {
			if got.Logprobs[0][2*i+k] != want {
				t.Errorf("log-probability %d of target %d is %v, want %v", i, k, got.Logprobs[0][2*i+k], want)
			}
		}
	}
	if math.Abs(sum-got.Metrics["loss:sum"]) > 1e-9*sum {
		t.Errorf("loss is %v, want %v", got.Metrics["loss:sum"], sum)
	}
	for i, want := range b.gradient {
		if math.Abs(float64(a.gradient[i]-want)) > 1e-5*l2(b.gradient) {
			t.Fatalf("gradient %d is %v, want %v", i, a.gradient[i], want)
		}
	}
}

func TestForwardKeepsGradient(t *testing.T) {
	a := trained(testConfig)
	batch := testBatch(5)
	with := mustRun(t, a, batch, Loss{Name: "cross_entropy"})
	before := append([]float32{}, a.gradient...)
	without, err := a.Forward(t.Context(), batch, Loss{Name: "cross_entropy"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(with, without); diff != "" {
		t.Errorf("results differ (-with +without gradient):\n%s", diff)
	}
	if !cmp.Equal(before, a.gradient) {
		t.Errorf("the gradient changed (-want +got):\n%.300s", cmp.Diff(before, a.gradient))
	}
}

func TestForwardBackwardErrorKeepsGradient(t *testing.T) {
	a := trained(testConfig)
	mustRun(t, a, testBatch(4), Loss{Name: "cross_entropy"})
	before := append([]float32{}, a.gradient...)
	bad := testBatch(40)
	bad[39].Tokens = nil
	var user *UserError
	if _, err := a.ForwardBackward(t.Context(), bad, Loss{Name: "cross_entropy"}); !errors.As(err, &user) {
		t.Errorf("error is %v, want one of the user", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.ForwardBackward(ctx, testBatch(40), Loss{Name: "cross_entropy"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want the context's error", err)
	}
	if !cmp.Equal(before, a.gradient) {
		t.Errorf("the gradient changed (-want +got):\n%.300s", cmp.Diff(before, a.gradient))
	}
}

// TestTrainingDoesNotDependOnCPUs accumulates gradients over several calls before each step.
func TestTrainingDoesNotDependOnCPUs(t *testing.T) {
	run := func(cpus int) []byte {
		before := runtime.GOMAXPROCS(cpus)
		defer runtime.GOMAXPROCS(before)
		a := trained(testConfig)
		for range 2 {
			mustRun(t, a, testBatch(60), Loss{Name: "cross_entropy"})
			mustRun(t, a, policyBatch(t, a, 25), Loss{Name: "ppo"})
			mustStep(t, a, AdamParams{LearningRate: 1e-3, Beta1: .9, Beta2: .95, Eps: 1e-8})
		}
		return a.MarshalState(true)
	}
	want := run(1)
	for _, cpus := range []int{2, 3, 16} {
		if string(run(cpus)) != string(want) {
			t.Errorf("the state differs with %d CPUs", cpus)
		}
	}
}

func TestLogprobsDoNotDependOnBatch(t *testing.T) {
	a := trained(testConfig)
	batch := testBatch(50)
	together, err := a.Forward(t.Context(), batch, Loss{Name: "cross_entropy"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range batch {
		alone, err := a.Forward(t.Context(), batch[i:i+1], Loss{Name: "cross_entropy"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(alone.Logprobs[0], together.Logprobs[i]); diff != "" {
			t.Fatalf("datum %d (-alone +together):\n%s", i, diff)
		}
	}
}

func TestNewAdapter(t *testing.T) {
	a := NewAdapter(testBase(), testConfig)
	if !cmp.Equal(a.merged.Flat(), testBase().params.Flat()) {
		t.Errorf("a new adapter changes the base (-want +got):\n%.300s", cmp.Diff(testBase().params.Flat(), a.merged.Flat()))
	}
	other := testConfig
	other.Seed++
	got, want := a.MarshalState(true), NewAdapter(testBase(), testConfig).MarshalState(true)
	if string(got) != string(want) {
		t.Errorf("two adapters of one configuration have sha256 %x and %x", sha256.Sum256(got), sha256.Sum256(want))
	}
	if cmp.Equal(a.params, NewAdapter(testBase(), other).params) {
		t.Error("the seed has no effect")
	}
}

func TestTrainFlags(t *testing.T) {
	for name, test := range map[string]struct {
		cfg    Config
		blocks []transformer.Block
	}{
		"attention": {Config{Rank: 2, TrainAttention: true}, transformer.AttentionBlocks()},
		"MLP":       {Config{Rank: 2, TrainMLP: true}, transformer.MLPBlocks()},
		"unembed":   {Config{Rank: 2, TrainUnembed: true}, []transformer.Block{transformer.UnembedBlock()}},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAdapter(testBase(), test.cfg)
			mustRun(t, a, testBatch(6), Loss{Name: "cross_entropy"})
			mustStep(t, a, AdamParams{LearningRate: 1e-3, Beta1: .9, Beta2: .95, Eps: 1e-8})
			got, want := a.merged.Flat(), append([]float32{}, testBase().params.Flat()...)
			for _, b := range test.blocks {
				changed := false
				for i := range b.Rows {
					from := b.Offset + i*b.Stride
					changed = changed || !cmp.Equal(want[from:from+b.Cols], got[from:from+b.Cols])
					copy(want[from:from+b.Cols], got[from:from+b.Cols])
				}
				if !changed {
					t.Errorf("block %v did not change", b)
				}
			}
			if !cmp.Equal(want, got) {
				t.Errorf("other matrices changed (-want +got):\n%.300s", cmp.Diff(want, got))
			}
		})
	}
}

func TestConfigValidate(t *testing.T) {
	for name, test := range map[string]struct {
		cfg   Config
		valid bool
	}{
		"all":             {Config{Rank: 32, TrainAttention: true, TrainMLP: true, TrainUnembed: true}, true},
		"highest rank":    {Config{Rank: MaxRank, TrainMLP: true}, true},
		"rank 0":          {Config{TrainMLP: true}, false},
		"rank too high":   {Config{Rank: MaxRank + 1, TrainMLP: true}, false},
		"nothing trained": {Config{Rank: 8}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.cfg.Validate(); (err == nil) != test.valid {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// TestGSPOGradient compares the gradient of two sequences with the gradient of cross_entropy whose weights are the
// slopes of the definition.
func TestGSPOGradient(t *testing.T) {
	_, a := equalAdapters()
	var batch, weighted []Datum
	for i, ids := range [][]int32{encode(conversation + conversation), encode(conversation)} {
		n := len(ids) - 1
		forward := mustRun(t, a, []Datum{shifted(ids, make([]float32, n))}, Loss{Name: "cross_entropy"})
		sampled, advantages, mask := make([]float32, n), make([]float32, n), make([]float32, n)
		sum, count := 0.0, 0.0
		for j, l := range forward.Logprobs[0] {
			if j > n/3 { // The rest is the prompt, whose values are 0.
				sampled[j], advantages[j], mask[j] = l-0.15*float32(j%3)+0.2*float32(i), float32(j%5)-2, 1
				sum, count = sum+float64(l)-float64(sampled[j]), count+1
			}
		}
		weights := make([]float32, n)
		ratio := math.Exp(sum / count)
		for j, advantage := range advantages {
			if plain := ratio * float64(advantage); plain <= min(max(ratio, 0.9), 1.1)*float64(advantage) {
				weights[j] = float32(plain)
			}
		}
		d := shifted(ids, nil)
		d.Inputs = map[string]Tensor{"target_tokens": d.Inputs["target_tokens"], "logprobs": {Float: sampled},
			"advantages": {Float: advantages}, "sequence_ratio_mask": {Float: mask}}
		batch, weighted = append(batch, d), append(weighted, shifted(ids, weights))
	}
	clear(a.gradient)
	mustRun(t, a, batch, Loss{"gspo", map[string]float64{"clip_low_threshold": 0.9, "clip_high_threshold": 1.1}})
	got := append([]float32{}, a.gradient...)
	clear(a.gradient)
	mustRun(t, a, weighted, Loss{Name: "cross_entropy"})
	if diff := distance(got, a.gradient); diff > 1e-5 {
		t.Errorf("the gradient is %v of its length from the gradient of the definition", diff)
	}
}
