// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/try"
)

// planned runs the command plan without a configured cluster.
func planned(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	none := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", none)
	var out, log bytes.Buffer
	env := cli.IO{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &log,
		Now: time.Now}
	command := NewPlan(env, cli.NewCluster(pflag.NewFlagSet("", pflag.ContinueOnError)))
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs(append([]string{"-f", "-"}, args...))
	err = command.ExecuteContext(t.Context())
	return out.String(), log.String(), err
}

func sample(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "samples", "own-data.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPlanWithoutACluster plans a run by its file, which has a RewardEnvironment and its ConfigMap, and prices it.
func TestPlanWithoutACluster(t *testing.T) {
	prices := "spec.budget={\"usd\": 5, \"prices\": [{\"model\": \"tinkersim/byte-136k\", \"promptUSDPerMillion\": 1.0, " +
		"\"sampledUSDPerMillion\": 1.0, \"trainedUSDPerMillion\": 1.0}]}"
	stdout, stderr, err := planned(t, sample(t), "-o", "json", "--set", prices,
		"--set", "spec.artifacts.claimName=runs", "--set", "spec.environments[own-data].limits.promptTokens=20")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stderr, "no cluster is configured") {
		t.Errorf("it says %q", stderr)
	}
	var got estimate
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	prompts := got.Prompts["own-data"]
	if prompts.Tasks != 32 || prompts.Mean < 10 || prompts.Longest < int64(prompts.Mean) || prompts.TooLong != 32 ||
		got.PromptTokens < int64(prompts.Mean)*got.Episodes {
		t.Errorf("prompts %+v, of all %d", prompts, got.PromptTokens)
	}
	if least := float64(got.PromptTokens+got.SampledTokens*2+got.EvaluationTokens) / 1e6; got.USD == nil ||
		*got.USD < least {
		t.Errorf("%v dollars, want %v at least", got.USD, least)
	}
}

func TestPlanWithoutAClusterRefuses(t *testing.T) {
	_, run, _ := strings.Cut(sample(t), "kind: TrainingRun")
	run = "apiVersion: rl.tinker-operator.dev/v1alpha1\nkind: TrainingRun" + run
	_, _, err := planned(t, run)
	for _, want := range []string{"set --kubeconfig", "which the file does not have"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a run alone: %v, want %q", err, want)
		}
	}
	_, _, err = planned(t, strings.Replace(sample(t), "groupSize", "groupsize", 1), "--local")
	if err == nil || !strings.Contains(err.Error(), "did you mean spec.environments[0].groupSize?") {
		t.Errorf("an unknown field: %v", err)
	}
}

// TestProbeOfPart probes none of the environments that a run names, as if the cluster had all of them.
func TestProbeOfPart(t *testing.T) {
	all, err := manifest.ParseAll([]byte(sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	local := try.Local{Run: all.Runs[0], Beside: manifest.Manifests{}}
	probed, err := local.Probe(t.Context(), cli.IO{Getenv: func(string) string { return "" }, Stderr: io.Discard},
		[]string{})
	if err != nil {
		t.Fatal(err)
	}
	defer probed.Close()
	if len(probed.Pins) > 0 {
		t.Errorf("pins %v", probed.Pins)
	}
}
