// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/test/sample"
)

// learningSample is a sample whose policy must learn.
type learningSample struct {
	file string
	// metrics of the evaluation that must rise.
	metrics []string
	// tasks that are evaluated, and samples of each.
	tasks   int64
	samples int
}

// BenchmarkSolverJudge measures what both roles of the sample solver-judge.yaml learn.
func BenchmarkSolverJudge(b *testing.B) {
	learningSample{
		file: "solver-judge.yaml", metrics: []string{"env/countdown/solver_acc", "env/countdown/judge_acc"}, tasks: 512, samples: 1,
	}.measure(b)
}

// BenchmarkRubrics measures what the policy of the sample rlvr.yaml learns by its judge.
func BenchmarkRubrics(b *testing.B) {
	learningSample{file: "rlvr.yaml", metrics: []string{"env/rlvr/pass_rate"}, tasks: 128, samples: 4}.measure(b)
}

// measure trains the sample with three seeds, and as a control with shuffled rewards. Each metric of held-out tasks must rise by
// at least 0.15 with each seed, and the control's mean must not change by more than 0.05.
func (l learningSample) measure(b *testing.B) {
	const seeds = 3
	for b.Loop() {
		control := map[string]float64{}
		least := map[string]float64{}
		for seed := range int64(seeds) {
			for name, rise := range l.train(b, seed, false) {
				if before, ok := least[name]; !ok || rise < before {
					least[name] = rise
				}
			}
			for name, rise := range l.train(b, seed, true) {
				control[name] += rise / seeds
			}
		}
		for _, name := range l.metrics {
			b.ReportMetric(least[name], path.Base(name)+"-rise")
			b.ReportMetric(control[name], path.Base(name)+"-rise-shuffled")
			if least[name] < 0.15 {
				b.Errorf("%s rose by %.3f with one of the seeds, want 0.15 with each", name, least[name])
			}
			if control[name] < -0.05 || control[name] > 0.05 {
				b.Errorf("%s changed by %.3f with shuffled rewards, want at most 0.05", name, control[name])
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}

// train trains the sample and returns how much its metrics rose.
func (l learningSample) train(b *testing.B, seed int64, shuffled bool) map[string]float64 {
	b.Helper()
	s, root := sample.Read(b, l.file), b.TempDir()
	s.WriteConfigMaps(b, root)
	builder := registry.Builder{Data: source.New(source.Config{Root: root, Dir: b.TempDir(), Space: 1 << 24, Now: time.Now}).Open}
	file := s.RunFile(b, s.Pins(b, builder))
	w := newFixture(b, func(f *contract.RunFile) {
		f.Fixed, f.Evaluation, f.Concurrency = file.Fixed, file.Evaluation, file.Concurrency
		f.Fixed.Algorithm.Seed, f.Fixed.Model.Seed = seed, seed
		f.Evaluation.EverySteps = 0
		env := &f.Evaluation.Environments[0]
		env.Splits[0].Tasks, env.GroupSize = l.tasks, l.samples
	})
	worker := judgedWorker{builder: builder}
	if shuffled {
		earlier := &earlierRewards{byRole: map[string][]float64{}}
		worker.environments = func(b registry.Builder) rollout.Builder { return shufflingBuilder{b, earlier} }
	}
	for i := range 2 {
		w.startJudgedWorkerOf(fmt.Sprintf("w%d", i), worker)
	}
	learner := w.startLearner(1, nil)
	<-learner.done // however long that takes
	w.waitFor(learner, contract.CauseCompleted)
	rise := map[string]float64{}
	for _, name := range l.metrics {
		before, after := w.evaluated(0, "test/"+name), w.evaluated(w.file.Fixed.Algorithm.Steps, "test/"+name)
		b.Logf("seed %d, shuffled rewards: %v: %s from %.3f to %.3f", seed, shuffled, name, before, after)
		rise[name] = after - before
	}
	return rise
}

// shufflingBuilder builds environments in which each conversation gets the reward of an earlier one of its role. Metrics stay as
// they are. Which reward a conversation gets depends on the order in which the workers' episodes end.
type shufflingBuilder struct {
	registry.Builder
	earlier *earlierRewards
}

// Build implements rollout.Builder.
func (s shufflingBuilder) Build(ctx context.Context, definition contract.Definition) (environment.Environment, error) {
	env, err := s.Builder.Build(ctx, definition)
	return &shufflingEnvironment{Environment: env, earlier: s.earlier}, err
}

// earlierRewards are rewards by role that wait for a conversation.
type earlierRewards struct {
	mu     sync.Mutex
	byRole map[string][]float64
}

// exchange stores a reward and returns another of the same role at random.
func (e *earlierRewards) exchange(role string, reward float64, random *rand.Rand) float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	waiting := append(e.byRole[role], reward)
	i, last := random.IntN(len(waiting)), len(waiting)-1
	drawn := waiting[i]
	if last >= 64 {
		waiting[i] = waiting[last]
		waiting = waiting[:last]
	}
	e.byRole[role] = waiting
	return drawn
}

type shufflingEnvironment struct {
	environment.Environment
	earlier *earlierRewards
}

// Start implements environment.Environment.
func (e *shufflingEnvironment) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	episode, err := e.Environment.Start(ctx, task)
	return &shufflingEpisode{Episode: episode, earlier: e.earlier, random: rand.New(rand.NewPCG(task.Seed, 1))}, err
}

type shufflingEpisode struct {
	environment.Episode
	earlier *earlierRewards
	random  *rand.Rand
}

// Step implements environment.Episode.
func (e *shufflingEpisode) Step(ctx context.Context, replies []environment.Reply) (environment.Turn, error) {
	turn, err := e.Episode.Step(ctx, replies)
	for i, reward := range turn.Rewards {
		turn.Rewards[i].Value = e.earlier.exchange(replies[0].Role, reward.Value, e.random)
	}
	return turn, err
}
