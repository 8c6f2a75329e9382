// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rubrics

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

func TestConvert(t *testing.T) {
	const first = `{"task_id": "a", "prompt": "Name	a \"red\" fruit.", "rubric - 2. criterion": "It is red.",
		"rubric-1.criterion": "It is a fruit.", "rubric - 1. criterion justification": "no", "rubric - 3. criterion": null,
		"rubric - 4. criterion": " ", "rubric - 10. criterion": "It is sweet.", "rubric - 5. weight": 3}`
	const second = `{"task_id": 7, "prompt": "p", "rubric  -  1.  criterion": "c", "notes": {"a": [1]}}`
	want := []Row{
		{TaskID: "a", Prompt: "Name\ta \"red\" fruit.", Rubrics: []string{"It is a fruit.", "It is red.", "It is sweet."}},
		{TaskID: "7", Prompt: "p", Rubrics: []string{"c"}},
	}
	for name, text := range map[string]string{
		"a list": "\t[" + first + ",\n\t" + second + "]\n", "lines": first + "\n" + second + "\n",
	} {
		got, err := Convert([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestConvertRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, names string }{
		"no JSON":          {"task", "decoding object 1"},
		"a truncated list": {`[{"task_id": "a"`, "decoding the list"},
		"more than a list": {`[] []`, "followed by more data"},
		"no task_id":       {`{"prompt": "p", "rubric - 1. criterion": "c"}`, "object 1: task_id"},
		"no prompt":        {`{"task_id": "a", "rubric - 1. criterion": "c"}`, "prompt of task a"},
		"only a justification": {`{"task_id": "a", "prompt": "p", "rubric - 1. criterion justification": "c"}`,
			"task a has no criterion"},
		"a criterion not a text": {`{"task_id": "a", "prompt": "p", "rubric - 1. criterion": 5}`, "must be a text"},
		"a number twice": {
			`{"task_id": "a", "prompt": "p", "rubric - 1. criterion": "c", "rubric-1. criterion": "d"}`, "given twice"},
	} {
		if rows, err := Convert([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.names) {
			t.Errorf("%s: Convert = %v, %v, want an error with %q", name, rows, err, tc.names)
		}
	}
}

// TestCommand writes the split that Python makes of ten tasks.
func TestCommand(t *testing.T) {
	var text, stdout bytes.Buffer
	for i := range 10 {
		fmt.Fprintf(&text, "{\"task_id\": \"t%d\", \"prompt\": \"<p>\", \"rubric - 1. criterion\": \"c\"}\n", i)
	}
	out := filepath.Join(t.TempDir(), "data")
	command := New(cli.IO{Stdin: &text, Stdout: &stdout})
	command.SetArgs([]string{"-", "--out", out})
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	if got := stdout.String(); got != "9 tasks in train.jsonl, 1 in test.jsonl\n" {
		t.Errorf("stdout is %q", got)
	}
	test, err := os.ReadFile(filepath.Join(out, "test.jsonl"))
	if want := `{"task_id":"t1","prompt":"<p>","rubrics":["c"]}` + "\n"; err != nil || string(test) != want {
		t.Errorf("test.jsonl is %q, %v, want %q", test, err, want)
	}
	train, err := os.ReadFile(filepath.Join(out, "train.jsonl"))
	if err != nil || !strings.HasPrefix(string(train), `{"task_id":"t7",`) || strings.Count(string(train), "\n") != 9 {
		t.Errorf("train.jsonl is %q, %v", train, err)
	}
}
