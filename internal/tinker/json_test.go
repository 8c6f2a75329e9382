// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// exchange is a call that the official SDK made, as test/conformance/bodies/record.py recorded it.
type exchange struct {
	Method, Path string
	Body         json.RawMessage
	Status       int
	Answer       json.RawMessage
}

// recorded returns the messages between SDK 0.24.1 and SkyRL 0.3.0.
func recorded(t *testing.T) []exchange {
	t.Helper()
	data, err := os.ReadFile("testdata/sdk-0.24.1-skyrl-0.3.0.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Exchanges []exchange }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.Exchanges
}

// bodies returns the bodies that have a key, of the successful calls of a path.
func bodies(t *testing.T, path, key string) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	for _, e := range recorded(t) {
		if e.Path == path && e.Status == 200 && strings.Contains(string(e.Body), `"`+key+`"`) {
			all = append(all, e.Body)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no call of %s is recorded", path)
	}
	return all
}

// asFloat32 returns the value of JSON with its numbers rounded to float32: the SDK writes the numbers of tensors with
// the precision of float64.
func asFloat32(t *testing.T, data []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	var round func(any) any
	round = func(v any) any {
		switch v := v.(type) {
		case float64:
			return float64(float32(v))
		case []any:
			for i := range v {
				v[i] = round(v[i])
			}
		case map[string]any:
			for key := range v {
				v[key] = round(v[key])
			}
		}
		return v
	}
	return round(value)
}

// TestJSONRequestsOfTheSDK encodes the passes that SDK 0.24.1 sent.
func TestJSONRequestsOfTheSDK(t *testing.T) {
	plain := []Datum{{ModelInput: Text([]int32{1, 2, 3, 4}), LossFnInputs: map[string]Tensor{
		InputTargetTokens: Ints([]int64{2, 3, 4, 5}), InputWeights: Floats([]float32{0, 1, 0.1, 1}),
	}}}
	var policy []Datum
	for _, n := range []int{4, 2} {
		policy = append(policy, Datum{ModelInput: Text([]int32{1, 2, 3, 4}[:n]), LossFnInputs: map[string]Tensor{
			InputTargetTokens: Ints([]int64{2, 3, 4, 5}[:n]), InputLogprobs: Floats([]float32{-5.5, -5.25, -5.1, -5}[:n]),
			InputAdvantages: Floats([]float32{0, 1, -0.5, 1}[:n]),
		}})
	}
	cases := map[string]struct {
		want  json.RawMessage
		value ForwardBackwardRequest
	}{
		"forward": {bodies(t, "/api/v1/forward", "forward_input")[0], ForwardBackwardRequest{
			ModelID: "model_00000001", SeqID: 1, ForwardOnly: true, Loss: Loss{Name: LossCrossEntropy}, Data: plain,
		}},
		"forward_backward": {bodies(t, "/api/v1/forward_backward", "forward_backward_input")[0], ForwardBackwardRequest{
			ModelID: "model_00000001", SeqID: 2, Data: policy,
			Loss: Loss{Name: LossPPO, Config: map[string]float64{"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			body, err := EncodeForwardBackwardJSON(tc.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(asFloat32(t, tc.want), asFloat32(t, body)); diff != "" {
				t.Errorf("body (-SDK +own):\n%s", diff)
			}
		})
	}
}

// TestJSONRequestsKeepValues checks that a server decodes the same float32 values that were encoded.
func TestJSONRequestsKeepValues(t *testing.T) {
	values := []float32{0.1, -1e-30, 3.4e38, 1.0 / 3, math.SmallestNonzeroFloat32}
	body, err := EncodeForwardBackwardJSON(
		ForwardBackwardRequest{Data: []Datum{{LossFnInputs: map[string]Tensor{InputWeights: Floats(values)}}}})
	if err != nil {
		t.Fatal(err)
	}
	var back ForwardBackwardJSON
	if err := json.Unmarshal(body, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(values, back.Backward.Data[0].LossFnInputs[InputWeights].Float); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if _, err := EncodeForwardBackwardJSON(ForwardBackwardRequest{Data: []Datum{{LossFnInputs: map[string]Tensor{
		InputWeights: Floats([]float32{float32(math.NaN())}),
	}}}}); err == nil {
		t.Error("NaN, which JSON does not have, is encoded")
	}
}

// TestJSONResultsOfSkyRL decodes the results that SkyRL returned.
func TestJSONResultsOfSkyRL(t *testing.T) {
	var outputs []ForwardBackwardResult
	var samples []SampleResult
	for _, e := range recorded(t) {
		switch {
		case e.Status != 200:
		case strings.Contains(string(e.Answer), `"loss_fn_outputs"`):
			result, err := DecodeOutputJSON(e.Answer)
			if err != nil {
				t.Fatal(err)
			}
			outputs = append(outputs, result)
		case strings.Contains(string(e.Answer), `"sequences"`):
			result, err := DecodeSampleJSON(e.Answer)
			if err != nil {
				t.Fatal(err)
			}
			samples = append(samples, result)
		}
	}
	if len(outputs) != 3 || len(samples) != 2 {
		t.Fatalf("%d passes and %d samples are recorded, want 3 and 2", len(outputs), len(samples))
	}
	want := map[string]Tensor{
		"logprobs":         Floats([]float32{-7.668436, -6.270363, -7.201278, -6.3533425}),
		"elementwise_loss": Floats([]float32{0, 6.270363, 0.72012776, 6.3533425}),
	}
	if diff := cmp.Diff(want, outputs[0].LossFnOutputs[0], cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if got := len(outputs[1].LossFnOutputs); got != 2 {
		t.Errorf("outputs of %d datums, want 2", got)
	}
	wantSample := SampledSequence{StopReason: StopReasonLength, Tokens: []int32{122, 81, 256},
		Logprobs: []float32{-4.100708, -5.234221, -6.7241325}}
	if diff := cmp.Diff(wantSample, samples[0].Sequences[0], cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		t.Errorf("sample (-want +got):\n%s", diff)
	}
	if got := len(samples[1].PromptLogprobs); got != 3 {
		t.Errorf("%d log-probabilities of a prompt of 4 tokens, SkyRL answers 3", got)
	}
}

// TestOptimizerMetricsThatAreNotFinite decodes the metrics of a step whose gradient is not finite.
func TestOptimizerMetricsThatAreNotFinite(t *testing.T) {
	result := decodeText[OptimStepResult](t, `{"metrics":{"unclipped_grad_l2:mean":null,"lr:mean":0.5}}`)
	want := OptimStepResult{Metrics: map[string]float64{"unclipped_grad_l2:mean": math.NaN(), "lr:mean": 0.5}}
	if diff := cmp.Diff(want, result, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if body, err := json.Marshal(want); err != nil ||
		string(body) != `{"metrics":{"lr:mean":0.5,"unclipped_grad_l2:mean":null}}` {
		t.Errorf("encoded as %s, %v", body, err)
	}
}

func TestJSONResultsWithoutNumbers(t *testing.T) {
	output, err := DecodeOutputJSON(
		[]byte(`{"loss_fn_outputs":[{"logprobs":{"data":[null,-1]}}],"metrics":{"loss:sum":null}}`))
	logprobs := output.LossFnOutputs[0]["logprobs"]
	if err != nil || !math.IsNaN(float64(logprobs.Float[0])) || logprobs.Float[1] != -1 ||
		!math.IsNaN(output.Metrics["loss:sum"]) {
		t.Errorf("output is %+v, error %v", output, err)
	}
	sample, err := DecodeSampleJSON(
		[]byte(`{"sequences":[{"stop_reason":"stop","tokens":[1],"logprobs":null}],"prompt_logprobs":[null,-2],
		"topk_prompt_logprobs":[null,[[7,-0.5],[9,-1.5]]]}`))
	want := SampleResult{
		Sequences:          []SampledSequence{{StopReason: StopReasonStop, Tokens: []int32{1}}},
		PromptLogprobs:     []float32{float32(math.NaN()), -2},
		TopkPromptLogprobs: [][]TokenLogprob{nil, {{7, -0.5}, {9, -1.5}}},
	}
	if diff := cmp.Diff(want, sample, cmpopts.EquateNaNs()); err != nil || diff != "" {
		t.Errorf("sample (-want +got), error %v:\n%s", err, diff)
	}
	for _, body := range []string{
		`{"sequences":[{"stop_reason":"weird","tokens":[1]}]}`,
		`{"sequences":[{"stop_reason":"stop","tokens":[1],"logprobs":[-1,-2]}]}`, `[]`, `{"sequences":1}`, `{}`,
		`{"sequences":[{"stop_reason":"stop","tokens":[1]}],"topk_prompt_logprobs":[[[null,-0.5]]]}`,
	} {
		if _, err := DecodeSampleJSON([]byte(body)); err == nil {
			t.Errorf("%s is decoded", body)
		}
	}
	for _, body := range []string{`[]`, `{"metrics":{}}`, `{"loss_fn_outputs":[{"l":{"data":[1],"shape":[2]}}]}`,
		`{"loss_fn_outputs":[{"l":{"data":"x"}}]}`} {
		if _, err := DecodeOutputJSON([]byte(body)); err == nil {
			t.Errorf("%s is decoded", body)
		}
	}
}

// TestListingsOfSkyRL decodes listings whose times have no zone.
func TestListingsOfSkyRL(t *testing.T) {
	for _, e := range recorded(t) {
		switch {
		case e.Path == "/api/v1/training_runs":
			var list TrainingRunList
			if err := json.Unmarshal(e.Answer, &list); err != nil || len(list.TrainingRuns) == 0 ||
				list.TrainingRuns[0].LastRequestTime.Year() != 2026 {
				t.Errorf("runs are %+v, error %v", list, err)
			}
		case strings.HasSuffix(e.Path, "/checkpoints") && e.Status == 200:
			var list CheckpointList
			if err := json.Unmarshal(e.Answer, &list); err != nil || len(list.Checkpoints) == 0 ||
				list.Checkpoints[0].Time.Year() != 2026 {
				t.Errorf("checkpoints are %+v, error %v", list, err)
			}
		}
	}
	var c Checkpoint
	if err := json.Unmarshal([]byte(`{"time":"2026-01-01T01:00:00+01:00","expires_at":null}`), &c); err != nil ||
		c.Time.Hour() != 1 || c.ExpiresAt != nil {
		t.Errorf("checkpoint is %+v, error %v", c, err)
	}
	if err := json.Unmarshal([]byte(`{"time":"yesterday"}`), &c); err == nil {
		t.Error("yesterday is decoded as a time")
	}
}
