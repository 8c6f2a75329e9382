// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import "fmt"

func validateEnvironments(p *problems, list string, environments []Environment) {
	seen := map[string]bool{}
	for i, e := range environments {
		path := fmt.Sprintf("%s[%d]", list, i)
		p.require(!seen[e.Name], path+".name", "%q is listed twice", e.Name)
		seen[e.Name] = true
		e.validate(p, path)
	}
}

// MaxTurns is the maximum number of turns of a conversation.
const MaxTurns = 2048

func (e Environment) validate(p *problems, path string) {
	p.require(e.Name != "", path+".name", "is needed")
	p.require(len(e.Digest) == 64, path+".digest", "must have 64 hex digits")
	p.require(len(e.Splits) > 0, path+".splits", "must not be empty")
	for _, s := range e.Splits {
		p.require(s.Name != "" && s.Tasks >= 1, path+".splits", "%q needs a name and at least one task", s.Name)
	}
	e.Definition.validate(p, path+".definition")
}

// HasSharedPrompts reports whether all episodes of one task begin with the same prompts, which a row decides. An
// environment server may give each session its own prompts, and code may give each episode its own.
func (d Definition) HasSharedPrompts() bool {
	return d.ORS == nil && d.Episodes() == nil && d.Agent() == nil
}

// IsUnrewarded reports whether the environment gives no reward, so that only a teacher can teach.
func (d Definition) IsUnrewarded() bool { return d.Reward != nil && d.Reward.None != nil }

// longestSchema bounds the size of a schema in run files. Admission does not limit it.
const longestSchema = 64 << 10

// validate checks values that admission cannot see: the data that were read, and the length of schemas.
func (d Definition) validate(p *problems, path string) {
	p.require((d.ORS != nil) != (d.Dataset != nil && (d.Reward != nil) != d.SaysRewards()), path,
		"needs either ors, or dataset with reward or interaction.python, or an interaction.agent that says its reward")
	if d.Dataset != nil {
		d.Dataset.validate(p, path+".dataset")
	}
	for at, rule := range d.Reward.Rules() {
		if rule.JSONSchema != nil {
			p.require(len(rule.JSONSchema.Schema) <= longestSchema, path+".reward."+at+"jsonSchema.schema",
				"must have at most %d bytes", longestSchema)
		}
	}
}
