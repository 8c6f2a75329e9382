// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

func validateEnvironments(p *problems, list string, environments []Environment) {
	seen := map[string]bool{}
	for i, e := range environments {
		path := fmt.Sprintf("%s[%d]", list, i)
		p.require(!seen[e.Name], path+".name", "%q is listed twice", e.Name)
		seen[e.Name] = true
		e.validate(p, path)
	}
}

// These are the most retries and turns of an episode that the numbers of sample requests have room for.
const (
	MaxRetries = 63
	MaxTurns   = 2048
)

func (e Environment) validate(p *problems, path string) {
	p.require(e.Name != "", path+".name", "is needed")
	p.require(len(e.Digest) == 64, path+".digest", "must have 64 hex digits")
	p.require(e.GroupSize >= 1, path+".groupSize", "must be at least 1")
	p.require(e.MinMembers >= 1 && e.MinMembers <= e.GroupSize, path+".minMembers", "must be from 1 to groupSize")
	p.require(e.Retries >= 0 && e.Retries <= MaxRetries, path+".retries", "must be from 0 to %d", MaxRetries)
	p.require(finite.Is(e.Weight) && e.Weight >= 0, path+".weight", "must be at least 0")
	p.require(len(e.Splits) > 0, path+".splits", "must not be empty")
	for _, s := range e.Splits {
		p.require(s.Name != "" && s.Tasks >= 1, path+".splits", "%q needs a name and at least one task", s.Name)
	}
	e.Definition.validate(p, path+".definition")
	e.Sampling.validate(p, path+".sampling")
	p.require(!e.Sampling.SharedPrompt || e.Definition.HasSharedPrompts(), path+".sampling.sharedPrompt",
		"needs a dataset: episodes of an ors server may each have a prompt of their own")
	e.Limits.validate(p, path+".limits")
	e.Reward.validate(p, path+".reward")
}

func (s Sampling) validate(p *problems, path string) {
	p.require(s.MaxTokens >= 1, path+".maxTokens", "must be at least 1")
	p.require(finite.Is(s.Temperature) && s.Temperature >= 0, path+".temperature", "must be at least 0")
	p.require(s.TopP > 0 && s.TopP <= 1, path+".topP", "must be above 0 and at most 1")
	p.require(s.TopK == -1 || s.TopK >= 1, path+".topK", "must be -1 (all) or at least 1")
}

func (l Limits) validate(p *problems, path string) {
	least := min(l.Turns, l.ToolCalls, l.PromptTokens, l.TrajectoryTokens, l.EpisodeSeconds)
	p.require(least >= 0, path, "must be at least 0")
	p.require(l.Turns <= MaxTurns, path+".turns", "must be at most %d", MaxTurns)
	oneOf(p, path+".onLimit", l.OnLimit, "", OnLimitGrade, OnLimitZero, OnLimitExclude)
}

func (r Reward) validate(p *problems, path string) {
	oneOf(p, path+".reduction", r.Reduction, ReductionSum, ReductionMean, ReductionMax, ReductionMin, ReductionLast)
	for _, v := range []*float64{r.Nonterminal, r.Min, r.Max} {
		p.require(v == nil || finite.Is(*v), path, "has a bound that is not a number")
	}
	p.require(r.Min == nil || r.Max == nil || *r.Min < *r.Max, path, "needs min below max")
}

// HasSharedPrompts reports whether all episodes of one task begin with the same prompts: those of a row. An environment
// server may give each session its own.
func (d Definition) HasSharedPrompts() bool { return d.ORS == nil }

func (d Definition) validate(p *problems, path string) {
	if d.ORS != nil {
		p.require(d.Dataset == nil && d.Reward == nil, path, "must have either ors, or dataset and reward")
		p.require(d.Interaction == nil || d.Interaction.ToolUse != nil, path+".interaction", "must be toolUse")
		d.ORS.validate(p, path+".ors")
	} else {
		d.Dataset.validate(p, path+".dataset")
		d.Reward.validate(p, path+".reward")
	}
	p.require(d.Execution == nil || d.ProgramID() != "", path+".execution", "needs reward.python")
	d.Interaction.validate(p, path+".interaction")
}
