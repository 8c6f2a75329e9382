// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Program page prints docs/troubleshooting.md from the table of problems.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

const head = `<!-- Generated from internal/problem by make manifests. Do not edit. -->
# Troubleshooting

` + "`kubectl tinker why RUN`" + ` shows the problem of a run with evidence and repair. Unless the text says otherwise, a
waiting run loses nothing, continues by itself after the repair, and its wait does not count against
failurePolicy.maxRestarts. A run that needs a person becomes [Stalled](trainingrun.md#waits) after stalledAfterSeconds.
A field of tinker in a run is a field of spec in a TinkerEndpoint: tinker.baseURL is spec.baseURL.
`

func main() {
	fmt.Fprint(os.Stdout, head)
	for _, section := range problem.Sections() {
		intro := "Condition " + section.Conditions + ", unless another is named"
		if problem.EndsAttempts(section.Codes[len(section.Codes)-1]) {
			intro = "No condition, unless one is named"
		}
		fmt.Fprintf(os.Stdout, "\n## %s\n\n%s:\n\n", section.Title, intro)
		printItems(section)
	}
}

// printItems prints the codes of a section: those of one reason together, in the order of their first code.
func printItems(section problem.Section) {
	var reasons []string
	byReason := map[string][]problem.Code{}
	for _, code := range section.Codes {
		reason := problem.Lookup(code).Reason
		if byReason[reason] == nil {
			reasons = append(reasons, reason)
		}
		byReason[reason] = append(byReason[reason], code)
	}
	for _, reason := range reasons {
		codes := byReason[reason]
		if len(codes) > 1 {
			fmt.Fprintf(os.Stdout, "- `%s`:\n", reason)
		}
		for _, code := range codes {
			name := "  - " + string(code)
			switch {
			case len(codes) > 1:
			case reason == string(code):
				name = "- `" + reason + "`"
			default:
				name = "- `" + reason + "` (" + string(code) + ")"
			}
			fmt.Fprintln(os.Stdout, name+textOf(problem.Lookup(code), section.Conditions))
		}
	}
}

// textOf returns the text of a row: the conditions that its section does not have, the meaning and the repair.
func textOf(row problem.Row, conditions string) string {
	named := ""
	if others, also := strings.CutPrefix(row.Conditions, conditions+", "); also {
		named = ", also " + others
	} else if row.Conditions != conditions {
		named = ", " + row.Conditions
	}
	text := strings.TrimSpace(row.Explanation() + " " + row.Advice())
	return named + ": " + strings.ReplaceAll(text, "$(run)", "RUN")
}
