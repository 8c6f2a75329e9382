// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package metric describes the metrics of a run: the keys of metrics.jsonl and evaluations.jsonl, for people.
package metric

import (
	"regexp"
	"strings"
)

// Description describes a metric, or all metrics whose names differ in a placeholder.
type Description struct {
	// Name is the name in the files. Words in capitals are placeholders: ENV, ROLE, PART, NAME, REASON, SPLIT, REDUCTION
	// and K.
	Name string
	// Unit is the unit, such as "nats" or "tokens"; a share is from 0 to 1.
	Unit string
	// Meaning defines the metric. Good and Bad say how it looks in a healthy run and in a failing run; both may be empty.
	Meaning, Good, Bad string
}

// placeholders are the words of a name that stand for other words, with their patterns. NAME and REDUCTION are names
// that an environment or an endpoint chooses.
var placeholders = strings.NewReplacer(
	"ENV", `[^/]+`, "ROLE", `[^/]+`, "PART", `.+`, "REASON", `[^/]+`, "SPLIT", `[^/]+`, "REDUCTION", `[a-z_]+`,
	"NAME", `.+`, "K", `[0-9]+`,
)

// patterns match the names of Descriptions, in their order.
var patterns = func() []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(Descriptions))
	for i, d := range Descriptions {
		list[i] = regexp.MustCompile("^" + placeholders.Replace(regexp.QuoteMeta(d.Name)) + "$")
	}
	return list
}()

// Affixes of the metrics of evaluations, and of the ends of their intervals.
const (
	evaluation  = "test/"
	suffixLow   = "/ci95_low"
	suffixHigh  = "/ci95_high"
	environment = "env/"
)

// Describe returns the first description that matches a metric. It returns false for a metric that no run has. An
// evaluation has the metrics of environments with the prefix "test/".
func Describe(name string) (Description, bool) {
	if within, ok := strings.CutSuffix(name, suffixLow); ok {
		return bound(within, "Lower end of the 95% confidence interval")
	}
	if within, ok := strings.CutSuffix(name, suffixHigh); ok {
		return bound(within, "Upper end of the 95% confidence interval")
	}
	for i, pattern := range patterns {
		if pattern.MatchString(name) {
			return Descriptions[i], true
		}
	}
	if within, ok := strings.CutPrefix(name, evaluation); ok && strings.HasPrefix(within, environment) {
		return Describe(within)
	}
	return Description{}, false
}

// bound describes an end of the confidence interval of a metric of an evaluation.
func bound(name, end string) (Description, bool) {
	d, ok := Describe(name)
	if !ok || !strings.HasPrefix(name, evaluation) {
		return Description{}, false
	}
	return Description{Name: d.Name, Unit: d.Unit, Meaning: end + " of " + name + "."}, true
}
