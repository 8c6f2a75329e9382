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
			Problem{Code: PaymentRequired, Evidence: "POST /api/v1/optim_step was answered with 402: no credit"},
			"The endpoint answers 402. POST /api/v1/optim_step was answered with 402: no credit. Check the account's " +
				"billing. The run then continues by itself."},
		"a problem of the endpoint without evidence": {Problem{Code: RequestTooLarge},
			"The endpoint or a proxy rejects a request with one training sequence as too large. Raise the limit of request " +
				"bodies at the endpoint or the proxy. The run then continues by itself."},
		"evidence within the fact": {Problem{Code: ArtifactsBlocked, Evidence: "no space left on device"},
			"The learner cannot write its files (no space left on device). Repair the store of spec.artifacts. The run " +
				"then continues by itself."},
		"no evidence within the fact": {Problem{Code: ArtifactsBlocked},
			"The learner cannot write its files. Repair the store of spec.artifacts. The run then continues by itself."},
		"evidence that has the verbs of a format": {Problem{Code: EndpointFailing,
			Evidence: "GET /%s was answered with 500: 100%."},
			"The endpoint answers with errors of its own. GET /%s was answered with 500: 100%. Read the log of the " +
				"endpoint. The run continues once the endpoint answers."},
		"nothing to be done": {Problem{Code: Throttled},
			"The endpoint answers 429, because its rate limit is reached. The run continues meanwhile."},
		"fields that a person corrects": {Problem{Code: SecretNotFound, Evidence: `"s" in namespace "n"`,
			Field: "artifacts.secretRef"},
			`A Secret that the pod needs does not exist ("s" in namespace "n"). Create the Secret, or correct ` +
				`artifacts.secretRef. The run then continues by itself.`},
		"fields that the observer does not know": {Problem{Code: SecretNotFound},
			"A Secret that the pod needs does not exist. Create the Secret, or correct the field of the spec that names it. " +
				"The run then continues by itself."},
		"a repair that the observer knows": {Problem{Code: EndpointNotTinker, Repair: "Renew the certificate."},
			"The endpoint's server is not the Tinker API. Renew the certificate. The run then continues by itself."},
		"a problem that was told before": {Problem{Code: SecretNotFound, Told: "As before."}, "As before."},
		"a code of another version": {Problem{Code: "QuotaOfMoons", Evidence: "no moon left"},
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

// TestRows checks the fields that every row needs.
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

// TestProbeMessage checks that the message of an environment says how the environment continues, and not how a run
// continues.
func TestProbeMessage(t *testing.T) {
	for want, found := range map[string]Problem{
		"The definition of the environment is not valid (no canary). Correct the field that the message names.": {
			Code: Invalid, Evidence: "no canary"},
		"No split of the environment has a task. Add tasks to the data or the server, or correct the splits. The " +
			"environment is probed again by itself.": {Code: NoTasks},
		"The pod fits on no node (0/1 nodes). Add a node that fits, or correct pod. The environment is probed again by " +
			"itself.": {Code: Unschedulable, Evidence: "0/1 nodes", Field: "pod"},
	} {
		if got := found.ProbeMessage(); got != want {
			t.Errorf("message is\n%q, want\n%q", got, want)
		}
	}
}

// TestSentences checks the sentences of the table: they are short, they leave it to Message to say how a run continues,
// and they have no words that make people read twice.
func TestSentences(t *testing.T) {
	banned := []string{"by itself", "that of ", "those of ", "what ", "What ", ";", "should it", "too.", "meanwhile."}
	for _, code := range Codes() {
		row := Lookup(code)
		for what, text := range map[string]string{"fact": row.Fact, "repair": row.Repair} {
			for _, words := range banned {
				if strings.Contains(text, words) {
					t.Errorf("the %s of %s has %q: %q", what, code, words, text)
				}
			}
			for sentence := range strings.SplitSeq(text, ". ") {
				if n := len(strings.Fields(sentence)); n > 28 {
					t.Errorf("the %s of %s has a sentence of %d words, want at most 28: %q", what, code, n, sentence)
				}
			}
		}
		if row.NeedsAction && row.Fact == "" {
			t.Errorf("%s needs a person, and has no fact", code)
		}
	}
}

// healthy are the reasons of the API that are no problems: their conditions describe a run that works.
var healthy = []string{"Accepted", "AsExpected", "BackingOff", "BrokerStarting", "Checked", "Checking", "Completed",
	"Finished", "NotAsked", "Probed", "Probing", "Progressing", "Recording", "Running", "Serving", "Starting",
	"WaitingForLearner"}

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

// TestEveryCodeHasAMessage reports each code without evidence, as a user's program may.
func TestEveryCodeHasAMessage(t *testing.T) {
	for _, code := range append(Codes(), "Unknown") {
		if (Problem{Code: code}).Message() == "" {
			t.Errorf("the message of %s is empty, want its meaning", code)
		}
	}
}
