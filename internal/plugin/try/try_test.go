// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/try"
	"github.com/tinker-operator/tinker-operator/internal/runner/command"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

const sample = "../../../config/samples/arithmetic.yaml"

func TestMain(m *testing.M) {
	if command.IsRunner(os.Args) { // a trial has started this program again
		os.Exit(command.Main(os.Args[1:], os.Getenv))
	}
	os.Exit(m.Run())
}

// call runs the command and returns its output.
func call(t *testing.T, variables map[string]string, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return callWith(t.Context(), variables, stdin, args...)
}

// callWith is like call, but with a context. The end of the context is an interrupt.
func callWith(ctx context.Context, variables map[string]string, stdin string,
	args ...string) (stdout, stderr string, err error) {
	var out, errors bytes.Buffer
	command := try.New(cli.IO{
		Getenv: func(name string) string { return variables[name] }, Stdin: strings.NewReader(stdin), Stdout: &out,
		Stderr: &errors, Now: time.Now,
	})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetOut(io.Discard)
	command.SetArgs(args)
	err = command.ExecuteContext(ctx)
	return out.String(), errors.String(), err
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// environment returns the RewardEnvironment of the sample alone.
func environment(t *testing.T) string {
	t.Helper()
	first, _, _ := strings.Cut(read(t, sample), "---\n")
	return first
}

func TestTryPlaysEpisodesOfAnEnvironment(t *testing.T) {
	stdout, stderr, err := call(t, nil, environment(t), "-f", "-", "--episodes", "3", "--max-tokens", "16", "-o", "json")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var groups []transcript.Group
	if err := json.Unmarshal([]byte(stdout), &groups); err != nil {
		t.Fatal(err)
	}
	if len(groups) != 3 {
		t.Fatalf("%d episodes, want 3", len(groups))
	}
	for _, g := range groups {
		messages := g.Episodes[0].Conversations[0].Messages
		if len(messages) != 2 || !strings.HasPrefix(messages[0].Text, "What is ") || messages[1].Reply != 1 {
			t.Errorf("slot %d has the conversation %+v", g.Slot, messages)
		}
	}
	if _, stderr, err := call(t, nil, environment(t), "-f", "-", "--episodes", "1", "--max-tokens", "4"); err != nil ||
		!strings.Contains(stderr, "\n1 episode, pass@1 0, mean reward") {
		t.Errorf("one episode: %v\n%s", err, stderr)
	}
	if stdout, _, err := call(t, nil, environment(t), "-f", "-", "--episodes", "2", "--max-tokens", "4", "-o",
		"plain"); err != nil || strings.Count(stdout, "\n") != 3 || !strings.HasPrefix(stdout, "STEP\tSLOT\t") {
		t.Errorf("two episodes as plain lines: %v\n%s", err, stdout)
	}
	if !strings.Contains(stderr, "train=7994") || !strings.Contains(stderr, "3 episodes, pass@1 0") {
		t.Errorf("the standard error is %s", stderr)
	}
}

func TestTryTrainsStepsOfARun(t *testing.T) {
	small := strings.Replace(read(t, sample), "tasksPerStep: 32", "tasksPerStep: 3", 1)
	stdout, stderr, err := call(t, nil, small, "-f", "-", "--steps", "1")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	for _, want := range []string{"step 1, sampled by version 0", "user: What is", "assistant: ", "reward"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output lacks %q:\n%s", want, stdout)
		}
	}
	for _, want := range []string{
		`step 1 of 1: reward \S+, groups with a gradient \d+%, loss \S+, entropy \S+`,
		`pass@1 \S+, pass@8 \S+ of the last step's 3 tasks`,
	} {
		if !regexp.MustCompile(want).MatchString(stderr) {
			t.Errorf("the standard error lacks %q:\n%s", want, stderr)
		}
	}
	stdout, stderr, err = call(t, nil, small, "-f", "-", "--steps", "1", "-o", "plain")
	if lines := strings.Count(stdout, "\n"); err != nil || lines < 2 || !strings.Contains(stdout, "\n1\t0\tarithmetic\t") {
		t.Errorf("a step as plain lines: %v\n%s\n%s", err, stdout, stderr)
	}
}

// endpoint serves a simulator that accepts the key tml-right, and returns its URL.
func endpoint(t *testing.T) string {
	t.Helper()
	_, url := simulator(t)
	return url
}

// simulator serves a simulator as endpoint does, and returns it with its URL.
func simulator(t *testing.T) (*tinkersim.Server, string) {
	t.Helper()
	sim, err := tinkersim.New(tinkersim.Options{Dir: t.TempDir(), APIKey: "tml-right"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim)
	t.Cleanup(func() {
		sim.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return sim, server.URL
}

func TestTryOnAnEndpoint(t *testing.T) {
	sim, url := simulator(t)
	args := []string{"-f", "-", "--url", url, "--episodes", "1", "--max-tokens", "16"}
	if stdout, stderr, err := call(t, map[string]string{"TINKER_API_KEY": "tml-right"}, environment(t),
		args...); err != nil || !strings.Contains(stdout, "assistant:") {
		t.Errorf("with the right key: %v\n%s%s", err, stdout, stderr)
	}
	if calls := sim.Stats().Calls; calls["create_session"] != 1 || calls["finish_session"] != 1 {
		t.Errorf("%d sessions are created and %d finished, want one", calls["create_session"], calls["finish_session"])
	}
	if _, _, err := call(t, map[string]string{"TINKER_API_KEY": "tml-wrong"}, environment(t), args...); err == nil ||
		!strings.Contains(err.Error(), "TINKER_API_KEY") {
		t.Errorf("with a wrong key the error is %v, want one that names the variable", err)
	}
}

// TestTryAsksBeforeItBuys names an endpoint that is not on this machine, without a terminal at which to ask.
func TestTryAsksBeforeItBuys(t *testing.T) {
	args := []string{"-f", "-", "--url", "http://tinker.invalid"}
	key := map[string]string{"TINKER_API_KEY": "tml-right"}
	if _, _, err := call(t, key, environment(t), args...); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("the error is %v, want one that names --yes", err)
	}
}

// TestTryEndsAtTheBudget trains at an endpoint until the run's budget is reached.
func TestTryEndsAtTheBudget(t *testing.T) {
	run := strings.Replace(read(t, sample), "  tinker:\n", "  artifacts: {url: s3://elsewhere/runs}\n"+
		"  budget: {tokens: 1000}\n  tinker:\n", 1)
	_, stderr, err := call(t, map[string]string{"TINKER_API_KEY": "tml-right"}, run, "-f", "-", "--url", endpoint(t),
		"--steps", "3")
	if err == nil || !strings.Contains(err.Error(), "BudgetReached") ||
		!strings.Contains(err.Error(), "budget.tokens (1000)") {
		t.Errorf("the error is %v, want that the budget of 1000 tokens is reached\n%s", err, stderr)
	}
}

func TestTryReadsFoldersAndConfigMaps(t *testing.T) {
	object := `apiVersion: rl.tinker-operator.dev/v1alpha1
kind: RewardEnvironment
metadata: {name: own}
spec:
  dataset:
    jsonl: {configMapRef: {name: rows}}
    fields: {answer: sum}
    prompt: $(question)
    splits: [{name: train, source: rows.jsonl}]
  reward:
    expression: 'reply.lastNumber() == double(row.answer) ? 1.0 : 0.0'
`
	row := `{"question": "What is 5 + 85?", "sum": 90}`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rows.jsonl"), []byte(row+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := call(t, nil, object, "-f", "-", "--episodes", "1", "--max-tokens", "16", "--data",
		"rows="+dir); err != nil {
		t.Errorf("with a folder: %v\n%s", err, stderr)
	}
	withMap := object + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: rows}\ndata:\n  rows.jsonl: |\n    " +
		row + "\n"
	if _, stderr, err := call(t, nil, withMap, "-f", "-", "--episodes", "1", "--max-tokens", "16"); err != nil {
		t.Errorf("with a ConfigMap in the file: %v\n%s", err, stderr)
	}
	if _, _, err := call(t, nil, object, "-f", "-"); err == nil || !strings.Contains(err.Error(), "--data rows=DIR") {
		t.Errorf("without the rows the error is %v, want one that names --data", err)
	}
}

func TestTryRefusesBadInput(t *testing.T) {
	run, one := read(t, sample), environment(t)
	image := "apiVersion: rl.tinker-operator.dev/v1alpha1\nkind: RewardEnvironment\nmetadata: {name: e}\nspec: {ors: " +
		"{server: {image: x}}}\n"
	replace := func(old, with string) string { return strings.Replace(run, old, with, 1) }
	cases := map[string]struct {
		file string
		args []string
		want []string
	}{
		"unknown field": {replace("groupSize", "groupSzie"), nil,
			[]string{"groupSzie", "did you mean", "groupSize"}},
		"value out of range": {replace("3.0e-4", "-1"), nil, []string{"spec.algorithm.optimizer.learningRate"}},
		"rule of the schema": {replace("sampling: {maxTokens: 16}", ""), nil, []string{"sampling.maxTokens is needed"}},
		"expression": {strings.Replace(one, "exactMatch: {}", "expression: 'reply.lastNumbr()'", 1), nil,
			[]string{"spec.reward.expression", "lastNumbr"}},
		"type of an expression": {strings.Replace(one, "exactMatch: {}", "expression: '1.0 + \"a\"'", 1), nil,
			[]string{"spec.reward.expression"}},
		"missing environment": {strings.Replace(run, "name: arithmetic", "name: other", 1), nil,
			[]string{`RewardEnvironment "arithmetic"`, "same file"}},
		"model of the simulator": {replace("tinkersim/byte-136k", "Qwen/Qwen3-8B"), nil,
			[]string{"spec.model.name", "--url", "--model"}},
		"image":             {image, nil, []string{"--ors e=http://"}},
		"server of nothing": {one, []string{"--ors", "x=http://h"}, []string{"--ors", `no RewardEnvironment "x"`}},
		"name that is a path": {one, []string{"--data", "../../../escaped=" + os.TempDir()},
			[]string{"--data", "NAME=DIR"}},
		"object that is a path": {one + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " +
			"../../../escaped}\ndata: {a: b}\n", nil, []string{"ConfigMap", "not a valid name"}},
		"checkpoint of a run": {run, []string{"--checkpoint", "tinker://r/sampler_weights/x"},
			[]string{"--checkpoint", "--episodes"}},
		"budget without artifacts": {strings.Replace(replace("tinkersim/byte-136k", "Qwen/Qwen3-8B"), "  algorithm:\n",
			"  artifacts: {claimName: runs}\n  budget: {tokens: 1000}\n  tracking: {wandb: {project: p, apiKeySecretKeyRef: "+
				"{name: w, key: k}}}\n  algorithm:\n", 1),
			nil, []string{"spec.model.name: the simulator"}},
		"folder":     {one, []string{"--data", "x=/does/not/exist"}, []string{"--data", "not a folder"}},
		"key":        {one, []string{"--url", "http://127.0.0.1:1"}, []string{"TINKER_API_KEY"}},
		"URL":        {one, []string{"--url", "localhost"}, []string{"--url", "http://"}},
		"other kind": {"apiVersion: v1\nkind: Pod\n", nil, []string{"apiVersion", "kubectl apply"}},
		"no file":    {"", nil, []string{"no RewardEnvironment"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			variables := map[string]string{}
			if name == "URL" {
				variables["TINKER_API_KEY"] = "tml-x"
			}
			_, _, err := call(t, variables, tc.file, append([]string{"-f", "-"}, tc.args...)...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want it to have %q", err, want)
				}
			}
		})
	}
}

// TestAdviceOnData checks that the error says how to give a ConfigMap if the command does not have it, and not if its
// contents are wrong.
func TestAdviceOnData(t *testing.T) {
	own := `apiVersion: rl.tinker-operator.dev/v1alpha1
kind: RewardEnvironment
metadata: {name: own}
spec:
  dataset: {jsonl: {configMapRef: {name: rows}}, prompt: "$(question)", splits: [{name: train, source: rows.jsonl}]}
  reward: {exactMatch: {}}
`
	const advice = "give its files with --data rows=DIR"
	if _, _, err := call(t, nil, own, "-f", "-"); err == nil || !strings.Contains(err.Error(), advice) {
		t.Errorf("without the ConfigMap the error is %v, want it to have %q", err, advice)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rows.jsonl"), []byte(`{"questio":"1+1","answer":"2"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := call(t, nil, own, "-f", "-", "--data", "rows="+dir)
	if err == nil || !strings.Contains(err.Error(), `row 1 of rows.jsonl has no column "question"`) ||
		strings.Contains(err.Error(), "--data") {
		t.Errorf("with a row without the column the error is %v, want it to name row and column, and not --data", err)
	}
}

// TestTryShowsTheDistanceFromTheTeacher prints the distance from the teacher, which no reward shows.
func TestTryShowsTheDistanceFromTheTeacher(t *testing.T) {
	_, stderr, err := call(t, nil, read(t, "../../../config/samples/distillation.yaml"), "-f", "-", "--steps", "1")
	if err != nil || !regexp.MustCompile(`step 1 of 1: .*, teacher_kl 0\.`).MatchString(stderr) {
		t.Errorf("%v, and the standard error is\n%s\nwant teacher_kl of step 1", err, stderr)
	}
}

// TestTryEndsForAMissingTeacher checks that a trial ends where a run would wait for a repair.
func TestTryEndsForAMissingTeacher(t *testing.T) {
	const missing = `checkpoint: "tinker://0034d8c9-0a88-52a9-b2b7-bce7cb1e6fef:train:0/sampler_weights/s"`
	file := strings.Replace(read(t, "../../../config/samples/distillation.yaml"), "model: tinkersim/byte-136k-sums",
		missing, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	_, _, err := callWith(ctx, nil, file, "-f", "-", "--steps", "1")
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "environments[sums].teacher.checkpoint") {
		t.Errorf("error is %v, want one that names environments[sums].teacher.checkpoint", err)
	}
}

// TestStepsNeedARun checks that steps of a file that has no run are refused: episodes would be played instead of them.
func TestStepsNeedARun(t *testing.T) {
	environment, _, _ := strings.Cut(read(t, sample), "---\n")
	_, _, err := call(t, nil, environment, "-f", "-", "--steps", "3")
	if err == nil || !strings.Contains(err.Error(), "the file has none: add the run, or give --episodes") {
		t.Errorf("the error is %v", err)
	}
}
