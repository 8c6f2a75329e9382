// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import "cmp"

// SetDefaults fills the fields of a rule that are not given. Their defaults are not in the schema. With defaults there,
// an item of weighted would differ from the manifest at each kubectl apply, since a list is compared as a whole. And an
// empty object with a default in the schema, such as exactMatch: {}, becomes null if kubectl apply and kubectl apply
// --server-side alternate.
func (r *RewardRule) SetDefaults() {
	if m := r.ExactMatch; m != nil {
		m.Part = cmp.Or(m.Part, PartLastInteger)
	}
	if c := r.Countdown; c != nil {
		c.Strict = cmp.Or(c.Strict, new(true))
	}
	if p := r.Python; p != nil {
		p.Processes = cmp.Or(p.Processes, 2)
		p.Concurrency = cmp.Or(p.Concurrency, 64)
		p.TimeoutSeconds = cmp.Or(p.TimeoutSeconds, 60)
	}
	if r.Tests != nil {
		r.Tests.setDefaults()
	}
	if rubric := r.Rubric; rubric != nil {
		rubric.Scoring = cmp.Or(rubric.Scoring, ScorePassRate)
		rubric.MinCoverage = cmp.Or(rubric.MinCoverage, new(1.0))
		rubric.Judge.setDefaults()
	}
}

func (j *Judge) setDefaults() {
	j.Sampling.Temperature = cmp.Or(j.Sampling.Temperature, new(0.7))
	j.Sampling.MaxTokens = cmp.Or(j.Sampling.MaxTokens, 4096)
	j.Retries = cmp.Or(j.Retries, new(int32(3)))
	j.TimeoutSeconds = cmp.Or(j.TimeoutSeconds, 300)
}
