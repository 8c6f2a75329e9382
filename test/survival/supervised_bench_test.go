// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// The number of conversations in a step of the compared supervised runs, and their renderer.
const (
	comparedBatch    = 32
	comparedRenderer = "role_colon"
)

// BenchmarkSupervised trains on conversations with a learner alone, and prints its resources for a step: rows, tokens,
// requests, results and artifacts. BENCH_STEPS (40) is the length.
func BenchmarkSupervised(b *testing.B) {
	steps := benchSize(b, "BENCH_STEPS", 40)
	for b.Loop() {
		newRowComparison(b, steps).trainRows(b, steps).report(b)
	}
}

// conversations are rows of one to three questions with their answers.
func conversations(n int) string {
	var rows strings.Builder
	for i := range n {
		var messages []string
		for turn := range 1 + i%3 {
			messages = append(messages, fmt.Sprintf(`{"role": "user", "content": "What is %d plus %d?"}, `+
				`{"role": "assistant", "content": "That is %d."}`, i, turn, i+turn))
		}
		rows.WriteString(`{"messages": [` + strings.Join(messages, ", ") + "]}\n")
	}
	return rows.String()
}

// newRowComparison makes a simulator and the rows of all steps.
func newRowComparison(b *testing.B, steps int) *comparison {
	b.Helper()
	w := newFixtureOn(b, tinkersim.Options{SessionTimeout: time.Minute}, func(f *contract.RunFile) {
		withRows(f)
		f.Evaluation, f.Checkpoints.KeepBestMetric = nil, ""
		f.Fixed.Model.Renderer, f.Fixed.Model.LoraRank = comparedRenderer, 8
		f.Fixed.Supervised.Dataset.Splits = f.Fixed.Supervised.Dataset.Splits[1:]
		f.Fixed.Supervised.Dataset.Splits[0].Skip, f.Fixed.Supervised.BatchSize = 0, comparedBatch
		f.Fixed.Algorithm.Steps = int64(steps)
	})
	w.writeRows(conversations(steps * comparedBatch))
	c := &comparison{fixture: w, steps: steps, front: &front{}}
	server := httptest.NewServer(c.front.before(w.sim))
	b.Cleanup(server.Close)
	w.url, w.file.Capabilities.BaseURL = server.URL, server.URL
	return c
}

// trainRows trains with the program learner.
func (c *comparison) trainRows(b *testing.B, steps int) figures {
	b.Helper()
	f := newProcessFixtureOf(b, c.fixture)
	learner := f.startLearnerProcess(1, "")
	c.front.follow([]*process{learner})
	<-learner.done
	if learner.code != contract.CauseCompleted.ExitCode() {
		b.Fatalf("the learner ended with code %d", learner.code)
	}
	return c.front.figures(b, steps-1, steps)
}
