// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainee

import (
	"context"
	"math"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

const version = "tinker://m/sampler_weights/v"

// sampler answers requests to a version and to the base model. The answers depend on how often it was asked before.
type sampler struct {
	version, base func(n int) (tinker.SampleResult, error)
	asked         map[string]int
	missing       bool
}

func (s *sampler) CreateSamplingSession(_ context.Context, _ string, _ int64, path, base string) (string, error) {
	if path != "" && s.missing {
		return "", &client.Error{Category: tinker.CategoryNotFound}
	}
	return path + base, nil
}

func (s *sampler) Sample(_ context.Context, request tinker.SampleRequest) (tinker.SampleResult, error) {
	s.asked[request.SamplingSession]++
	n := s.asked[request.SamplingSession]
	if request.SamplingSession == version {
		return s.version(n)
	}
	return s.base(n)
}

func TestQuestion(t *testing.T) {
	answered := func(token int32, logprob float32) func(int) (tinker.SampleResult, error) {
		return func(int) (tinker.SampleResult, error) {
			return tinker.SampleResult{Sequences: []tinker.SampledSequence{{Tokens: []int32{token},
				Logprobs: []float32{logprob}}}}, nil
		}
	}
	refused := func(int) (tinker.SampleResult, error) {
		return tinker.SampleResult{}, &client.Error{Category: tinker.CategoryUser}
	}
	first := func(n int, failing, sound func(int) (tinker.SampleResult, error)) func(int) (tinker.SampleResult, error) {
		return func(asked int) (tinker.SampleResult, error) {
			if asked <= n {
				return failing(asked)
			}
			return sound(asked)
		}
	}
	sound, nan := answered(7, -1), answered(7, float32(math.NaN()))
	for name, tc := range map[string]struct {
		version, base func(int) (tinker.SampleResult, error)
		missing       bool
		want          Finding
	}{
		"a sound version":                         {version: sound, base: refused, want: FindingSound},
		"a version that is refused":               {version: refused, base: sound, want: FindingDiverged},
		"log-probabilities that are not finite":   {version: nan, base: sound, want: FindingDiverged},
		"an invalid token":                        {version: answered(-1, -1), base: sound, want: FindingDiverged},
		"an outage":                               {version: refused, base: refused, want: FindingUnknown},
		"an outage that begins between":           {version: refused, base: first(3, sound, refused), want: FindingUnknown},
		"refusals of the version that are over":   {version: first(4, refused, sound), base: sound, want: FindingSound},
		"a version that the endpoint cannot find": {base: sound, missing: true, want: FindingUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			q := Question{
				API: &sampler{version: tc.version, base: tc.base, missing: tc.missing, asked: map[string]int{}}, Base: "base",
				Number: func(string) int64 { return 1 }, Pause: func(context.Context, int) error { return nil },
			}
			if got, err := q.Ask(t.Context(), version); got != tc.want || (err == nil) != (tc.want == FindingSound) {
				t.Errorf("Ask = %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}
