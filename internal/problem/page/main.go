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

` + "`kubectl tinker why RUN`" + ` shows the problem of a run with its evidence and its repair. This page has all problems: the reason of the
condition, the code, the meaning, the repair. Where nothing else is said, a run that waits continues by itself once the
problem is repaired, loses nothing, and the wait does not count against failurePolicy.maxRestarts. A run that needs a
person is Stalled after stalledAfterSeconds. [trainingrun.md](trainingrun.md#waits) has the time to notice a repair.
`

func main() {
	fmt.Fprint(os.Stdout, head)
	for _, section := range problem.Sections() {
		intro := "Condition " + section.Conditions
		if problem.EndsAttempts(section.Codes[len(section.Codes)-1]) {
			intro = "No condition"
		}
		fmt.Fprintf(os.Stdout, "\n## %s\n\n%s, unless one is named:\n\n", section.Title, intro)
		for _, code := range section.Codes {
			fmt.Fprintln(os.Stdout, item(code, section.Conditions))
		}
	}
}

// item returns the item of a code in a section with some conditions.
func item(code problem.Code, conditions string) string {
	row := problem.Lookup(code)
	name := "`" + row.Reason + "`"
	if row.Reason != string(code) {
		name += " (" + string(code) + ")"
	}
	if others, also := strings.CutPrefix(row.Conditions, conditions+", "); also {
		name += ", also " + others
	} else if row.Conditions != conditions {
		name += ", " + row.Conditions
	}
	text := strings.TrimSpace(row.Explanation() + " " + row.Advice())
	return "- " + name + ": " + strings.ReplaceAll(text, "$(run)", "RUN")
}
