// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// Rubric has a model judge the row's field rubrics.
type Rubric struct {
	Judge       Judge         `json:"judge"`
	Scoring     RubricScoring `json:"scoring"`
	MinCoverage float64       `json:"minCoverage"`
}

// RubricScoring is how judgements are asked for and become a reward.
type RubricScoring string

// The ways of scoring.
const (
	ScorePassRate  RubricScoring = "PassRate"
	ScorePerRubric RubricScoring = "PerRubric"
	ScoreScore     RubricScoring = "Score"
)

// Judge is a model that judges; exactly one of Tinker and OpenAI.
type Judge struct {
	Tinker         *TinkerJudge `json:"tinker,omitempty"`
	OpenAI         *OpenAIJudge `json:"openAI,omitempty"`
	Temperature    float64      `json:"temperature"`
	MaxTokens      int          `json:"maxTokens"`
	Retries        int          `json:"retries"`
	TimeoutSeconds int          `json:"timeoutSeconds"`
}

// TinkerJudge samples at the run's own endpoint, from a base model or from a checkpoint.
type TinkerJudge struct {
	Model      string `json:"model,omitempty"`
	Checkpoint string `json:"checkpoint,omitempty"`
	// Renderer is empty for that of the model.
	Renderer string `json:"renderer,omitempty"`
}

// OpenAIJudge is an endpoint that speaks OpenAI's chat completions.
type OpenAIJudge struct {
	BaseURL string `json:"baseURL"`
	Model   string `json:"model"`
	// APIKey is nil for an endpoint without keys.
	APIKey *SecretKey `json:"apiKey,omitempty"`
}

func (r *Rubric) validate(p *problems, path string) {
	oneOf(p, path+".scoring", r.Scoring, ScorePassRate, ScorePerRubric, ScoreScore)
	p.require(r.MinCoverage >= 0 && r.MinCoverage <= 1, path+".minCoverage", "must be from 0 to 1")
	r.Judge.validate(p, path+".judge")
}

func (j Judge) validate(p *problems, path string) {
	p.require((j.Tinker == nil) != (j.OpenAI == nil), path, "must be exactly one of tinker and openAI")
	p.require(finite.Is(j.Temperature) && j.Temperature >= 0, path+".sampling.temperature", "must be at least 0")
	p.require(j.MaxTokens >= 1, path+".sampling.maxTokens", "must be at least 1")
	p.require(j.Retries >= 0 && j.Retries <= MaxRetries, path+".retries", "must be from 0 to %d", MaxRetries)
	p.require(j.TimeoutSeconds >= 1, path+".timeoutSeconds", "must be at least 1")
	if t := j.Tinker; t != nil {
		p.require((t.Model == "") != (t.Checkpoint == ""), path+".tinker", "must be exactly one of model and checkpoint")
	}
	if o := j.OpenAI; o != nil {
		p.require(strings.HasPrefix(o.BaseURL, "http://") || strings.HasPrefix(o.BaseURL, "https://"), path+".openAI.baseURL",
			"must be an http or https URL")
		p.require(o.Model != "", path+".openAI.model", "is needed")
		p.require(o.APIKey == nil || o.APIKey.Name != "" && o.APIKey.Key != "", path+".openAI.apiKey", "needs name and key")
	}
}

// Rubrics lists the rubrics of a rule and of the parts of a sum.
func (r *RewardRule) Rubrics() []Rubric {
	if r == nil {
		return nil
	}
	var rubrics []Rubric
	if r.Rubric != nil {
		rubrics = append(rubrics, *r.Rubric)
	}
	for _, part := range r.Weighted {
		rubrics = append(rubrics, part.Rule.Rubrics()...)
	}
	return rubrics
}
