// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"time"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric/openaijudge"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
)

// newRubric builds the grader that asks a judge. If the judge is on Tinker and there is no endpoint, the grader only
// checks rows.
func (b Builder) newRubric(definition settings.Rubric) (verify.Grader, error) {
	judge, err := b.newJudge(definition.Judge)
	if err != nil {
		return nil, err
	}
	if judge == nil {
		return rubric.RowsOnly{}, nil
	}
	return rubric.New(judge, rubric.Options{
		Scoring: definition.Scoring, MinCoverage: *definition.MinCoverage, Retries: int(*definition.Judge.Retries),
		Timeout: time.Duration(definition.Judge.TimeoutSeconds) * time.Second,
		Now:     b.Now, Wait: b.JudgeProblem != nil, Report: b.JudgeProblem,
	})
}

// newJudge returns nil for a judge on Tinker if there is no endpoint.
func (b Builder) newJudge(definition settings.Judge) (rubric.Judge, error) {
	endpoint := definition.OpenAI
	if endpoint == nil {
		if b.TinkerJudge == nil {
			return nil, nil
		}
		return b.TinkerJudge(definition)
	}
	config := openaijudge.Config{
		BaseURL: endpoint.BaseURL, Model: endpoint.Model, Temperature: *definition.Sampling.Temperature,
		MaxTokens: int64(definition.Sampling.MaxTokens),
	}
	if key := endpoint.APIKeySecretKeyRef; key != nil {
		// The key is read for each call, so that it can be corrected and exchanged.
		config.Key = func() (string, error) { return b.secret(*key) }
	}
	return openaijudge.New(config), nil
}
