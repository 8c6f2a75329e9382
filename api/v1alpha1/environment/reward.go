// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"encoding/json"
	"fmt"
	"iter"
)

// Reward is the reward of an episode: one rule, or the weighted sum of several.
// +kubebuilder:validation:XValidation:rule="[has(self.exactMatch), has(self.regex), has(self.jsonSchema), has(self.countdown), has(self.math), has(self.gsm8k), has(self.rubric), has(self.python), has(self.tests), has(self.expression), has(self.weighted), has(self.none)].filter(x, x).size() == 1",message="give exactly one of exactMatch, regex, jsonSchema, countdown, math, gsm8k, rubric, python, tests, expression, weighted (a sum of several) and none (a teacher alone decides)"
type Reward struct {
	RewardRule `json:",inline"`
	// weighted is the sum of several rewards, each multiplied by its weight. Each reward, before its weight, is also a
	// metric with its name.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.exists(r, r.weight != 0.0)",message="every weight is 0, so that all replies earn the same: give at least one entry another weight"
	// +optional
	Weighted []WeightedReward `json:"weighted,omitempty"`
	// none gives no reward: the policy learns only from environments[].teacher. An evaluation cannot use the environment.
	// +optional
	None *None `json:"none,omitempty"`
}

// None is no reward.
type None struct{}

// Functions lists the functions that a reward calls.
func (r *Reward) Functions() []*Python {
	var functions []*Python
	for _, rule := range r.Rules() {
		if rule.Python != nil {
			functions = append(functions, rule.Python)
		}
	}
	return functions
}

// Rubrics lists the rubrics of a reward.
func (r *Reward) Rubrics() []*Rubric {
	var rubrics []*Rubric
	for _, rule := range r.Rules() {
		if rule.Rubric != nil {
			rubrics = append(rubrics, rule.Rubric)
		}
	}
	return rubrics
}

// Rules lists the rule of a reward and the rules of its sum, by the path of each within the reward.
func (r *Reward) Rules() iter.Seq2[string, *RewardRule] {
	return func(yield func(string, *RewardRule) bool) {
		if r == nil || !yield("", &r.RewardRule) {
			return
		}
		for i := range r.Weighted {
			if !yield(fmt.Sprintf("weighted[%d].", i), &r.Weighted[i].RewardRule) {
				return
			}
		}
	}
}

// WeightedReward is one reward of a weighted sum.
// +kubebuilder:validation:XValidation:rule="[has(self.exactMatch), has(self.regex), has(self.jsonSchema), has(self.countdown), has(self.math), has(self.gsm8k), has(self.rubric), has(self.python), has(self.tests), has(self.expression)].filter(x, x).size() == 1",message="give exactly one of exactMatch, regex, jsonSchema, countdown, math, gsm8k, rubric, python, tests and expression beside name and weight"
type WeightedReward struct {
	// name is the name of the reward's metric.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-_a-z0-9]*[a-z0-9])?$')",message="must be of a-z, 0-9, '-' and '_', and begin and end with a letter or digit: metrics are named after it"
	// +required
	Name string `json:"name"`
	// weight multiplies the reward. A negative weight makes it a penalty, and 0 makes it a metric alone.
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	// +required
	Weight     float64 `json:"weight"`
	RewardRule `json:",inline"`
}

// RewardRule scores a reply. SetDefaults has the defaults of its fields. The schema has none, since the entries of
// weighted are also rules.
type RewardRule struct {
	// exactMatch compares a part of the reply with the row's answer.
	// +optional
	ExactMatch *ExactMatch `json:"exactMatch,omitempty"`
	// regex rewards a reply that a regular expression matches.
	// +optional
	Regex *Regex `json:"regex,omitempty"`
	// jsonSchema rewards JSON that a schema accepts.
	// +optional
	JSONSchema *JSONSchema `json:"jsonSchema,omitempty"`
	// countdown rewards an expression that uses each number of the field nums once and whose value is the field target.
	// +optional
	Countdown *Countdown `json:"countdown,omitempty"`
	// math compares the content of the reply's last \boxed{} with the row's answer: numbers, fractions and expressions.
	// +optional
	Math *Math `json:"math,omitempty"`
	// gsm8k compares the reply's number with the number after #### in the row's answer.
	// +optional
	GSM8K *GSM8K `json:"gsm8k,omitempty"`
	// rubric lets a model grade the reply by the criteria of the row.
	// +optional
	Rubric *Rubric `json:"rubric,omitempty"`
	// python is your own function, which runs beside each worker in a container of its own.
	// +optional
	Python *Python `json:"python,omitempty"`
	// tests runs the program that the reply contains against tests of the row, beside each worker in a container of its
	// own.
	// +optional
	Tests *Tests `json:"tests,omitempty"`
	// expression is a CEL expression over row, reply and episode that gives the reward, such as
	// "reply.lastNumber() == double(row.answer) ? 1.0 : 0.0".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Expression string `json:"expression,omitempty"`
}

// ExactMatch compares a part of the reply with the row's answer.
// +kubebuilder:validation:XValidation:rule="!has(self.normalize) || (has(self.part) && self.part != 'LastInteger')",message="normalize needs part Text, LastLine or AnswerTag: integers are compared by their value"
type ExactMatch struct {
	// part is the part of the reply that is compared: LastInteger, Text (all of it), LastLine, or
	// AnswerTag, which is the content of the last <answer>...</answer>. Defaults to LastInteger.
	// +optional
	Part ExactMatchPart `json:"part,omitempty"`
	// normalize lists the differences that the comparison of texts ignores: Case, Space (its amount between words),
	// Punctuation, Articles (a, an, the). Space at both ends is always ignored.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Normalize []Normalization `json:"normalize,omitempty"`
}

// ExactMatchPart is the part of a reply that is compared.
// +kubebuilder:validation:Enum=LastInteger;Text;LastLine;AnswerTag
type ExactMatchPart string

// The parts of a reply. The default is PartLastInteger.
const (
	PartLastInteger ExactMatchPart = "LastInteger"
	PartText        ExactMatchPart = "Text"
	PartLastLine    ExactMatchPart = "LastLine"
	PartAnswerTag   ExactMatchPart = "AnswerTag"
)

// Normalization is a difference that a comparison of texts ignores.
// +kubebuilder:validation:Enum=Case;Space;Punctuation;Articles
type Normalization string

// The normalizations.
const (
	NormalizeCase        Normalization = "Case"
	NormalizeSpace       Normalization = "Space"
	NormalizePunctuation Normalization = "Punctuation"
	NormalizeArticles    Normalization = "Articles"
)

// Regex rewards a reply that a regular expression matches.
type Regex struct {
	// pattern is a regular expression in the syntax of RE2. If it has a group named answer, (?P<answer>...), the text of
	// this group in the last match must be the row's answer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="''.matches(self) in [true, false]",message="does not compile: correct the regular expression; it has the syntax of RE2"
	// +required
	Pattern string `json:"pattern"`
}

// JSONSchema rewards JSON that a schema accepts.
type JSONSchema struct {
	// schema is a JSON Schema, of draft 2020-12 unless its $schema names another draft. It may refer only to its own
	// parts.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +required
	Schema json.RawMessage `json:"schema"`
}

// Countdown rewards an expression in <answer>...</answer>.
type Countdown struct {
	// strict allows only whole numbers, + - * / and parentheses. With false, replies earn the rewards of rLLM, which also
	// allows **, // and decimals. Defaults to true.
	// +optional
	Strict *bool `json:"strict,omitempty"`
}

// Math compares the boxed text with the row's answer.
type Math struct {
	// grader selects the program that compares the two texts. MathVerify is the Python package math-verify in the image of
	// execution, and runs in the container of programs that a policy wrote. Defaults to Builtin.
	// +optional
	Grader MathGrader `json:"grader,omitempty"`
}

// MathGrader compares mathematical answers.
// +kubebuilder:validation:Enum=Builtin;MathVerify
type MathGrader string

// The programs that compare mathematical answers.
const (
	MathBuiltin MathGrader = "Builtin"
	MathVerify  MathGrader = "MathVerify"
)

// GSM8K compares numbers.
type GSM8K struct {
	// strict finds the reply's number only after #### and compares it as text, as the authors of the data set do. With
	// false, \boxed{} or the last number is also accepted.
	// +optional
	Strict bool `json:"strict,omitempty"`
}
