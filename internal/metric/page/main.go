// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Program page prints docs/metrics.md from the table of metrics.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/metrics"
	"github.com/tinker-operator/tinker-operator/internal/metric"
)

const head = `<!-- Generated from internal/metric and internal/controller/metrics by make manifests. Do not edit. -->
# Metrics

Keys of metrics.jsonl and evaluations.jsonl, which ` + "`kubectl tinker metrics RUN --all`" + ` and the trackers show. ENV is the name of
an environment, or ` + "`all`" + ` for all together; ROLE is a role, PART a part of a weighted reward, K a number.

In evaluations, metrics of environments have the prefix ` + "`test/`" + `, such as ` + "`test/env/all/reward/total`" + `. The ends of a 95% confidence
interval have the suffixes ` + "`/ci95_low`" + ` and ` + "`/ci95_high`" + `. ` + "`kubectl tinker metrics`" + ` and ` + "`compare`" + ` take the short names.

| metric, short name (unit) | meaning | good | bad |
|---|---|---|---|
`

const prometheus = `
## In Prometheus

The manager serves these metrics ([monitoring.md](monitoring.md)).

| metric | labels | content |
|---|---|---|
`

func main() {
	short := map[string]string{}
	for _, m := range contract.Metrics {
		if d, ok := metric.Describe(m.Name); ok && m.Short != "" {
			short[d.Name] = ", `" + m.Short + "`"
		}
	}
	fmt.Fprint(os.Stdout, head)
	for _, d := range metric.Descriptions {
		fmt.Fprintf(os.Stdout, "| `%s`%s%s | %s | %s | %s |\n", d.Name, short[d.Name], unit(d.Unit), cell(d.Meaning),
			cell(d.Good), cell(d.Bad))
	}
	fmt.Fprint(os.Stdout, prometheus)
	for _, d := range metrics.Descriptions {
		fmt.Fprintf(os.Stdout, "| `%s` | `%s` | %s |\n", d.Name, strings.Join(d.Labels, "`, `"), cell(d.Help))
	}
}

// told are the units that the meanings of metrics mention.
var told = []string{"count", "share", "tokens", "seconds", "tokens a second", "reward", "norm", "rate"}

// unit returns a unit in parentheses, or "" if the meaning of the metric mentions the unit.
func unit(name string) string {
	if slices.Contains(told, name) {
		return ""
	}
	return " (" + name + ")"
}

// cell escapes a text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
