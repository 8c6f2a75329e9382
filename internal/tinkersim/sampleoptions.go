// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"encoding/json"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// missingSampleOptions are fields of newer versions of the API that ask for outputs that the simulator lacks.
var missingSampleOptions = []string{"topk_sample_logprobs", "target_prompt_logprobs", "prompt_alt_tokens_k", "prompt_alt_tokens"}

// unset are the values that ask for nothing.
var unset = []string{"null", "0", "false", "[]"}

// knownOptionsOnly returns the endpoint such that it refuses requests for outputs that the simulator lacks:
// without the refusal, the outputs would be absent from the result without a word.
func (e endpoint) knownOptionsOnly() endpoint {
	read := e.read
	e.read = func(r *request) (fault.Call, action, error) {
		var fields map[string]json.RawMessage
		if err := decode(r.body, &fields); err != nil {
			return fault.Call{}, nil, err
		}
		for _, name := range missingSampleOptions {
			if value, ok := fields[name]; ok && !slices.Contains(unset, string(value)) {
				return fault.Call{}, nil, badRequest("%s is not supported", name)
			}
		}
		return read(r)
	}
	return e
}
