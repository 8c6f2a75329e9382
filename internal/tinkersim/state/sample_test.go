// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// sampleRequest asks for two completions of "Q:".
func sampleRequest(sampler string, seq int64) tinker.SampleRequest {
	params := tinker.DefaultSampling()
	params.MaxTokens, params.Seed = new(4), new(int64(7))
	return tinker.SampleRequest{
		NumSamples: 2, Prompt: tinker.Text([]int32{'Q', ':'}), SamplingParams: params, SamplingSession: sampler, SeqID: &seq,
	}
}

// sampler creates a sampling session of the base model.
func (f *fixture) sampler(session string, seq int64) string {
	f.t.Helper()
	created, err := f.Samplers.Create(tinker.CreateSamplingSessionRequest{Session: session, Seq: seq,
		BaseModel: baseModel})
	if err != nil {
		f.t.Fatal(err)
	}
	return created.SamplingSession
}

// sample waits for samples.
func (f *fixture) sample(submitted tinker.FutureResponse, err error) tinker.SampleResult {
	f.t.Helper()
	result := f.await(submitted, err)
	if result.Kind != KindSample {
		f.t.Fatalf("result of kind %s: %s", result.Kind, result.Body)
	}
	decoded, err := tinker.DecodeSample(result.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return decoded
}

func TestSampleRequestValidation(t *testing.T) {
	f := newFixture(t)
	sampler := f.sampler(f.session(), 1)
	cases := map[string]struct {
		change func(*tinker.SampleRequest)
		want   string // category of the error
	}{
		"valid":                      {func(*tinker.SampleRequest) {}, ""},
		"no samples":                 {func(r *tinker.SampleRequest) { r.NumSamples = 0 }, "user"},
		"most samples":               {func(r *tinker.SampleRequest) { r.NumSamples = maxSamples }, ""},
		"too many samples":           {func(r *tinker.SampleRequest) { r.NumSamples = maxSamples + 1 }, "user"},
		"negative top-k":             {func(r *tinker.SampleRequest) { r.TopkPromptLogprobs = -1 }, "user"},
		"top-k above the vocabulary": {func(r *tinker.SampleRequest) { r.TopkPromptLogprobs = model.Vocab + 1 }, "user"},
		"an empty prompt":            {func(r *tinker.SampleRequest) { r.Prompt = tinker.Text(nil) }, "user"},
		"a token above the vocabulary": {func(r *tinker.SampleRequest) { r.Prompt = tinker.Text([]int32{model.Vocab}) },
			"user"},
		"an image": {func(r *tinker.SampleRequest) {
			r.Prompt.Chunks = append(r.Prompt.Chunks, tinker.Chunk{Type: "image"})
		}, "user"},
		"a negative temperature": {func(r *tinker.SampleRequest) { r.SamplingParams.Temperature = -1 }, "user"},
		"an unknown sampler":     {func(r *tinker.SampleRequest) { r.SamplingSession = "x" }, "not_found"},
		"a base model":           {func(r *tinker.SampleRequest) { r.SamplingSession, r.BaseModel = "", baseModel }, ""},
		"an unknown base model":  {func(r *tinker.SampleRequest) { r.SamplingSession, r.BaseModel = "", "x" }, "user"},
		"an unknown path": {func(r *tinker.SampleRequest) {
			r.SamplingSession, r.ModelPath = "",
				"tinker://x:train:0/weights/a"
		}, "not_found"},
	}
	seq := int64(0)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seq++
			request := sampleRequest(sampler, seq)
			tc.change(&request)
			submitted, err := f.Samplers.Sample(request)
			if category(err) != tc.want {
				t.Fatalf("Sample = %v, want an error of category %q", err, tc.want)
			}
			if err == nil && len(submitted.SampleSequenceIDs) != request.NumSamples {
				t.Errorf("%d sequence ids for %d samples", len(submitted.SampleSequenceIDs), request.NumSamples)
			}
		})
	}
}

func TestSampleOnce(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	sampler, other := f.sampler(session, 1), f.sampler(session, 2)
	first, err := f.Samplers.Sample(sampleRequest(sampler, 1))
	if err != nil {
		t.Fatal(err)
	}
	changed := sampleRequest(sampler, 1)
	changed.SamplingParams.Seed = new(int64(8))
	if _, err := f.Samplers.Sample(changed); category(err) != "user" {
		t.Errorf("other samples with the same number: %v, want a user error", err)
	}
	unnumbered := sampleRequest(sampler, 1)
	unnumbered.SeqID = nil
	cases := map[string]struct {
		request tinker.SampleRequest
		same    bool
	}{
		"a repetition":                        {sampleRequest(sampler, 1), true},
		"another number":                      {sampleRequest(sampler, 2), false},
		"the same number for another sampler": {sampleRequest(other, 1), false},
		"without a number":                    {unnumbered, false},
	}
	want := f.sample(first, nil)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := f.Samplers.Sample(tc.request)
			if err != nil {
				t.Fatal(err)
			}
			if same := got.RequestID == first.RequestID; same != tc.same {
				t.Errorf("the same request id: %v, want %v", same, tc.same)
			}
			if diff := cmp.Diff(want, f.sample(got, nil)); diff != "" {
				t.Errorf("samples with the same seed (-want +got):\n%s", diff)
			}
		})
	}
	one, err := f.Samplers.Sample(unnumbered)
	if err != nil {
		t.Fatal(err)
	}
	two, err := f.Samplers.Sample(unnumbered)
	if err != nil || one.RequestID == two.RequestID {
		t.Errorf("two requests without a number have the same id %s, %v", one.RequestID, err)
	}
}

func TestSampleRequestsAreForgotten(t *testing.T) {
	f := newFixture(t)
	session := f.session()
	sampler := f.sampler(session, 1)
	first, err := f.Samplers.Sample(sampleRequest(sampler, 1))
	want := f.sample(first, err)
	f.clock.advance(retention.Delivered + time.Second)
	for seq := int64(2); seq < 4; seq++ { // each removes requests whose futures expired
		submitted, err := f.Samplers.Sample(sampleRequest(sampler, seq))
		f.sample(submitted, err)
	}
	if got := len(f.Samplers.requests.keys); got != 2 || len(f.Samplers.requests.byKey) != got {
		t.Errorf("%d requests are known, %d by key, want 2", got, len(f.Samplers.requests.byKey))
	}
	again, err := f.Samplers.Sample(sampleRequest(sampler, 1))
	if err != nil || again.RequestID == first.RequestID {
		t.Fatalf("a forgotten request got %+v, %v", again, err)
	}
	if diff := cmp.Diff(want, f.sample(again, nil)); diff != "" {
		t.Errorf("drawn again (-first +again):\n%s", diff)
	}
}

func TestSeedOf(t *testing.T) {
	from := func(id string, key weightsKey) *sampler { return &sampler{id: id, source: source{weights: key}} }
	noSeed := func(seq int64) tinker.SampleRequest {
		request := sampleRequest("s", seq)
		request.SamplingParams.Seed = nil
		return request
	}
	if got := seedOf(from("s", "w"), sampleRequest("s", 1)); got != 7 {
		t.Errorf("seed %d, want the requested 7", got)
	}
	reference := seedOf(from("s", "w"), noSeed(1))
	if again := seedOf(from("s", "w"), noSeed(1)); again != reference {
		t.Errorf("seeds of a repetition: %d and %d", reference, again)
	}
	for name, got := range map[string]uint64{
		"another number":  seedOf(from("s", "w"), noSeed(2)),
		"another sampler": seedOf(from("t", "w"), noSeed(1)),
		"other weights":   seedOf(from("s", "v"), noSeed(1)),
	} {
		if got == reference {
			t.Errorf("%s has the same seed", name)
		}
	}
}

func TestSampleFaults(t *testing.T) {
	cases := map[string]struct {
		rule  fault.Rule
		fails bool
		same  bool // whether the samples equal those without a fault
	}{
		"fail":        {fault.Rule{Do: fault.Fail, Message: "bad"}, true, false},
		"fail late":   {fault.Rule{Do: fault.Fail, Stage: fault.Reply, Message: "bad"}, true, false},
		"pause":       {fault.Rule{Do: fault.Pause, Seconds: 0.001}, false, true},
		"ignore seed": {fault.Rule{Do: fault.IgnoreSeed}, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.rule.Op, tc.rule.Occurrence = OpSample, 2
			f := newFixture(t, tc.rule)
			sampler := f.sampler(f.session(), 1)
			ask := func(seq int64) (tinker.FutureResponse, error) {
				request := sampleRequest(sampler, seq)
				request.SamplingParams.MaxTokens = new(30)
				return f.Samplers.Sample(request)
			}
			first, err := ask(1)
			want := f.sample(first, err)
			affected, err := ask(2)
			if tc.fails {
				if failure := f.failure(affected, err); failure.Error != "bad" {
					t.Errorf("result %+v, want the scripted failure", failure)
				}
				return
			}
			if same := cmp.Equal(want, f.sample(affected, err)); same != tc.same {
				t.Errorf("the same samples as without the fault: %v, want %v", same, tc.same)
			}
		})
	}
}
