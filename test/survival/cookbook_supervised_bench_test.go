// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build cookbook

package survival

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// BenchmarkCookbookSupervised trains on the same conversations with the program learner and with supervised/train.py of
// tinker-cookbook, at simulators of their own, and prints the client CPU of a step of both. COOKBOOK_PYTHON is the
// Python of the cookbook's environment. BENCH_STEPS (40) is the length.
func BenchmarkCookbookSupervised(b *testing.B) {
	const goal = 0.2
	python := os.Getenv("COOKBOOK_PYTHON")
	if python == "" {
		b.Fatal("COOKBOOK_PYTHON is not set: run make bench-compare")
	}
	steps := benchSize(b, "BENCH_STEPS", 40)
	for b.Loop() {
		ours := sum(newRowComparison(b, steps).trainRows(b, steps).cpuPerStep)
		theirs := newRowComparison(b, steps).trainRowsByCookbook(b, python, steps)
		b.ReportMetric(ours, "cpu-s/step")
		b.ReportMetric(theirs, "cookbook-cpu-s/step")
		b.ReportMetric(ours/theirs, "cpu/cookbook")
		if ours > goal*theirs {
			b.Errorf("a step takes %.4f s of CPU, and %.4f s in the cookbook: want a ratio of %.1f", ours, theirs, goal)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// trainRowsByCookbook trains with supervised/train.py, and returns the CPU of a step in seconds.
func (c *comparison) trainRowsByCookbook(b *testing.B, python string, steps int) float64 {
	b.Helper()
	dir := b.TempDir()
	config, err := json.Marshal(map[string]any{
		"url": c.url, "model": tinkersim.ModelName, "renderer": comparedRenderer, "log": filepath.Join(dir, "run"),
		"file": filepath.Join(c.data, "configmap", "rows", "rows.jsonl"), "train_on": "all_assistant_messages",
		"reduction": "default", "schedule": "constant", "learning_rate": c.file.Fixed.Algorithm.Optimizer.LearningRate,
		"rank": 8, "steps": steps, "epochs": 1, "batch_size": comparedBatch, "max_length": 2000,
	})
	file := filepath.Join(dir, "config.json")
	if err == nil {
		err = os.WriteFile(file, config, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	var printed, log bytes.Buffer
	command := exec.CommandContext(b.Context(), python, "../supervised/loops.py", "supervised", file)
	command.Env, command.Stdout, command.Stderr = c.pythonEnv(), &printed, &log
	if err := command.Run(); err != nil {
		b.Fatalf("%v\n%s", err, log.Bytes()[max(0, log.Len()-4000):])
	}
	lines := bytes.Split(bytes.TrimSpace(printed.Bytes()), []byte("\n"))
	var result struct {
		CPU float64 `json:"cpu"`
	}
	if err := json.Unmarshal(lines[len(lines)-1], &result); err != nil || result.CPU <= 0 {
		b.Fatalf("%v: the cookbook printed %s", err, lines[len(lines)-1])
	}
	return result.CPU
}
