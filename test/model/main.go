// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/tinker-operator/tinker-operator/test/model/engine"
	"github.com/tinker-operator/tinker-operator/test/model/scenarios"
)

func main() {
	name := flag.String("run", "", "substring of the scenario names to run")
	list := flag.Bool("list", false, "list scenarios")
	verbose := flag.Bool("v", false, "print traces")
	big := flag.Bool("big", false, "run the big ones too")
	most := flag.Int("max", 40_000_000, "stop with an error beyond this many states")
	record := flag.Bool("record", false, "print the table of scenarios/recorded.go instead of comparing")
	flag.Parse()
	different := 0
	for _, scenario := range scenarios.All() {
		switch {
		case !strings.Contains(scenario.Name, *name):
		case *list:
			fmt.Println(scenario.Name, "—", scenario.Note)
		case scenario.Big && !*big:
		case *record:
			printRecord(scenario.Name, scenario.Run(*most))
		default:
			result := scenario.Run(*most)
			printResult(scenario.Name, result, *verbose)
			if difference := scenario.Compare(result); difference != "" {
				different++
				fmt.Printf("    UNEXPECTED: %s\n", difference)
			}
		}
	}
	if different > 0 {
		fmt.Printf("%d scenarios differ from what is recorded\n", different)
		os.Exit(1)
	}
}

func printResult(name string, r engine.Result, verbose bool) {
	incomplete := ""
	if !r.Complete {
		incomplete = " INCOMPLETE"
	}
	fmt.Printf("%-44s %9d states depth %3d done %6d %6.1fs%s\n", name, r.States, r.Depth, r.DoneStates, r.Took.Seconds(),
		incomplete)
	if r.Note != "" {
		fmt.Printf("    %s\n", r.Note)
	}
	if len(r.Findings) == 0 {
		fmt.Printf("    holds\n")
	}
	for _, finding := range r.Findings {
		fmt.Printf("    BROKEN %s (%d steps)\n", finding.Name, len(finding.Trace))
		if verbose {
			for i, label := range finding.Trace {
				fmt.Printf("      %2d %s\n", i+1, label)
			}
		}
	}
}

// printRecord prints the line of a scenario for scenarios/recorded.go.
func printRecord(name string, r engine.Result) {
	if len(r.Findings) == 0 {
		return
	}
	var codes []string
	for _, finding := range r.Findings {
		if finding.Code == engine.Stuck {
			codes = append(codes, "engine.Stuck")
		} else {
			codes = append(codes, fmt.Sprintf("%d /* %s */", finding.Code, finding.Name))
		}
	}
	fmt.Printf("\t%q: {%s},\n", name, strings.Join(codes, ", "))
}
