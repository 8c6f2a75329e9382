// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Long sequences take too long under the race detector, which finds nothing in them that short ones do not have.
//go:build !race

package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// longIDs returns a sequence of two windows. One of its tokens has bytes on both sides of the first window's end.
func longIDs() []int32 {
	ids := encode(strings.Repeat(conversation, Window/len(conversation)))
	for len(spell(ids)) < Window-6 {
		ids = append(ids, 1032)
	}
	return append(ids, encode("\n\nAssistant:"+strings.Repeat(conversation, 6))...)
}

// windowLogprobs computes the log-probability of each token after the first with the native model, which reads only
// the window of the token. The log-probabilities are the sampler's, not the trainer's.
func windowLogprobs(t *testing.T, w *Weights, ids []int32) []float32 {
	t.Helper()
	bytes := spell(ids)
	parts := make([][]float32, windowOf(len(bytes)-2)+1)
	for i := range parts {
		var err error
		if parts[i], err = w.PromptLogprobs(t.Context(), window(i).of(bytes)); err != nil {
			t.Fatal(err)
		}
	}
	var out []float32
	for at, i := len(spell(ids[:1])), 1; i < len(ids); i++ {
		n, sum := len(spell(ids[i:i+1])), 0.0
		in := windowOf(at + n - 2)
		for range n {
			sum += float64(parts[in][at-in.start()])
			at++
		}
		out = append(out, float32(sum))
	}
	return out
}

func TestLongPromptLogprobs(t *testing.T) {
	native, foreignAdapter := equalAdapters()
	ids := longIDs()
	w := foreignAdapter.Snapshot()
	got, err := w.PromptLogprobs(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	want := windowLogprobs(t, native.Snapshot(), ids)
	if diff := cmp.Diff(want, got[1:], cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		t.Errorf("log-probabilities (-by window +got):\n%s", diff)
	}
	_, top, err := w.TopKPromptLogprobs(t.Context(), ids, Vocab-3)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range top[1:] {
		if len(spell(ids[i+1:i+2])) == 1 && !contains(row, got[i+1]) {
			t.Fatalf("position %d: the alternatives lack the token's log-probability %v", i+1, got[i+1])
		}
	}
}

func contains(row []float32, value float32) bool {
	for _, v := range row {
		if d := v - value; d > -1e-5 && d < 1e-5 {
			return true
		}
	}
	return false
}

// TestLongDatum compares log-probabilities, loss and gradient with the values of the single windows.
func TestLongDatum(t *testing.T) {
	native, foreignAdapter := equalAdapters()
	ids := longIDs()
	weights := make([]float32, len(ids)-1)
	for i := range weights {
		weights[i] = float32(i%4) - 1.3
	}
	got := mustRun(t, foreignAdapter, []Datum{shifted(ids, weights)}, Loss{Name: "cross_entropy"})
	bytes := spell(ids)
	windows := make([]Datum, windowOf(len(bytes)-2)+1)
	for i := range windows {
		part := window(i).of(bytes)
		windows[i] = shifted(part, make([]float32, len(part)-1))
	}
	for at, i := len(spell(ids[:1])), 1; i < len(ids); i++ {
		n := len(spell(ids[i : i+1]))
		in := windowOf(at + n - 2)
		for range n {
			windows[in].Inputs["weights"].Float[at-1-in.start()] = weights[i-1]
			at++
		}
	}
	want := mustRun(t, native, windows, Loss{Name: "cross_entropy"})
	if diff := cmp.Diff(want.Metrics, got.Metrics, cmpopts.EquateApprox(1e-6, 0)); diff != "" {
		t.Errorf("metrics (-of windows +got):\n%s", diff)
	}
	if apart := distance(foreignAdapter.gradient, native.gradient); apart > 1e-5 {
		t.Errorf("the gradient is %v of its length from the sum of the windows' gradients", apart)
	}
	if diff := cmp.Diff(windowLogprobs(t, native.Snapshot(), ids), got.Logprobs[0],
		cmpopts.EquateApprox(0.02, 0.3)); diff != "" {
		t.Errorf("log-probabilities (-of the sampler +got):\n%s", diff)
	}
}

// TestLongTargetsBesideInput compares targets that differ from the next token of the input with datums whose input
// continues with these targets.
func TestLongTargetsBesideInput(t *testing.T) {
	_, foreignAdapter := equalAdapters()
	ids := longIDs()
	ids = ids[:len(ids)-1]
	beside := shifted(append(ids, 1065), nil)
	delete(beside.Inputs, "weights")
	var places []int
	for i, end := 0, 0; i < len(ids); i++ {
		if end += len(spell(ids[i : i+1])); end > Window-12 && end < Window+8 {
			beside.Inputs["target_tokens"].Int[i] = 2002
			places = append(places, i)
		}
	}
	got, err := foreignAdapter.Forward(t.Context(), []Datum{beside}, Loss{Name: "cross_entropy"})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{places[0], places[len(places)-1]} {
		d := shifted(append(append([]int32{}, ids[:i+1]...), 2002), nil)
		delete(d.Inputs, "weights")
		alone, err := foreignAdapter.Forward(t.Context(), []Datum{d}, Loss{Name: "cross_entropy"})
		if err != nil {
			t.Fatal(err)
		}
		if got.Logprobs[0][i] != alone.Logprobs[0][i] {
			t.Errorf("position %d: log-probability %v, alone %v", i, got.Logprobs[0][i], alone.Logprobs[0][i])
		}
	}
}

// TestSampleCrossesWindows compares samples that leave the first window with the same tokens as a prompt, and samples
// of one job with those drawn alone.
func TestSampleCrossesWindows(t *testing.T) {
	_, foreignAdapter := equalAdapters()
	w := foreignAdapter.Snapshot()
	prompt := encode(strings.Repeat(conversation, Window/len(conversation)))
	for len(spell(prompt)) < Window-6 {
		prompt = append(prompt, 1032)
	}
	free := SampleRequest{Prompt: prompt, MaxTokens: 16, Temperature: 3, TopP: 1, Seed: 4}
	forced := free
	forced.Forced = encode("122\n\nAssistant:12 + 2")
	short := free
	short.Prompt = encode(conversation)
	requests := []SampleRequest{free, short, forced}
	together, err := w.Sample(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(together[0].Tokens); n < 8 {
		t.Fatalf("the free sample has %d tokens and does not leave the window: choose another seed", n)
	}
	for i, r := range requests {
		alone, err := w.Sample(t.Context(), []SampleRequest{r})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(alone[0], together[i]); diff != "" {
			t.Errorf("request %d (-alone +together):\n%s", i, diff)
		}
		all, err := w.PromptLogprobs(t.Context(), append(append([]int32{}, r.Prompt...), together[i].Tokens...))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all[len(r.Prompt):], together[i].Logprobs, cmpopts.EquateApprox(0, 1e-4)); diff != "" {
			t.Errorf("request %d: log-probabilities (-as a prompt +sampled):\n%s", i, diff)
		}
	}
}
