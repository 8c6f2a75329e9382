// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package problem has the one table of everything that can keep a run from making progress. A program that observes a
// problem reports its code with evidence. Conditions, events, kubectl tinker why and the troubleshooting page are made
// from the row of the code, so that a new problem is a new row. The package imports the standard library alone.
package problem

import (
	"strings"
)

// Code names a problem. It is the reason of the API, or finer than the reason. Codes go over the network, so that
// another build may report a code that this build does not know.
type Code string

// maxCode bounds a code of another build, in bytes.
const maxCode = 64

// Bounded returns a code that fits into a status: what follows 64 bytes is cut off, and the code is then unknown.
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
	// Evidence is what shows the problem, in one line without keys, tokens and prompts: the request that failed and how
	// it was answered, the words of a store, the name of an environment. It may be empty.
	Evidence string `json:"evidence,omitempty"`
}

// Row is what the operator knows of a problem.
type Row struct {
	// Reason is the reason of the API that conditions and attempts have for the problem.
	Reason string
	// Conditions names the conditions that show the problem.
	Conditions string
	// Means explains the problem on the troubleshooting page; the fact does where it is empty.
	Means string
	// Fact says what is the case, as a sentence or more. The evidence takes the place of %s. Without %s it follows the
	// fact as a sentence of its own. A row without a fact is of a problem whose observer writes the message.
	Fact string
	// Repair says what a person does about the problem, as a sentence or more; empty if nothing is to be done.
	// $(run) stands for the name of the run.
	Repair string
	// NeedsAction says that the run does not go on until a person acts.
	NeedsAction bool
	// Continues says that the run makes progress all the same.
	Continues bool
	// Endpoint says that the problem is at the Tinker endpoint, or on the way to it.
	Endpoint bool
	// Retry is what a learner does about the problem, and Next what follows an attempt that ended for it.
	Retry Retry
	Next  Next
}

// Retry is what a learner does about a problem.
type Retry int

const (
	// Never is the zero value: the learner ends, or the problem is not a learner's.
	Never Retry = iota
	// AWhile tries again for a while, after which another learner reads the spec and the Secret anew.
	AWhile
	// Always tries again for as long as it takes: another learner would know no more.
	Always
)

// Next is what follows an attempt that ended for a problem.
type Next int

const (
	// ByCause is the zero value: the cause of the end decides.
	ByCause Next = iota
	// AwaitRepair waits for a repair, and has attempts find out whether it was made.
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

// RepairOf returns what a person does about a reason of the API; empty if nothing is to be done.
func RepairOf(reason string) string {
	if row, known := rows[Code(reason)]; known {
		return row.Repair
	}
	return ""
}

// NextOf returns what follows an attempt that ended for a problem.
func NextOf(code Code) Next { return rows[code].Next }

// continuation ends the messages of problems after whose repair the run goes on.
const continuation = " The run then continues by itself."

// Message returns the text of a condition: fact, evidence and repair. A run that waits for a repair continues by
// itself afterwards, which the message says once.
func (p Problem) Message() string {
	row := Lookup(p.Code)
	evidence := p.Evidence
	if !IsKnown(p.Code) {
		evidence = strings.TrimSuffix(string(p.Code)+": "+p.Evidence, ": ")
	}
	text := row.Fact
	if strings.Contains(text, "%s") {
		text = strings.Replace(text, "%s", evidence, 1)
	} else if evidence != "" {
		text += " " + strings.TrimSuffix(evidence, ".") + "."
	}
	if row.Repair != "" && !strings.Contains(row.Repair, "$(run)") {
		text += " " + row.Repair
	}
	if row.NeedsAction && row.Retry != Never {
		text += continuation
	}
	return text
}

// Codes returns the codes of the table in its order.
func Codes() []Code {
	var all []Code
	for _, part := range table {
		for _, e := range part {
			all = append(all, e.code)
		}
	}
	return all
}

// Explanation returns what the problem means, for people who do not see its evidence.
func (r Row) Explanation() string {
	if r.Means != "" {
		return r.Means
	}
	return strings.NewReplacer(" (%s)", "", " %s", "").Replace(r.Fact)
}
