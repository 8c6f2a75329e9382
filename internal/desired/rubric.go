// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import "github.com/tinker-operator/tinker-operator/internal/contract"

// judgeMounts lists the Secrets that the judges of a reward need.
func judgeMounts(rule *contract.RewardRule) []string {
	var mounts []string
	for _, rubric := range rule.Rubrics() {
		if o := rubric.Judge.OpenAI; o != nil && o.APIKey != nil {
			mounts = append(mounts, o.APIKey.Mount())
		}
	}
	return mounts
}
