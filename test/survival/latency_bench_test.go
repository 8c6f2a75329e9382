// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"cmp"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
)

// hostedTimes is the profile of the hosted service, ten times as fast.
var hostedTimes = latency.Hosted.Faster(10)

// BenchmarkHosted trains 32 groups of 8 at an endpoint that takes the times of the hosted service, divided by ten. The
// bound is the time of the same steps with the drawn times of the same run and nothing else: no computation, no round
// trips, no refused requests. A run with a lag is compared with the synchronous one before it. BENCH_STEPS (40),
// BENCH_SEEDS (3) and BENCH_GROUPS (32) change the size; it prints the median.
func BenchmarkHosted(b *testing.B) {
	synchronous := map[bool]float64{}
	for _, mode := range []struct {
		name string
		run  hostedMode
		// goal is the goal of step/bound without a lag, and of synchronous/step with a lag.
		goal float64
	}{
		{"synchronous", hostedMode{}, 1.03}, {"synchronous/saves-block", hostedMode{savesBlock: true}, 1.03},
		{"lag-1", hostedMode{lag: 1}, 1.8}, {"lag-1/saves-block", hostedMode{lag: 1, savesBlock: true}, 1.8},
		{"lag-4", hostedMode{lag: 4}, 3}, {"lag-4/saves-block", hostedMode{lag: 4, savesBlock: true}, 3},
	} {
		b.Run(mode.name, func(b *testing.B) {
			var perStep, ratios []float64
			for b.Loop() {
				for seed := range benchSize(b, "BENCH_SEEDS", 3) {
					r := hostedRun(b, uint64(seed), mode.run)
					perStep, ratios = append(perStep, r.step), append(ratios, r.step/r.bound)
				}
			}
			step := median(perStep)
			b.ReportMetric(step, "s/step")
			b.ReportMetric(median(ratios), "step/bound")
			b.ReportMetric(mode.goal, "goal")
			switch before := synchronous[mode.run.savesBlock]; {
			case mode.run.lag == 0:
				synchronous[mode.run.savesBlock] = step
			case before > 0:
				b.ReportMetric(before/step, "synchronous/step")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// hostedMode says how a run of BenchmarkHosted trains.
type hostedMode struct {
	lag        int
	savesBlock bool
}

// hostedResult has the seconds of a step and its bound.
type hostedResult struct{ step, bound float64 }

func benchSize(b *testing.B, variable string, standard int) int {
	b.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(variable), strconv.Itoa(standard)))
	if err != nil || n < 1 {
		b.Fatalf("%s is %q, want a positive number", variable, os.Getenv(variable))
	}
	return n
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// hostedRun trains one run and returns the measurements of the steps from the sixth on.
func hostedRun(b *testing.B, seed uint64, mode hostedMode) hostedResult {
	b.Helper()
	steps := benchSize(b, "BENCH_STEPS", 40)
	if steps < 12 {
		b.Fatalf("BENCH_STEPS must be at least 12, since the first six steps do not count: got %v, want at least 12",
			steps)
	}
	profile := hostedTimes
	profile.SavesBlock = mode.savesBlock
	lag := mode.lag
	groups := benchSize(b, "BENCH_GROUPS", 32)
	events := &eventLog{batch: groups * hostedGroupSize}
	config := tinker.DefaultServerConfig()
	config.ParallelChunks, config.UsePyqwestTransport = false, false
	w := newFixtureOn(b, tinkersim.Options{SessionTimeout: time.Minute, Config: &config, Latency: profile,
		LatencyObserver: events.add}, func(f *contract.RunFile) {
		f.Fixed.Environments = []contract.Environment{arithmetic("train", 4000, hostedGroupSize, 16)}
		f.Fixed.Model.LoraRank = 8
		f.Fixed.Algorithm.TasksPerStep, f.Fixed.Algorithm.Steps = int32(groups), int64(steps)
		f.Fixed.Algorithm.Lag = int32(lag)
		f.Fixed.Algorithm.Seed = int64(seed)
		f.Fixed.Algorithm.Optimizer.LearningRate = 3e-4
		f.Fixed.Algorithm.Loss = algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)}
		f.Concurrency, f.Evaluation = events.batch*(lag+1), nil
	})
	w.startRolloutWorker("w0")
	w.startRolloutWorker("w1")
	a := w.startLearner(1, nil)
	<-a.done
	if a.verdict.Cause != contract.CauseCompleted {
		b.Fatalf("the learner ended with %s: %s", a.verdict.Cause, a.verdict.Message)
	}
	trained, ideal := events.of(tinker.TypeOptimStep), events.ideal(b, profile, lag, steps)
	if len(trained) != steps {
		b.Fatalf("%d optimizer steps, want %d", len(trained), steps)
	}
	const first = 5
	between := func(times func(int) time.Time) float64 {
		return times(steps-1).Sub(times(first)).Seconds() / float64(steps-1-first)
	}
	return hostedResult{
		step:  between(func(i int) time.Time { return trained[i].Ended }),
		bound: between(func(i int) time.Time { return ideal[i] }),
	}
}

// hostedGroupSize is the number of samples of a group.
const hostedGroupSize = 8

// eventLog collects the operations of a simulator.
type eventLog struct {
	// batch is the number of samples of a step.
	batch int

	mu     sync.Mutex
	events []latency.Event
}

func (l *eventLog) add(e latency.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// of returns the events of an operation in the order of their ends.
func (l *eventLog) of(op string) []latency.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []latency.Event
	for _, e := range l.events {
		if e.Op == op {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b latency.Event) int { return a.Ended.Compare(b.Ended) })
	return found
}

// ideal returns when each optimizer step would have ended by the times of the profile alone, counted from the moment
// at which the first sampler was ready. All samples of a batch begin when its version can be sampled from. Training
// begins at a multiple of the cycle, when all samples have ended and the step before is trained. A version can be
// sampled from when its save is done. Saves are executed concurrently with training unless they block.
func (l *eventLog) ideal(b *testing.B, profile latency.Profile, lag, steps int) []time.Time {
	b.Helper()
	longest := l.longestSamples(b, lag, steps)
	sequences := l.sequencesOfSteps(steps)
	announced := []time.Time{l.of(tinker.TypeSaveSampler)[0].Ended}
	free := announced[0] // when the model may begin its next operation
	var ended []time.Time
	for step := range steps {
		sampled := announced[max(0, step-lag)].Add(longest[step])
		begin := profile.NextCycle(later(sampled, free))
		end := begin.Add(time.Duration(sequences[step])*profile.Sequence + profile.OptimStep)
		ended = append(ended, end)
		announced = append(announced, end.Add(profile.SaveSampler))
		free = end
		if profile.SavesBlock {
			free = end.Add(profile.SaveSampler + profile.SaveState)
		}
	}
	return ended
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// longestSamples returns the longest time of a sample of each batch. A batch has the samples of one version, except
// that version 0 has the samples of the first lag + 1 batches, which are leased in their order.
func (l *eventLog) longestSamples(b *testing.B, lag, steps int) []time.Duration {
	b.Helper()
	samples := l.of(state.OpSample)
	slices.SortStableFunc(samples, func(x, y latency.Event) int {
		return cmp.Or(cmp.Compare(versionOf(b, x.Name), versionOf(b, y.Name)), x.Arrived.Compare(y.Arrived))
	})
	if len(samples) != steps*l.batch {
		b.Fatalf("%d samples of %d steps, want %d of each", len(samples), steps, l.batch)
	}
	longest := make([]time.Duration, steps)
	for i, e := range samples {
		longest[i/l.batch] = max(longest[i/l.batch], e.Ended.Sub(e.Begun))
	}
	return longest
}

// versionOf returns the version whose sampler weights a path names.
func versionOf(b *testing.B, sampler string) int64 {
	b.Helper()
	name, err := rl.ParseCheckpointName(path.Base(sampler))
	if err != nil {
		b.Fatal(err)
	}
	return name.Step
}

// sequencesOfSteps returns how many sequences each step trained on.
func (l *eventLog) sequencesOfSteps(steps int) []int {
	trained := l.of(tinker.TypeOptimStep)
	sequences := make([]int, steps)
	for _, e := range l.of(state.OpForwardBackward) {
		step, _ := slices.BinarySearchFunc(trained, e.Ended,
			func(t latency.Event, at time.Time) int { return t.Ended.Compare(at) })
		sequences[step] += e.Sequences
	}
	return sequences
}
