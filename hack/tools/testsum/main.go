// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Testsum reads `go test -json` from standard input, prints a line for each package and the whole
// output of what failed, and adds the counts to a file, so that several suites can be summed up in
// one closing line. A Ginkgo suite counts by its specs.
//
//	go test -json ./... | testsum -counts FILE
//	testsum -total FILE
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// event is a line of test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
	// ImportPath names the package of a build's output.
	ImportPath string
}

// tally is what a suite came to.
type tally struct{ passed, failed int }

// specs is Ginkgo's own summary.
var specs = regexp.MustCompile(`(\d+) Passed.*\| .*?(\d+) Failed`)

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

func main() {
	counts := flag.String("counts", "", "file that the counts are added to")
	total := flag.String("total", "", "file whose counts are summed up and printed")
	flag.Parse()
	log.SetFlags(0)
	if *total != "" {
		os.Exit(printTotal(*total))
	}
	t, err := read(os.Stdin, os.Stdout)
	if err != nil {
		log.Fatalf("testsum: %v", err)
	}
	if *counts != "" {
		if err := add(*counts, t); err != nil {
			log.Fatalf("testsum: %v", err)
		}
	}
	if t.failed > 0 {
		os.Exit(1)
	}
}

func read(in io.Reader, out io.Writer) (tally, error) {
	var t tally
	output := map[string]*strings.Builder{}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var e event
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			fmt.Fprintln(out, scanner.Text()) // go's own words, before any test ran
			continue
		}
		key := e.Package + e.ImportPath
		if output[key] == nil {
			output[key] = &strings.Builder{}
		}
		output[key].WriteString(e.Output)
		t.passed += note(e, output[key].String()).passed
		t.failed += note(e, output[key].String()).failed
		report(out, e, output[key])
	}
	return t, scanner.Err()
}

// note counts one event: a test that ended, or a package that failed to build or died.
func note(e event, output string) tally {
	switch {
	case e.Test != "" && e.Action == "pass":
		if m := specs.FindStringSubmatch(colour.ReplaceAllString(output, "")); m != nil && !strings.Contains(e.Test, "/") {
			passed, _ := strconv.Atoi(m[1])
			return tally{passed: passed}
		}
		return tally{passed: 1}
	case e.Test != "" && e.Action == "fail":
		return tally{failed: 1}
	case e.Test == "" && e.Action == "fail" && !strings.Contains(output, "--- FAIL"):
		return tally{failed: 1}
	case e.Action == "build-fail":
		return tally{failed: 1}
	}
	return tally{}
}

func report(out io.Writer, e event, output *strings.Builder) {
	if e.Test != "" {
		return
	}
	elapsed := time.Duration(e.Elapsed * float64(time.Second)).Round(100 * time.Millisecond)
	switch e.Action {
	case "pass":
		fmt.Fprintf(out, "ok    %s (%s)\n", e.Package, elapsed)
	case "fail", "build-fail":
		fmt.Fprintf(out, "%s\nFAIL  %s%s (%s)\n", output, e.Package, e.ImportPath, elapsed)
	}
}

func add(name string, t tally) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(file, "%d %d\n", t.passed, t.failed); err != nil {
		return err
	}
	return file.Close()
}

// printTotal prints the closing line and gives the exit code.
func printTotal(name string) int {
	data, err := os.ReadFile(name)
	if err != nil {
		log.Fatalf("testsum: %v", err)
	}
	var sum tally
	for line := range strings.Lines(string(data)) {
		var t tally
		if _, err := fmt.Sscan(line, &t.passed, &t.failed); err != nil {
			log.Fatalf("testsum: reading %s: %v", name, err)
		}
		sum.passed += t.passed
		sum.failed += t.failed
	}
	fmt.Printf("%d passed, %d failed\n", sum.passed, sum.failed)
	if sum.failed > 0 || sum.passed == 0 {
		return 1
	}
	return 0
}
