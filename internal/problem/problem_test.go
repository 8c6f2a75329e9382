// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMessage(t *testing.T) {
	cases := map[string]struct {
		problem Problem
		want    string
	}{
		"a problem of the endpoint with evidence": {
			Problem{PaymentRequired, "POST /api/v1/optim_step was answered with 402: no credit"},
			"The endpoint answers 402. POST /api/v1/optim_step was answered with 402: no credit. Check the account's " +
				"billing. The run then continues by itself."},
		"a problem of the endpoint without evidence": {Problem{Code: RequestTooLarge},
			"The endpoint, or a proxy before it, rejects a request with one training sequence as too large. Raise the " +
				"limit of request bodies at the endpoint or the ingress before it. The run then continues by itself."},
		"evidence within the fact": {Problem{ArtifactsBlocked, "no space left on device"},
			"The learner cannot write its files (no space left on device). Repair the store of spec.artifacts. The run " +
				"then continues by itself."},
		"evidence that has the verbs of a format": {Problem{EndpointFailing, "GET /%s was answered with 500: 100%."},
			"The endpoint answers with errors of its own. GET /%s was answered with 500: 100%. Look at the log of the " +
				"endpoint. The run continues by itself once the endpoint answers."},
		"nothing to be done": {Problem{Code: Throttled},
			"The endpoint answers 429: its rate limit is reached, and the run continues as fast as that allows."},
		"a code of another version": {Problem{"QuotaOfMoons", "no moon left"},
			"A program of another version reports a problem that this version of the operator does not know (QuotaOfMoons: no " +
				"moon left)."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.problem.Message(); got != tc.want {
				t.Errorf("message is\n%q, want\n%q", got, tc.want)
			}
		})
	}
}

// TestRows checks what every row needs.
func TestRows(t *testing.T) {
	if len(Codes()) != len(rows) {
		t.Errorf("the table has %d entries for %d codes: a code stands in it twice", len(Codes()), len(rows))
	}
	for code, row := range rows {
		if row.Explanation() == "" || row.Conditions == "" {
			t.Errorf("%s has no explanation or no condition", code)
		}
		if row.NeedsAction && row.Repair == "" {
			t.Errorf("%s needs a person and does not say for what", code)
		}
		if row.NeedsAction && row.Continues {
			t.Errorf("%s needs a person and continues all the same", code)
		}
		for what, text := range map[string]string{"fact": row.Fact, "repair": row.Repair, "explanation": row.Means} {
			if strings.Count(text, "%") > 1 || text != strings.TrimSpace(text) {
				t.Errorf("the %s of %s is %q, want a text with one %%s at most", what, code, text)
			}
		}
	}
}

// healthy are the reasons of the API that are no problems: their conditions say what a run does.
var healthy = []string{
	"Accepted", "BackingOff", "Completed", "EnvironmentChanged",
	"Evaluating", "Finished", "NotFinished", "NotStalled",
	"NotStarted", "NotSuspended", "Opening", "Probed", "Probing", "Recording", "Restarting", "Running", "Starting",
	"Training", "WaitingForLearner", "WaitingForWorkers", "WorkersReplaced",
	// The message of RunFileInvalid has its repair.
	"RunFileInvalid",
}

// TestReasonsOfTheAPI compares the table with the reasons of the API: each is a problem or healthy, and the table has
// no other.
func TestReasonsOfTheAPI(t *testing.T) {
	api := reasonsOfTheAPI(t)
	known := map[string]bool{unknown.Reason: true}
	for _, code := range Codes() {
		if row := Lookup(code); row.Conditions != noCondition {
			known[row.Reason] = true
		}
	}
	for _, reason := range healthy {
		if known[reason] {
			t.Errorf("%s is healthy and a problem", reason)
		}
		known[reason] = true
	}
	if diff := cmp.Diff(api, slices.Sorted(maps.Keys(known))); diff != "" {
		t.Errorf("reasons (-API +table):\n%s", diff)
	}
}

// reasonsOfTheAPI reads the constants whose names begin with Reason.
func reasonsOfTheAPI(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../api/v1alpha1/*_conditions.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the API has the files %v (%v), want the files of its conditions", files, err)
	}
	var all []string
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
				return true
			}
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, value)
			return true
		})
	}
	slices.Sort(all)
	return slices.Compact(all)
}
