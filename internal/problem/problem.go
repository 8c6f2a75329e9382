// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package problem has a single table of everything that can keep a run from making progress. A program that observes a
// problem reports its code with evidence. Conditions, events, kubectl tinker why and the troubleshooting page are made
// from the row of the code, so that a new problem is a new row. The package imports the standard library alone.
package problem

import (
	"cmp"
	"strings"
)

// Code names a problem. It is the reason of the API, or finer than the reason. Codes go over the network, so that
// another build may report a code that this build does not know.
type Code string

// maxCode bounds a code of another build, in bytes.
const maxCode = 64

// Bounded returns a code that fits into a status: a code of more than 64 bytes is cut off, and is then unknown.
func (c Code) Bounded() Code {
	text := strings.ToValidUTF8(string(c), "?")
	if len(text) > maxCode {
		text = strings.ToValidUTF8(text[:maxCode], "")
	}
	return Code(text)
}

// UnmarshalText reads a code that another program wrote, bounded.
func (c *Code) UnmarshalText(text []byte) error {
	*c = Code(text).Bounded()
	return nil
}

// Problem is a problem that a program observed.
type Problem struct {
	Code Code `json:"code"`
	// Evidence shows the problem in one line without keys, tokens and prompts: the failed request and its answer, the
	// words of a store, the name of an environment. It may be empty.
	Evidence string `json:"evidence,omitempty"`
	// Field names the fields by which a person repairs the problem, in place of the row's own.
	Field string `json:"-"`
	// Repair replaces the row's repair, if the observer knows a better one.
	Repair string `json:"-"`
	// Told is the message that a status already shows for the problem. It takes the place of the row's sentences.
	Told string `json:"-"`
}

// Row returns the row of the problem.
func (p Problem) Row() Row { return Lookup(p.Code) }

// Reason returns the reason of the API.
func (p Problem) Reason() string { return p.Row().Reason }

// NeedsAction reports whether the run cannot continue until a person acts. The zero value needs no action.
func (p Problem) NeedsAction() bool { return p.Code != "" && p.Row().NeedsAction }

// Row describes a problem.
type Row struct {
	// Reason is the reason of the API that conditions and attempts have for the problem.
	Reason string
	// Conditions names the conditions that show the problem.
	Conditions string
	// Means explains the problem on the troubleshooting page. If it is empty, the fact explains the problem.
	Means string
	// Fact states the problem, as a sentence or more. The evidence takes the place of %s. Without %s it follows the fact
	// as a sentence of its own. A row has no fact if the observer of the problem writes the message.
	Fact string
	// Repair tells a person how to repair the problem, in a sentence or more; empty if there is nothing to do. $(run)
	// stands for the name of the run, and $(field) for the fields that a person corrects.
	Repair string
	// Field is $(field) of a problem that names no fields.
	Field string
	// Command is a command line for the repair; $(run) stands for the name of the run.
	Command string
	// NeedsAction says that the run cannot continue until a person acts.
	NeedsAction bool
	// Grace says that the problem often passes within stalledAfterSeconds, and needs a person only after that.
	Grace bool
	// Continues says that the run makes progress despite the problem.
	Continues bool
	// Endpoint says that the problem is at the Tinker endpoint, or on the way to it.
	Endpoint bool
	// Retry is the learner's reaction to the problem, and Next the consequence of an attempt that ended because of the
	// problem.
	Retry Retry
	Next  Next
}

// Retry is a learner's reaction to a problem.
type Retry int

const (
	// Never is the zero value: the learner ends, or the problem is not a learner's.
	Never Retry = iota
	// AWhile tries again for a while, after which another learner reads the spec and the Secret again.
	AWhile
	// Always tries again without limit, since another learner would not help.
	Always
)

// Next is the consequence of an attempt that ended because of a problem.
type Next int

const (
	// ByCause is the zero value: the cause of the end decides.
	ByCause Next = iota
	// AwaitRepair waits for a repair. Further attempts find out whether the repair was made.
	AwaitRepair
	// AtOnce needs no pause, since the spec is another one or a queue has resumed the Job.
	AtOnce
)

// unknown is the row of codes that this build does not know.
var unknown = Row{
	Reason: "UnknownProblem",
	Fact:   "A program of another version reports a problem that this version of the operator does not know (%s).",
	Repair: "Read the log: kubectl tinker logs $(run). Then upgrade the operator to the version of the program.",
}

// Lookup returns the row of a code. An unknown code has a row that says so.
func Lookup(code Code) Row {
	row, known := rows[code]
	if !known {
		row = unknown
	}
	if row.Reason == "" {
		row.Reason = string(code)
	}
	return row
}

// IsKnown reports whether the table has a code.
func IsKnown(code Code) bool {
	_, known := rows[code]
	return known
}

// EndsAttempts reports whether a code is the ending of an attempt that no condition shows.
func EndsAttempts(code Code) bool { return rows[code].Conditions == noCondition }

// AdviceOf returns the repair of a code; empty if there is nothing to do, or the code is not known.
func AdviceOf(code Code) string {
	if !IsKnown(code) {
		return ""
	}
	return Lookup(code).Advice()
}

// NextOf returns the consequence of an attempt that ended because of a problem.
func NextOf(code Code) Next { return rows[code].Next }

// The ends of messages. They say how the run continues, which rows do not say.
const (
	// Proceeds is the end of a message about a problem despite which the run continues.
	Proceeds = " The run continues meanwhile."
	resumes  = " The run then continues by itself."
	probed   = " The environment is probed again by itself."
)

// Message returns the text of a condition of a run: the sentences of the problem, and how the run continues.
func (p Problem) Message() string {
	row := p.Row()
	switch {
	case p.Told != "":
		return p.Told
	case row.NeedsAction:
		return p.Sentences() + resumes
	case row.Continues:
		return p.Sentences() + Proceeds
	}
	return p.Sentences()
}

// ProbeMessage returns the text of a RewardEnvironment's condition: the sentences of the problem, and whether the
// environment is probed again.
func (p Problem) ProbeMessage() string {
	if p.Code == Invalid {
		return p.Sentences()
	}
	return p.Sentences() + probed
}

// Sentences returns the fact, the evidence and the repair of the problem.
func (p Problem) Sentences() string {
	row, evidence := p.Row(), p.Evidence
	if !IsKnown(p.Code) {
		evidence = strings.TrimSuffix(string(p.Code)+": "+p.Evidence, ": ")
	}
	text := strings.ReplaceAll(row.Fact, " (%s)", "")
	switch {
	case evidence == "":
	case strings.Contains(row.Fact, "%s"):
		text = strings.Replace(row.Fact, "%s", evidence, 1)
	default:
		text += " " + strings.TrimSuffix(evidence, ".") + "."
	}
	if repair := cmp.Or(p.Repair, row.Repair); repair != "" && !strings.Contains(repair, "$(run)") {
		text += " " + strings.ReplaceAll(repair, "$(field)", cmp.Or(p.Field, row.field()))
	}
	// A user's program may report a problem whose row has no fact.
	return cmp.Or(strings.TrimSpace(text), row.Explanation())
}

// field returns the words for the fields of a problem that names no fields.
func (r Row) field() string { return cmp.Or(r.Field, "the field that the message names") }

// Advice returns the repair for people who do not see the message.
func (r Row) Advice() string {
	text := strings.ReplaceAll(r.Repair, "$(field)", r.field())
	if r.Command != "" {
		text += " Run: " + r.Command
	}
	return text
}

// Codes returns the codes of the table in its order.
func Codes() []Code {
	var all []Code
	for _, section := range Sections() {
		all = append(all, section.Codes...)
	}
	return all
}

// Section is a section of the troubleshooting page.
type Section struct {
	Title string
	// Conditions names the conditions that show the problems of the section, unless their rows name other conditions.
	Conditions string
	Codes      []Code
}

// Sections returns the sections of the table in its order.
func Sections() []Section {
	all := make([]Section, 0, len(table))
	for _, part := range table {
		section := Section{Title: part.title, Conditions: part.conditions}
		for _, e := range part.entries {
			section.Codes = append(section.Codes, e.code)
		}
		all = append(all, section)
	}
	return all
}

// Explanation returns the meaning of the problem, for people who do not see its evidence.
func (r Row) Explanation() string {
	if r.Means != "" {
		return r.Means
	}
	return strings.NewReplacer(" (%s)", "", " %s", "").Replace(r.Fact)
}
