// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// RewardRule is how an episode is rewarded; exactly one member.
type RewardRule struct {
	ExactMatch *ExactMatch `json:"exactMatch,omitempty"`
	Regex      *Regex      `json:"regex,omitempty"`
	JSONSchema *JSONSchema `json:"jsonSchema,omitempty"`
	Countdown  *Countdown  `json:"countdown,omitempty"`
	Math       *Math       `json:"math,omitempty"`
	GSM8K      *GSM8K      `json:"gsm8k,omitempty"`
	Rubric     *Rubric     `json:"rubric,omitempty"`
	Python     *Python     `json:"python,omitempty"`
	// Expression is a CEL expression; it is empty if it is not the member.
	Expression string `json:"expression,omitempty"`
	// Weighted is a sum of other rewards, none of which is a sum.
	Weighted []WeightedReward `json:"weighted,omitempty"`
}

// ExactMatch compares with the row's answer.
type ExactMatch struct {
	// Part is the part of the reply that is compared; it is empty for the last integer.
	Part ExactMatchPart `json:"part,omitempty"`
	// Normalize is what the comparison of texts ignores, sorted.
	Normalize []Normalization `json:"normalize,omitempty"`
}

// ExactMatchPart is a part of a reply.
type ExactMatchPart string

// The parts of a reply. The last integer is the empty part.
const (
	PartText      ExactMatchPart = "Text"
	PartLastLine  ExactMatchPart = "LastLine"
	PartAnswerTag ExactMatchPart = "AnswerTag"
)

// Normalization is what a comparison of texts ignores.
type Normalization string

// The normalizations.
const (
	NormalizeCase        Normalization = "Case"
	NormalizeSpace       Normalization = "Space"
	NormalizePunctuation Normalization = "Punctuation"
	NormalizeArticles    Normalization = "Articles"
)

// Regex asks for a match.
type Regex struct {
	Pattern string `json:"pattern"`
}

// JSONSchema asks for JSON that a schema accepts.
type JSONSchema struct {
	Schema json.RawMessage `json:"schema"`
}

// Countdown evaluates an expression of the fields nums and target.
type Countdown struct {
	// Strict is false for rLLM's scores.
	Strict bool `json:"strict"`
}

// Math compares what is boxed with the row's answer.
type Math struct{}

// GSM8K compares numbers as that data set writes them.
type GSM8K struct {
	Strict bool `json:"strict,omitempty"`
}

// WeightedReward is a reward of a sum.
type WeightedReward struct {
	Name   string     `json:"name"`
	Weight float64    `json:"weight"`
	Rule   RewardRule `json:"rule"`
}

// members returns the names of the members that are set.
func (r RewardRule) members() []string {
	var set []string
	for _, member := range []struct {
		name  string
		isSet bool
	}{
		{"exactMatch", r.ExactMatch != nil}, {"regex", r.Regex != nil}, {"jsonSchema", r.JSONSchema != nil},
		{"countdown", r.Countdown != nil}, {"math", r.Math != nil}, {"gsm8k", r.GSM8K != nil}, {"rubric", r.Rubric != nil},
		{"python", r.Python != nil}, {"expression", r.Expression != ""}, {"weighted", r.Weighted != nil},
	} {
		if member.isSet {
			set = append(set, member.name)
		}
	}
	return set
}

// longestSchema bounds what a schema adds to run files.
const longestSchema = 64 << 10

const rewardLeaves = "exactMatch, regex, jsonSchema, countdown, math, gsm8k, rubric, python, expression"

func (r *RewardRule) validate(p *problems, path string) {
	if r == nil || len(r.members()) != 1 {
		p.require(false, path, "must be exactly one of %s and weighted", rewardLeaves)
		return
	}
	r.validateLeaf(p, path)
	if r.Weighted == nil {
		return
	}
	p.require(len(r.Weighted) > 0, path+".weighted", "must not be empty")
	seen := map[string]bool{}
	for i, part := range r.Weighted {
		path := fmt.Sprintf("%s.weighted[%d]", path, i)
		p.require(part.Name != "" && !seen[part.Name], path+".name", "must not be empty or listed twice")
		seen[part.Name] = true
		p.require(finite.Is(part.Weight) && part.Weight != 0, path+".weight", "must be a number other than 0")
		p.require(len(part.Rule.members()) == 1 && part.Rule.Weighted == nil, path, "must be exactly one of %s", rewardLeaves)
		part.Rule.validateLeaf(p, path)
	}
}

func (r *RewardRule) validateLeaf(p *problems, path string) {
	if m := r.ExactMatch; m != nil {
		oneOf(p, path+".exactMatch.part", m.Part, "", PartText, PartLastLine, PartAnswerTag)
		p.require(m.Part != "" || len(m.Normalize) == 0, path+".exactMatch.normalize",
			"needs a part other than the last integer")
		for _, n := range m.Normalize {
			oneOf(p, path+".exactMatch.normalize", n, NormalizeCase, NormalizeSpace, NormalizePunctuation, NormalizeArticles)
		}
	}
	if r.Rubric != nil {
		r.Rubric.validate(p, path+".rubric")
	}
	if r.Python != nil {
		r.Python.validate(p, path+".python")
	}
	p.require(r.Regex == nil || r.Regex.Pattern != "", path+".regex.pattern", "is needed")
	p.require(r.JSONSchema == nil || len(r.JSONSchema.Schema) > 0, path+".jsonSchema.schema", "is needed")
	p.require(r.JSONSchema == nil || len(r.JSONSchema.Schema) <= longestSchema, path+".jsonSchema.schema",
		"must have at most %d bytes", longestSchema)
}
