// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func report(name string, r Result, verbose bool) {
	st := ""
	if !r.Complete {
		st = " INCOMPLETE"
	}
	fmt.Printf("%-44s %9d states depth %3d done %6d %6.1fs%s\n", name, r.States, r.Depth, r.DoneStates, r.Took.Seconds(), st)
	if r.Note != "" {
		fmt.Printf("    %s\n", r.Note)
	}
	if len(r.Findings) == 0 {
		fmt.Printf("    holds\n")
	}
	for _, f := range r.Findings {
		fmt.Printf("    BROKEN %s (%d steps)\n", f.Name, len(f.Trace))
		if verbose {
			for i, l := range f.Trace {
				fmt.Printf("      %2d %s\n", i+1, l)
			}
		}
	}
}

func main() {
	run := flag.String("run", "", "substring of the scenario names to run")
	list := flag.Bool("list", false, "list scenarios")
	v := flag.Bool("v", false, "print traces")
	withBig := flag.Bool("big", false, "run the big ones too")
	max := flag.Int("max", 40_000_000, "give up beyond this many states")
	record := flag.Bool("record", false, "print the table of recorded.go instead of comparing")
	flag.Parse()
	bad := 0
	for _, sc := range scenarios() {
		if *run != "" && !strings.Contains(sc.Name, *run) {
			continue
		}
		if *list {
			fmt.Println(sc.Name, "—", sc.Note)
			continue
		}
		if sc.Big && !*withBig {
			continue
		}
		r := sc.Run(*max)
		if *record {
			if len(r.Findings) > 0 {
				var c []string
				for _, f := range r.Findings {
					c = append(c, codeIdent(f))
				}
				fmt.Printf("\t%q: {%s},\n", sc.Name, strings.Join(c, ", "))
			}
			continue
		}
		report(sc.Name, r, *v)
		if msg := sc.compare(r); msg != "" {
			bad++
			fmt.Printf("    UNEXPECTED: %s\n", msg)
		}
	}
	if bad > 0 {
		fmt.Printf("%d scenarios differ from what is recorded\n", bad)
		os.Exit(1)
	}
}

// codeIdent prints a finding's code for recorded.go.
func codeIdent(f Finding) string {
	if f.Code == codeStuck {
		return "codeStuck"
	}
	return fmt.Sprintf("%d /* %s */", f.Code, f.Name)
}
