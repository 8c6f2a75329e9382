// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// rubricOf returns a rubric with its defaults, which are not in the schema.
func rubricOf(spec environment.Rubric) *contract.Rubric {
	judge := contract.Judge{
		Temperature:    ptr.Deref(spec.Judge.Sampling.Temperature, 0.7),
		MaxTokens:      int(ptr.Deref(spec.Judge.Sampling.MaxTokens, 4096)),
		Retries:        int(ptr.Deref(spec.Judge.Retries, 3)),
		TimeoutSeconds: int(ptr.Deref(spec.Judge.TimeoutSeconds, 300)),
	}
	if t := spec.Judge.Tinker; t != nil {
		judge.Tinker = &contract.TinkerJudge{Model: t.Model, Checkpoint: t.Checkpoint, Renderer: t.Renderer}
	}
	if o := spec.Judge.OpenAI; o != nil {
		judge.OpenAI = &contract.OpenAIJudge{BaseURL: o.BaseURL, Model: o.Model}
		if ref := o.APIKeySecretKeyRef; ref != nil {
			judge.OpenAI.APIKey = &contract.SecretKey{Name: ref.Name, Key: ref.Key}
		}
	}
	return &contract.Rubric{
		Judge: judge, Scoring: contract.RubricScoring(cmp.Or(spec.Scoring, environment.ScorePassRate)),
		MinCoverage: ptr.Deref(spec.MinCoverage, 1),
	}
}

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
