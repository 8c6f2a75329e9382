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

` + "`kubectl tinker why RUN`" + ` shows the problem of a run with its evidence and its repair. This page has all
problems, by the reason in the conditions of a run. Where nothing else is said, a run that waits continues by itself
once the problem is repaired, nothing is lost, and the wait does not count against failurePolicy.maxRestarts. A run that
needs a person is Stalled after stalledAfterSeconds. How long a run takes to notice a repair is in
[trainingrun.md](trainingrun.md#waits).

| reason | condition | what it means | what to do |
|---|---|---|---|
`

func main() {
	fmt.Fprint(os.Stdout, head)
	for _, code := range problem.Codes() {
		row := problem.Lookup(code)
		name := "`" + row.Reason + "`"
		if row.Reason != string(code) {
			name += " (" + string(code) + ")"
		}
		repair := row.Advice()
		if repair == "" {
			repair = "Nothing."
		}
		fmt.Fprintf(os.Stdout, "| %s | %s | %s | %s |\n", name, cell(row.Conditions), cell(row.Explanation()), cell(repair))
	}
}

// cell escapes a text for a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "$(run)", "RUN").Replace(text)
}
