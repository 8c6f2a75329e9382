// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// request returns a request that the tests change.
func request(q addition) SampleRequest {
	return SampleRequest{Prompt: q.prompt(), MaxTokens: 16, Temperature: 1, TopP: 1, Seed: 3}
}

func mustSample(t *testing.T, w *Weights, reqs ...SampleRequest) []Sample {
	t.Helper()
	samples, err := w.Sample(t.Context(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

// TestSampleDoesNotDependOnBatch compares the tokens and the bits of log-probabilities of requests that are sampled
// alone and in a batch, in two orders and with several numbers of CPUs.
func TestSampleDoesNotDependOnBatch(t *testing.T) {
	w := trained(testConfig).Snapshot()
	var reqs []SampleRequest
	for i := range independenceBatch {
		r := request(addition{i / 8 % 100, i / 8 * 17 % 100})
		r.Index, r.Seed = i%8, uint64(i/8)
		switch i % 5 {
		case 1:
			r.MaxTokens = 1 + i%40
		case 2:
			r.Temperature, r.TopK = 0.7, 5
		case 3:
			r.Prompt = bytesOf("Once upon a time" + textOf(r.Prompt)[:i%30])
		case 4:
			r.TopP, r.StopStrings = 0.9, []string{"1"}
		}
		reqs = append(reqs, r)
	}
	alone := make([]Sample, len(reqs))
	for i, r := range reqs {
		alone[i] = mustSample(t, w, r)[0]
	}
	if diff := cmp.Diff(alone, mustSample(t, w, reqs...)); diff != "" {
		t.Errorf("in one batch (-alone +together):\n%s", diff)
	}
	slices.Reverse(reqs)
	slices.Reverse(alone)
	for _, cpus := range []int{1, 7} {
		before := runtime.GOMAXPROCS(cpus)
		got := mustSample(t, w, reqs...)
		runtime.GOMAXPROCS(before)
		if diff := cmp.Diff(alone, got); diff != "" {
			t.Errorf("reversed, with %d CPUs (-alone +together):\n%s", cpus, diff)
		}
	}
}

func TestSampleSeedAndIndex(t *testing.T) {
	w := BaseWeights(testBase())
	q := addition{37, 46}
	var samples []Sample
	for seed := range uint64(4) {
		for index := range 4 {
			r := request(q)
			r.Seed, r.Index = seed, index
			samples = append(samples, mustSample(t, w, r, r)...)
		}
	}
	distinct := map[string]bool{}
	for i := 0; i < len(samples); i += 2 {
		if diff := cmp.Diff(samples[i], samples[i+1]); diff != "" {
			t.Errorf("the same request twice:\n%s", diff)
		}
		distinct[textOf(samples[i].Tokens)] = true
	}
	if len(distinct) < 5 {
		t.Errorf("16 keys gave %d replies", len(distinct))
	}
}

// TestSampleFrequencies counts first tokens.
func TestSampleFrequencies(t *testing.T) {
	w := BaseWeights(testBase())
	prompt := addition{8, 7}.prompt()
	prompt = append(prompt, ' ')
	ids, logprobs, err := w.TopKPromptLogprobs(t.Context(), append(prompt, 0), 6)
	if err != nil {
		t.Fatal(err)
	}
	const n = 4000
	var reqs []SampleRequest
	for i := range n {
		reqs = append(reqs, SampleRequest{Prompt: prompt, MaxTokens: 1, Temperature: 1, TopP: 1, Seed: 12, Index: i})
	}
	counts := map[int32]int{}
	for _, s := range mustSample(t, w, reqs...) {
		counts[s.Tokens[0]]++
	}
	last := len(prompt)
	for j, id := range ids[last] {
		p := math.Exp(float64(logprobs[last][j]))
		if got, margin := float64(counts[id])/n, 4*math.Sqrt(p*(1-p)/n); math.Abs(got-p) > margin {
			t.Errorf("token %d was drawn with frequency %v, its probability is %v", id, got, p)
		}
	}
}

func TestSampleLogprobs(t *testing.T) {
	w := trained(testConfig).Snapshot()
	r := request(addition{64, 18})
	r.Temperature, r.TopK = 1.5, 8 // the log-probabilities ignore both
	for _, s := range mustSample(t, w, r) {
		all, err := w.PromptLogprobs(t.Context(), append(slices.Clone(r.Prompt), s.Tokens...))
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range s.Logprobs {
			if want := all[len(r.Prompt)+i]; math.Abs(float64(got-want)) > 1e-4 {
				t.Errorf("token %d: %v, want %v", i, got, want)
			}
		}
	}
}

func TestSampleTopKAndTopP(t *testing.T) {
	w := BaseWeights(testBase())
	q := addition{37, 46}
	greedy := request(q)
	greedy.Temperature = 0
	want := mustSample(t, w, greedy)[0]
	for name, change := range map[string]func(*SampleRequest){
		"top-k of 1":               func(r *SampleRequest) { r.TopK = 1 },
		"top-p of next to nothing": func(r *SampleRequest) { r.TopP = 1e-9 },
		"temperature near 0":       func(r *SampleRequest) { r.Temperature = 1e-6 },
	} {
		r := request(q)
		change(&r)
		for r.Index = range 5 {
			if diff := cmp.Diff(want, mustSample(t, w, r)[0]); diff != "" {
				t.Errorf("%s is not greedy:\n%s", name, diff)
			}
		}
	}
}

func TestChooserTopKAndTopP(t *testing.T) {
	logits := make([]float32, Vocab)
	for i := range logits {
		logits[i] = -200
	}
	logits[10], logits[20], logits[30], logits[40] = float32(math.Log(.4)), float32(math.Log(.3)), float32(math.Log(.2)),
		float32(math.Log(.1))
	for name, test := range map[string]struct {
		r    SampleRequest
		want []int32
	}{
		"no limit":                          {SampleRequest{TopP: 1}, []int32{10, 20, 30, 40}},
		"top-k":                             {SampleRequest{TopP: 1, TopK: 3}, []int32{10, 20, 30}},
		"top-p within a token":              {SampleRequest{TopP: .5}, []int32{10, 20}},
		"top-p of what top-k left":          {SampleRequest{TopP: .55, TopK: 2}, []int32{10}},
		"top-k above the vocabulary":        {SampleRequest{TopP: 1, TopK: 1000}, []int32{10, 20, 30, 40}},
		"top-k of -1, which means no limit": {SampleRequest{TopP: 1, TopK: -1}, []int32{10, 20, 30, 40}},
	} {
		t.Run(name, func(t *testing.T) {
			test.r.Temperature = 1
			var c chooser
			var got []int32
			for u := 0.0; u < 1; u += 0.001 {
				if token, _ := c.token(logits, test.r, u); !slices.Contains(got, token) {
					got = append(got, token)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSampleStops(t *testing.T) {
	w := BaseWeights(testBase())
	q := addition{37, 46}
	free := mustSample(t, w, request(q))[0]
	text := textOf(free.Tokens)
	if !free.Stopped || free.Tokens[len(free.Tokens)-1] != TokenEnd || len(text) < 3 {
		t.Fatalf("the plain reply is %q, %v", text, free)
	}
	long := request(q)
	long.Prompt = append(make([]int32, Window-len(q.prompt())-2), q.prompt()...)
	for name, test := range map[string]struct {
		change func(*SampleRequest)
		want   string
		stop   bool
	}{
		"at a stop token": {func(r *SampleRequest) { r.StopTokens = []int32{int32(text[1])} }, text[:2],
			true},
		"at a stop string": {func(r *SampleRequest) { r.StopStrings = []string{"no", text[:2]} }, text[:2],
			true},
		"at a stop string later on": {func(r *SampleRequest) { r.StopStrings = []string{text[1:3]} }, text[:3], true},
		"not at one across the prompt": {func(r *SampleRequest) { r.StopStrings = []string{":" + text[:1]} }, text,
			true},
		"at the limit, which is not a stop": {func(r *SampleRequest) { r.MaxTokens = 2 }, text[:2], false},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(q)
			test.change(&r)
			s := mustSample(t, w, r)[0]
			if got := textOf(s.Tokens); got != test.want || s.Stopped != test.stop {
				t.Errorf("reply is %q, stopped %v; want %q, %v", got, s.Stopped, test.want, test.stop)
			}
			if len(s.Logprobs) != len(s.Tokens) {
				t.Errorf("%d log-probabilities of %d tokens", len(s.Logprobs), len(s.Tokens))
			}
		})
	}
	if s := mustSample(t, w, long)[0]; len(s.Tokens) > 2 {
		t.Errorf("%d tokens were added to a context with room for 2", len(s.Tokens))
	}
}

// TestSampleEndsWhenCanceled cancels one of two completions that are decoded together.
func TestSampleEndsWhenCanceled(t *testing.T) {
	w := BaseWeights(Base())
	canceled := make(chan struct{})
	close(canceled)
	other, ended := request(addition{1, 2}), request(addition{1, 2})
	other.MaxTokens, ended.MaxTokens = 64, 64
	other.StopTokens, ended.StopTokens = nil, nil
	alone := mustSample(t, w, other)[0]
	ended.Canceled = canceled
	got := mustSample(t, w, ended, other)
	if n := len(got[0].Tokens); n > 1 || n >= len(alone.Tokens) {
		t.Errorf("the canceled completion has %d tokens, the other one %d; want it to end at once", n, len(alone.Tokens))
	}
	if diff := cmp.Diff(alone, got[1]); diff != "" {
		t.Errorf("the other completion (-alone +beside):\n%s", diff)
	}
}

func TestSampleInvalidRequests(t *testing.T) {
	w := BaseWeights(testBase())
	for name, change := range map[string]func(*SampleRequest){
		"empty prompt":         func(r *SampleRequest) { r.Prompt = nil },
		"token out of range":   func(r *SampleRequest) { r.Prompt = []int32{Vocab} },
		"no room":              func(r *SampleRequest) { r.Prompt = make([]int32, Window) },
		"no tokens":            func(r *SampleRequest) { r.MaxTokens = 0 },
		"negative temperature": func(r *SampleRequest) { r.Temperature = -1 },
		"NaN as temperature":   func(r *SampleRequest) { r.Temperature = math.NaN() },
		"top-p of 0":           func(r *SampleRequest) { r.TopP = 0 },
		"top-p above 1":        func(r *SampleRequest) { r.TopP = 1.1 },
		"top-k below -1":       func(r *SampleRequest) { r.TopK = -2 },
		"empty stop string":    func(r *SampleRequest) { r.StopStrings = []string{""} },
	} {
		t.Run(name, func(t *testing.T) {
			r := request(addition{1, 2})
			change(&r)
			_, err := w.Sample(t.Context(), []SampleRequest{r})
			var user *UserError
			if !errors.As(err, &user) {
				t.Errorf("error is %v, want one of the user", err)
			}
		})
	}
}

func TestSampleFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := BaseWeights(testBase()).Sample(ctx, []SampleRequest{request(addition{1, 2})}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("after the context was done: %v", err)
	}
	a := trained(testConfig)
	for i := range a.params {
		a.params[i] = float32(math.NaN())
	}
	a.merge()
	if _, err := a.Snapshot().Sample(t.Context(), []SampleRequest{request(addition{1, 2})}); !errors.Is(err,
		errNotFinite) {
		t.Errorf("from weights that are NaN: %v", err)
	}
}

func TestUniform(t *testing.T) {
	seen := map[float64]bool{}
	sum := 0.0
	const n = 30
	for seed := range uint64(n) {
		for index := range n {
			for position := range n {
				u := uniform(seed, index, position)
				if u < 0 || u >= 1 || seen[u] {
					t.Fatalf("%v for %d, %d, %d", u, seed, index, position)
				}
				seen[u] = true
				sum += u
			}
		}
	}
	if mean := sum / float64(len(seen)); math.Abs(mean-0.5) > 0.01 {
		t.Errorf("the mean is %v", mean)
	}
	if got := uniform(1, 2, 3); got != 0.08866405064465621 {
		t.Errorf("uniform(1, 2, 3) is %v: samples of earlier versions cannot be drawn again", got)
	}
}

func TestJobLimits(t *testing.T) {
	completions := func(n, tokens int) []*completion {
		var all []*completion
		for range n {
			all = append(all, newCompletion(testBase(), SampleRequest{Prompt: []int32{1}, MaxTokens: tokens - 1}, []int32{1},
				new(Sample)))
		}
		return all
	}
	cases := map[string]struct {
		all  []*completion
		want []int
	}{
		"none":                       {nil, nil},
		"few":                        {completions(3, 10), []int{3}},
		"as many as go together":     {completions(sampleRows, 10), []int{sampleRows}},
		"one more":                   {completions(sampleRows+1, 10), []int{sampleRows, 1}},
		"long ones, fewer together":  {completions(10, Window), []int{8, 2}},
		"a long one and short ones":  {append(completions(8, Window), completions(2, 10)...), []int{8, 2}},
		"short ones before long one": {append(completions(2, 10), completions(8, Window)...), []int{9, 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, job := range jobsOf(tc.all) {
				got = append(got, len(job))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rows of each job (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoise checks that the noise has the distribution that was asked for, and is a function of its key, the index
// and the position.
func TestNoise(t *testing.T) {
	const sigma, positions = 0.2, 200
	r := SampleRequest{Noise: sigma, NoiseKey: 5}
	draw := func(r SampleRequest, position int) []float32 {
		logits := make([]float32, Vocab)
		addNoise(logits, r, position)
		return logits
	}
	sum, squares := 0.0, 0.0
	for position := range positions {
		for _, v := range draw(r, position) {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
	}
	n := float64(positions * Vocab)
	if mean, deviation := sum/n, math.Sqrt(squares/n); math.Abs(mean) > 0.01*sigma*5 ||
		math.Abs(deviation-sigma) > 0.02*sigma {
		t.Errorf("mean %g and standard deviation %g, want 0 and %g", mean, deviation, sigma)
	}
	want := draw(r, 7)
	if diff := cmp.Diff(want, draw(r, 7)); diff != "" {
		t.Errorf("drawn again (-want +got):\n%s", diff)
	}
	for name, other := range map[string][]float32{
		"another position": draw(r, 8),
		"another index":    draw(SampleRequest{Noise: sigma, NoiseKey: 5, Index: 1}, 7),
		"another key":      draw(SampleRequest{Noise: sigma, NoiseKey: 6}, 7),
	} {
		if slices.Equal(want, other) {
			t.Errorf("%s has the same noise", name)
		}
	}
}
