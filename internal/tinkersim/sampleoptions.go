// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// The fields of a request for samples, and of its sampling_params, that the simulator reads.
var (
	sampleFields = []string{
		"num_samples", "prompt", "sampling_params", "sampling_session_id", "seq_id", "base_model", "model_path",
		"prompt_logprobs", "prompt_logprobs_last_n", "topk_prompt_logprobs", "topk_sample_logprobs",
		"target_prompt_logprobs", "type",
	}
	samplingFields = []string{"max_tokens", "seed", "stop", "temperature", "top_k", "top_p"}
)

// unset are the values that ask for nothing.
var unset = []string{"null", "0", "false", "[]"}

// knownOptionsOnly makes the endpoint refuse requests with options that the simulator lacks, such as options of newer
// versions of the API. Otherwise it would silently ignore them.
func (e endpoint) knownOptionsOnly() endpoint {
	read := e.read
	e.read = func(r *request) (fault.Call, action, error) {
		var fields map[string]json.RawMessage
		if err := decode(r.body, &fields); err != nil {
			return fault.Call{}, nil, err
		}
		var params map[string]json.RawMessage
		if err := decode(fields["sampling_params"], &params); err != nil {
			return fault.Call{}, nil, err
		}
		if names := append(missing(fields, sampleFields, ""),
			missing(params, samplingFields, "sampling_params.")...); len(names) > 0 {
			return fault.Call{}, nil, badRequest("%s is not supported", names[0])
		}
		return read(r)
	}
	return e
}

// missing returns the sorted names of the fields that ask for something and are not known.
func missing(fields map[string]json.RawMessage, known []string, prefix string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) && !slices.Contains(unset, string(fields[name])) {
			names = append(names, prefix+name)
		}
	}
	return names
}
