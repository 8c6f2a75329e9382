// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// rewardOf returns a reward in canonical form: schemas are compact, and unordered lists are sorted.
func rewardOf(spec environment.Reward) *environment.Reward {
	reward := spec.DeepCopy()
	for _, rule := range reward.Rules() {
		rule.SetDefaults()
		if rule.JSONSchema != nil {
			rule.JSONSchema.Schema = compact(rule.JSONSchema.Schema)
		}
		if rule.Tests != nil {
			rule.Tests.Memory = bytesOf(rule.Tests.Memory)
		}
		if rule.ExactMatch != nil {
			slices.Sort(rule.ExactMatch.Normalize)
		}
	}
	return reward
}

// compact returns a schema without white space and with sorted names, so that equal schemas have equal digests. A
// schema that is not JSON stays as it is; the probe reports it.
func compact(schema []byte) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return schema
	}
	data, err := json.Marshal(value)
	if err != nil {
		return schema
	}
	return data
}

// judgeMounts lists the Secrets that the judges of a reward need.
func judgeMounts(reward *environment.Reward) []string {
	var mounts []string
	for _, rubric := range reward.Rubrics() {
		if o := rubric.Judge.OpenAI; o != nil && o.APIKeySecretKeyRef != nil {
			mounts = append(mounts, contract.SecretMount(*o.APIKeySecretKeyRef))
		}
	}
	return mounts
}
