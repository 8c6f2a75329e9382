// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance && evaluations

package dialects

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEvaluationsOfOthers evaluates the simulator's base model with lm-eval and inspect-ai, and the samples of
// config/evaluations: generated text, likelihoods of choices, and conversations.
func TestEvaluationsOfOthers(t *testing.T) {
	server := serveSums(t)
	out, err := exec.CommandContext(t.Context(), "../conformance/venv", "evaluations").Output()
	if err != nil {
		t.Fatalf("making the virtual environment: %v", err)
	}
	bin := filepath.Join(strings.TrimSpace(string(out)), "bin")
	tokenizer := filepath.Join(t.TempDir(), "base")
	base := exec.CommandContext(t.Context(), "go", "run", "../../cmd/tinkersim", "export-base", tokenizer)
	if out, err := base.CombinedOutput(); err != nil {
		t.Fatalf("writing the tokenizer: %v\n%s", err, out)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		const patience = 10 * time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "OPENAI_API_KEY=any", "HF_HUB_OFFLINE=1", "HF_DATASETS_OFFLINE=1",
			"HF_HOME="+t.TempDir())
		printed, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, printed)
		}
		return string(printed)
	}
	printed := run("lm_eval", "--model", "local-completions", "--tasks", "sums_choice,sums_generate",
		"--include_path", "config/evaluations/lm-eval", "--model_args", "model=sums,base_url="+server+
			"/v1/completions,tokenizer_backend=huggingface,tokenized_requests=False,tokenizer="+tokenizer)
	for _, want := range []string{"|sums_choice  |", "|sums_generate|"} {
		if !strings.Contains(printed, want) {
			t.Errorf("lm-eval printed\n%s\nwant a line with %s", printed, want)
		}
	}
	printed = run("inspect", "eval", "config/evaluations/inspect/sums.py", "--model", "openai/sums",
		"--model-base-url", server+"/v1", "--display", "plain", "--log-dir", t.TempDir())
	if !strings.Contains(printed, "accuracy") {
		t.Errorf("inspect printed\n%s\nwant an accuracy", printed)
	}
}
