// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// foreign is a vocabulary with bytes from id 1000, words from id 2000, and the end token 5.
type foreign struct{}

const foreignEnd = 5

var words = []string{"User: ", "What is ", "\n\nAssistant:", " 12", "2", " + ", "?"}

func (foreign) Spell(id int32) []int32 {
	switch {
	case id == foreignEnd:
		return []int32{TokenEnd}
	case id >= 1000 && id < 1256:
		return []int32{id - 1000}
	case id >= 2000 && int(id) < 2000+len(words):
		return bytesOf(words[id-2000])
	default:
		return nil
	}
}

func (foreign) Token(native int32) (int32, bool) {
	switch {
	case native < 256:
		return native + 1000, true
	default:
		return foreignEnd, native == TokenEnd
	}
}

// encode returns the ids of a text: words where they occur, bytes elsewhere, and the end for "|".
func encode(text string) []int32 {
	var ids []int32
	for text != "" {
		id, n := int32(text[0])+1000, 1
		if text[0] == '|' {
			id = foreignEnd
		}
		for i, word := range words {
			if len(word) > n && strings.HasPrefix(text, word) {
				id, n = int32(2000+i), len(word)
			}
		}
		ids, text = append(ids, id), text[n:]
	}
	return ids
}

// spell returns the native tokens of ids.
func spell(ids []int32) []int32 {
	var out []int32
	for _, id := range ids {
		out = append(out, foreign{}.Spell(id)...)
	}
	return out
}

// equalAdapters returns two adapters with the same weights, one for each vocabulary.
func equalAdapters() (native, foreignAdapter *Adapter) {
	native, foreignAdapter = trained(testConfig), NewAdapter(testBase().WithVocabulary(foreign{}), testConfig)
	copy(foreignAdapter.params, native.params)
	foreignAdapter.merge()
	return native, foreignAdapter
}

const conversation = "User: What is 12 + 2?\n\nAssistant: 122|"

// shifted returns a datum for cross_entropy whose targets are all tokens but the first.
func shifted(ids []int32, weights []float32) Datum {
	targets := make([]int64, len(ids)-1)
	for i := range targets {
		targets[i] = int64(ids[i+1])
	}
	return Datum{Tokens: ids[:len(targets)], Inputs: map[string]Tensor{"target_tokens": {Int: targets},
		"weights": {Float: weights}}}
}

func TestForeignTokenLogprobsAreSums(t *testing.T) {
	native, foreignAdapter := equalAdapters()
	ids := encode(conversation)
	weights := make([]float32, len(ids)-1)
	var spread []float32
	for i := range weights {
		weights[i] = float32(i%4) - 1.5
		for range (foreign{}).Spell(ids[i+1]) {
			spread = append(spread, weights[i])
		}
	}
	first := len(foreign{}.Spell(ids[0]))
	bytes := spell(ids)
	plain := shifted(bytes[first-1:], spread)
	// The first token has several bytes. Only its last byte predicts the learnt target.
	plain = Datum{Tokens: bytes[:len(bytes)-1], Inputs: map[string]Tensor{
		"target_tokens": {Int: append(wide(bytes[1:first]), plain.Inputs["target_tokens"].Int...)},
		"weights":       {Float: append(make([]float32, first-1), spread...)},
	}}
	want := mustRun(t, native, []Datum{plain}, Loss{Name: "cross_entropy"})
	got := mustRun(t, foreignAdapter, []Datum{shifted(ids, weights)}, Loss{Name: "cross_entropy"})
	var sums []float32
	at := first - 1
	for _, id := range ids[1:] {
		sum := 0.0
		for range (foreign{}).Spell(id) {
			sum += float64(want.Logprobs[0][at])
			at++
		}
		sums = append(sums, float32(sum))
	}
	if diff := cmp.Diff([][]float32{sums}, got.Logprobs, cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		t.Errorf("log-probabilities (-sums of bytes +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Metrics, got.Metrics, cmpopts.EquateApprox(0, 1e-4)); diff != "" {
		t.Errorf("metrics (-bytes +tokens):\n%s", diff)
	}
	if !cmp.Equal(native.gradient, foreignAdapter.gradient) {
		t.Errorf("the gradient differs from the gradient of the bytes (-want +got):\n%.300s",
			cmp.Diff(native.gradient, foreignAdapter.gradient))
	}
}

func wide(ids []int32) []int64 {
	out := make([]int64, len(ids))
	for i, id := range ids {
		out[i] = int64(id)
	}
	return out
}

// TestForeignTargetsBesideInput compares each target with a datum in which the target follows the input.
func TestForeignTargetsBesideInput(t *testing.T) {
	_, foreignAdapter := equalAdapters()
	ids := encode(conversation)
	n, k := len(ids)-1, len(words)+1
	targets := Tensor{Shape: []int{n, k}}
	for i := range n {
		targets.Int = append(targets.Int, int64(ids[i+1]))
		for word := range words {
			targets.Int = append(targets.Int, int64(2000+(word+i)%len(words)))
		}
	}
	batch := []Datum{{Tokens: ids[:n], Inputs: map[string]Tensor{"target_tokens": targets}}}
	together := mustRun(t, foreignAdapter, batch, Loss{Name: "cross_entropy"})
	gradient := append([]float32{}, foreignAdapter.gradient...)
	clear(foreignAdapter.gradient)
	loss := 0.0
	for i := range n {
		for j := range k {
			target := int32(targets.Int[i*k+j])
			weights := make([]float32, i+1)
			weights[i] = 1
			alone := mustRun(t, foreignAdapter, []Datum{shifted(append(append([]int32{}, ids[:i+1]...), target), weights)},
				Loss{Name: "cross_entropy"})
			if want, got := alone.Logprobs[0][i], together.Logprobs[0][i*k+j]; want != got {
				t.Errorf("position %d, target %d: log-probability %v, alone %v", i, target, got, want)
			}
			loss += alone.Metrics["loss:sum"]
		}
	}
	if got := together.Metrics["loss:sum"]; math.Abs(got-loss) > 1e-6*math.Abs(loss) {
		t.Errorf("the loss is %v, the sum of those alone %v", got, loss)
	}
	if diff := distance(gradient, foreignAdapter.gradient); diff > 1e-4 {
		t.Errorf("the gradient is %v of its length from the sum of those alone", diff)
	}
}

func distance(a, b []float32) float64 {
	apart := make([]float32, len(a))
	for i := range a {
		apart[i] = a[i] - b[i]
	}
	return l2(apart) / l2(b)
}

// TestLossesOfForeignTokens compares the gradient of each loss with the gradient of cross_entropy, weighted by the
// slope that the definition of the loss has at the summed log-probability.
func TestLossesOfForeignTokens(t *testing.T) {
	for name, slope := range map[string]func(logprob, sampled, advantage float64) float64{
		"importance_sampling": func(l, s, a float64) float64 { return -math.Exp(l-s) * a },
		"ppo":                 func(l, s, a float64) float64 { return -math.Exp(l-s) * a },
		"cispo":               func(l, s, a float64) float64 { return -math.Exp(l-s) * a },
		"dro":                 func(l, s, a float64) float64 { return -(a - 0.05*(l-s)) },
	} {
		t.Run(name, func(t *testing.T) {
			_, foreignAdapter := equalAdapters()
			ids := encode(conversation)
			n := len(ids) - 1
			forward := mustRun(t, foreignAdapter, []Datum{shifted(ids, make([]float32, n))}, Loss{Name: "cross_entropy"})
			clear(foreignAdapter.gradient)
			d := shifted(ids, nil)
			sampled, advantages, weights := make([]float32, n), make([]float32, n), make([]float32, n)
			for i, l := range forward.Logprobs[0] {
				sampled[i], advantages[i] = l+0.1*float32(i%3-1), float32(i%5)-2
				weights[i] = float32(-slope(float64(l), float64(sampled[i]), float64(advantages[i])))
			}
			d.Inputs = map[string]Tensor{"target_tokens": d.Inputs["target_tokens"], "logprobs": {Float: sampled},
				"advantages": {Float: advantages}}
			mustRun(t, foreignAdapter, []Datum{d}, Loss{Name: name})
			got := append([]float32{}, foreignAdapter.gradient...)
			clear(foreignAdapter.gradient)
			mustRun(t, foreignAdapter, []Datum{shifted(ids, weights)}, Loss{Name: "cross_entropy"})
			if diff := distance(got, foreignAdapter.gradient); diff > 1e-5 {
				t.Errorf("the gradient is %v of its length from the definition's", diff)
			}
		})
	}
}

func TestForeignSamplesAreSameText(t *testing.T) {
	native, foreignAdapter := equalAdapters()
	prompt := encode("User: What is 12 + 2?\n\nAssistant:")
	var here, there []SampleRequest
	for i := range 40 {
		r := SampleRequest{Prompt: spell(prompt), MaxTokens: 12, Temperature: 1, TopP: 1, Seed: 9, Index: i,
			StopStrings: []string{" 3"}}
		here = append(here, r)
		r.Prompt = prompt
		there = append(there, r)
	}
	want, err := native.Snapshot().Sample(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	got, err := foreignAdapter.Snapshot().Sample(t.Context(), there)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		for j, token := range want[i].Tokens {
			want[i].Tokens[j], _ = foreign{}.Token(token)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-bytes +tokens):\n%s", diff)
	}
	all, err := foreignAdapter.Snapshot().PromptLogprobs(t.Context(), append(prompt, got[0].Tokens...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got[0].Logprobs, all[len(prompt):], cmpopts.EquateApprox(0, 1e-4)); diff != "" {
		t.Errorf("log-probabilities (-sampled +as a prompt):\n%s", diff)
	}
}

func TestTokensWithoutIDAreNeverDrawn(t *testing.T) {
	choose := chooser{silent: testBase().WithVocabulary(foreign{}).silent}
	if diff := cmp.Diff([]int32{TokenBOS, TokenPad, TokenReserved}, choose.silent); diff != "" {
		t.Fatalf("silent tokens (-want +got):\n%s", diff)
	}
	for _, r := range []SampleRequest{{Temperature: 1, TopP: 1}, {Temperature: 0, TopP: 1},
		{Temperature: 1, TopP: 0.9, TopK: 2}} {
		for i := range 20 {
			logits := slices.Repeat([]float32{-200}, Vocab)
			logits[TokenBOS], logits[TokenPad], logits['x'] = 50, 50, 40
			token, logprob := choose.token(logits, r, float64(i)/20)
			if token != 'x' || math.Abs(logprob-(-10-math.Ln2)) > 1e-3 {
				t.Fatalf("drew %d with %v", token, logprob)
			}
		}
	}
}

func TestForcedTokens(t *testing.T) {
	_, foreignAdapter := equalAdapters()
	w := foreignAdapter.Snapshot()
	prompt := encode("User: What is 12 + 2?\n\nAssistant:")
	cases := map[string]struct {
		forced  []int32
		change  func(*SampleRequest)
		want    []int32 // the beginning of the sample
		stopped bool
		length  int // of the sample; 0 for any length above want's
	}{
		"an end ends it":              {forced: encode(" 122|"), want: encode(" 122|"), stopped: true, length: 3},
		"what follows the end is cut": {forced: encode("1|2"), want: encode("1|"), stopped: true, length: 2},
		"a limit cuts it": {forced: encode(" 12 12 12"), change: func(r *SampleRequest) { r.MaxTokens = 2 },
			want: encode(" 12 12"), length: 2},
		"a stop token ends it": {forced: encode(" 12 + 2"),
			change: func(r *SampleRequest) { r.StopTokens = []int32{2005} }, want: encode(" 12 + "), stopped: true, length: 2},
		"a stop string ends it": {forced: encode(" 12 + 2"),
			change: func(r *SampleRequest) { r.StopStrings = []string{"2 + "} }, want: encode(" 12 + "), stopped: true,
			length: 2},
		"without an end it continues": {forced: encode(" 12"), want: encode(" 12")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := SampleRequest{Prompt: prompt, MaxTokens: 10, Temperature: 1, TopP: 1, Seed: 4, Forced: tc.forced}
			if tc.change != nil {
				tc.change(&r)
			}
			free := r
			free.Forced = nil
			got, err := w.Sample(t.Context(), []SampleRequest{r, free})
			if err != nil {
				t.Fatal(err)
			}
			sample := got[0]
			n := len(tc.want)
			if len(sample.Tokens) < n || !cmp.Equal(tc.want, sample.Tokens[:n]) ||
				(tc.length > 0 && len(sample.Tokens) != tc.length) {
				t.Fatalf("the sample is %v, want it to begin with %v", sample.Tokens, tc.want)
			}
			if tc.length > 0 && sample.Stopped != tc.stopped {
				t.Errorf("stopped is %v", sample.Stopped)
			}
			all, err := w.PromptLogprobs(t.Context(), append(append([]int32{}, prompt...), sample.Tokens...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(all[len(prompt):], sample.Logprobs, cmpopts.EquateApprox(0, 1e-4)); diff != "" {
				t.Errorf("log-probabilities (-as a prompt +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownIDs(t *testing.T) {
	_, foreignAdapter := equalAdapters()
	w := foreignAdapter.Snapshot()
	good := shifted(encode(conversation), nil)
	cases := map[string]func() error{
		"in a prompt": func() error {
			return w.base.Validate(SampleRequest{Prompt: []int32{999}, MaxTokens: 1, TopP: 1})
		},
		"forced": func() error {
			return w.base.Validate(SampleRequest{Prompt: []int32{1001}, MaxTokens: 1, TopP: 1, Forced: []int32{7}})
		},
		"in an input": func() error {
			_, err := foreignAdapter.Forward(t.Context(),
				[]Datum{{Tokens: []int32{-1}, Inputs: map[string]Tensor{"target_tokens": {Int: []int64{1001}}}}},
				Loss{Name: "cross_entropy"})
			return err
		},
		"as a target": func() error {
			good.Inputs["target_tokens"].Int[3] = 999
			_, err := foreignAdapter.Forward(t.Context(), []Datum{good}, Loss{Name: "cross_entropy"})
			return err
		},
		"as a target beyond 32 bits": func() error {
			good.Inputs["target_tokens"].Int[3] = 1 << 40
			_, err := foreignAdapter.Forward(t.Context(), []Datum{good}, Loss{Name: "cross_entropy"})
			return err
		},
	}
	for name, run := range cases {
		var user *UserError
		if err := run(); !errors.As(err, &user) {
			t.Errorf("an unknown id, %s: %v", name, err)
		}
	}
}

func TestForeignTopK(t *testing.T) {
	w := BaseWeights(testBase().WithVocabulary(foreign{}))
	prompt := encode(conversation)
	most := Vocab - 3
	ids, logprobs, err := w.TopKPromptLogprobs(t.Context(), prompt, most)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(prompt); i++ {
		total := 0.0
		for j, id := range ids[i] {
			total += math.Exp(float64(logprobs[i][j]))
			if len(foreign{}.Spell(id)) != 1 {
				t.Fatalf("position %d: %d is not an id that is sampled", i, id)
			}
		}
		if len(ids[i]) != most || total > 1.00001 || total < 0.99 {
			t.Errorf("position %d: %d ids with %v of the probability", i, len(ids[i]), total)
		}
	}
	if _, _, err := w.TopKPromptLogprobs(t.Context(), prompt, most+1); err == nil {
		t.Error("more ids were given than can be sampled")
	}
	if got := string(w.base.Text(prompt)); got != strings.TrimSuffix(conversation, "|") {
		t.Errorf("the text of the prompt is %q", got)
	}
}
