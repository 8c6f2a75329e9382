// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
)

// alias is the name under which the simulator serves its model to tinker-cookbook, which knows this name.
const alias = "Qwen/Qwen3-8B-Base"

// The runs that are compared train on 32 groups of 8 a step.
const (
	comparedGroups    = 32
	comparedGroupSize = 8
	comparedTokens    = 16
	comparedTaskCount = 4000
)

// figures are the resources of a trainer for the steps between its first and its last optimizer step.
type figures struct {
	steps           float64
	secondsPerStep  float64
	cpuPerStep      []float64 // of each of its processes
	memory, shares  []float64 // of each of its processes, as in front, in MiB
	requestsPerStep float64
	promptTokens    float64 // in requests for samples, per step
}

func (f figures) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(f.steps, "steps")
	b.ReportMetric(3600/f.secondsPerStep, "steps/hour")
	b.ReportMetric(sum(f.cpuPerStep), "cpu-s/step")
	b.ReportMetric(sum(f.memory), "MiB")
	b.ReportMetric(sum(f.shares), "shared-once-MiB")
	b.ReportMetric(f.requestsPerStep, "requests/step")
	b.ReportMetric(f.promptTokens, "prompt-tokens/step")
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// BenchmarkClient trains as BenchmarkCookbook does, with a learner and two workers alone, and prints the resources of
// each program. MiB is the sum of the peak memory of all processes, in which a shared page counts once for each
// process; shared-once-MiB divides a page among the processes that share it. The second run has sampling.sharedPrompt.
// BENCH_STEPS (40) is the length.
func BenchmarkClient(b *testing.B) {
	steps := benchSize(b, "BENCH_STEPS", 40)
	for _, t := range []trial{{ours: true}, {ours: true, shared: true}} {
		b.Run(t.String(), func(b *testing.B) {
			for b.Loop() {
				c := newComparison(b, latency.Profile{}, steps, t)
				c.trainOurs(b)
				used := c.front.figures(b, c.steps-1, c.steps)
				used.report(b)
				b.ReportMetric(used.cpuPerStep[0], "learner-cpu-s/step")
				b.ReportMetric(used.memory[0], "learner-MiB")
				b.ReportMetric(sum(used.memory[1:])/2, "worker-MiB")
			}
		})
	}
}

// trial is one way to train.
type trial struct {
	ours   bool
	shared bool   // ours with sampling.sharedPrompt
	mode   string // of the cookbook
	next   bool   // the next version of the cookbook
	lag    int    // greatest, in steps
}

func (t trial) String() string {
	name := "cookbook-" + t.mode
	if t.next {
		name = "next-" + name
	}
	if t.ours {
		name = "tinker-operator"
	}
	if t.shared {
		name += "-shared-prompts"
	}
	return fmt.Sprintf("lag-%d/%s", t.lag, name)
}

// comparison is a simulator with the tasks of a run, and the requests of its trainer.
type comparison struct {
	*fixture
	steps, lag int
	front      *front
}

func newComparison(b *testing.B, profile latency.Profile, steps int, t trial) *comparison {
	b.Helper()
	w := newFixtureOn(b, tinkersim.Options{SessionTimeout: time.Minute, Latency: profile, Aliases: []string{alias}},
		func(f *contract.RunFile) {
			f.Fixed.Environments = []contract.Environment{arithmetic("train", comparedTaskCount, comparedGroupSize,
				comparedTokens)}
			f.Fixed.Environments[0].Sampling.SharedPrompt = new(t.shared)
			f.Fixed.Model.LoraRank = 8
			f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps = comparedGroups, int64(steps)
			f.Fixed.Algorithm.Lag = int32(t.lag)
			f.Fixed.Algorithm.Optimizer.LearningRate = 3e-4
			if t.lag > 0 {
				f.Fixed.Algorithm.Loss = algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)}
			}
			f.Concurrency, f.Evaluation = comparedGroups*comparedGroupSize*(t.lag+1), nil
		})
	c := &comparison{fixture: w, steps: steps, lag: t.lag, front: &front{}}
	server := httptest.NewServer(c.front.before(w.sim))
	b.Cleanup(server.Close)
	w.url, w.file.Capabilities.BaseURL = server.URL, server.URL // nothing is checked, as by tinker-cookbook
	return c
}

// trainOurs trains with a learner and two workers, which the front follows in this order.
func (c *comparison) trainOurs(b *testing.B) {
	b.Helper()
	f := newProcessFixtureOf(b, c.fixture)
	workers := []*process{f.startWorkerProcess("w0"), f.startWorkerProcess("w1")}
	learner := f.startLearnerProcess(1, "")
	c.front.follow(append([]*process{learner}, workers...))
	<-learner.done
	if learner.code != contract.CauseCompleted.ExitCode() {
		b.Fatalf("the learner ended with code %d", learner.code)
	}
	for _, w := range workers {
		w.signal(syscall.SIGTERM)
		<-w.done
	}
}
