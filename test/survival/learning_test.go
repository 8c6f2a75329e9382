// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/test/sample"
)

// learningSample is a sample whose policy must learn.
type learningSample struct {
	file string
	// metrics are the metrics of the evaluation that must rise.
	metrics []string
	// tasks is the number of tasks that are evaluated, and samples the number of samples of each.
	tasks   int64
	samples int
	// python says that the sample's environment is code in Python.
	python bool
	// change changes the run; nil means no change. rows are the rows of the run's ConfigMap; empty if there is none.
	change func(*contract.RunFile)
	rows   string
	// alter changes the objects of the sample before they are used; nil means no change.
	alter func(*sample.Sample)
	// begin makes a fixture, trains the weights that the run begins with, and returns their state; nil means the base
	// model.
	begin func(b *testing.B, seed int64) (w *fixture, state string)
}

// BenchmarkSolverJudge measures the learning of both roles of the sample solver-judge.yaml.
func BenchmarkSolverJudge(b *testing.B) {
	learningSample{
		file: "solver-judge.yaml", metrics: []string{"env/countdown/solver_acc", "env/countdown/judge_acc"}, tasks: 512,
		samples: 1,
	}.measure(b)
}

// BenchmarkRubrics measures the learning of the sample rlvr.yaml by its judge.
func BenchmarkRubrics(b *testing.B) {
	learningSample{file: "rlvr.yaml", metrics: []string{"env/rlvr/pass_rate"}, tasks: 128, samples: 4}.measure(b)
}

// BenchmarkPythonReward measures the learning of the sample python-reward.yaml by a function in Python.
func BenchmarkPythonReward(b *testing.B) {
	learningSample{
		file: "python-reward.yaml", metrics: []string{"pass@1"}, tasks: 512, samples: 1, python: true,
	}.measure(b)
}

// digitSums is the number of held-out sums of two digits.
const digitSums = 21

// BenchmarkPythonEnvironment measures the learning of the sample python-environment.yaml in its episodes.
func BenchmarkPythonEnvironment(b *testing.B) {
	learningSample{
		file: "python-environment.yaml", metrics: []string{"pass@1"}, tasks: digitSums, samples: 24, python: true,
	}.measure(b)
}

// BenchmarkSelfPlay measures the learning of the sample self-play.yaml, whose policy plays against itself.
func BenchmarkSelfPlay(b *testing.B) {
	learningSample{
		file: "self-play.yaml", metrics: []string{"pass@1"}, tasks: digitSums, samples: 24, python: true,
	}.measure(b)
}

// BenchmarkCookbookSample measures the learning of the sample cookbook.yaml, whose environment is the cookbook's own.
// The variable COOKBOOK_BENCH_PYTHON names a Python that has the packages of the sample's image.
func BenchmarkCookbookSample(b *testing.B) {
	python := os.Getenv("COOKBOOK_BENCH_PYTHON")
	if python == "" {
		b.Skip("COOKBOOK_BENCH_PYTHON is not set")
	}
	folder, err := filepath.Abs("../../config/samples/environments/cookbook")
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv("PATH", filepath.Dir(python)+":"+os.Getenv("PATH"))
	b.Setenv("PYTHONPATH", folder)
	b.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	b.Setenv("HF_HUB_OFFLINE", "1")
	learningSample{
		file: "cookbook.yaml", metrics: []string{"env/cookbook/cookbook_correct"}, tasks: 8, samples: 8, python: true,
	}.measure(b)
}

// BenchmarkDistillation measures the gain of half the steps of the sample distillation.yaml, with three seeds, and as a
// control with the policy's own base model as the teacher, which knows nothing more.
func BenchmarkDistillation(b *testing.B) {
	const seeds, wanted, bound = 3, 0.1, 0.05
	l := learningSample{file: "distillation.yaml", metrics: []string{"pass@1"}, tasks: 512, samples: 1}
	teachers := func(f *contract.RunFile, model string) {
		f.Steps /= 2
		f.Fixed.Environments[0].Teacher.Model = cmp.Or(model, f.Fixed.Environments[0].Teacher.Model)
	}
	for b.Loop() {
		least, mean := math.Inf(1), 0.0
		for seed := range int64(seeds) {
			l.change = func(f *contract.RunFile) { teachers(f, "") }
			least = min(least, l.train(b, seed, false)["pass@1"].rise())
			l.change = func(f *contract.RunFile) { teachers(f, f.Fixed.Model.Name) }
			mean += l.train(b, seed, false)["pass@1"].rise() / seeds
		}
		b.ReportMetric(least, "pass@1-rise")
		b.ReportMetric(mean, "pass@1-rise-own-teacher")
		if least < wanted || math.Abs(mean) > bound {
			b.Errorf("pass@1 rose by %.3f with one of the seeds and by %.3f with the policy's own base as teacher, want "+
				"%.2f and at most %.2f", least, mean, wanted, bound)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// change is the change of a metric of held-out tasks between the first and the last weights of a run.
type change struct {
	before, after float64
	// error is half the width of the 95% confidence interval of the difference, as if each evaluation had drawn its own
	// tasks.
	error float64
}

func (c change) rise() float64 { return c.after - c.before }

// measure trains the sample with three seeds, and as a control with shuffled rewards. Each metric of held-out tasks
// must rise by at least 0.15 with each seed. The controls' mean change may be at most 0.05, and no control's change
// may exceed 0.05 by more than the uncertainty that the held-out tasks leave.
func (l learningSample) measure(b *testing.B) {
	const seeds, wanted, bound = 3, 0.15, 0.05
	for b.Loop() {
		least, most, mean := map[string]float64{}, map[string]float64{}, map[string]float64{}
		for seed := range int64(seeds) {
			for name, c := range l.train(b, seed, false) {
				if rise, ok := least[name]; !ok || c.rise() < rise {
					least[name] = c.rise()
				}
			}
			for name, c := range l.train(b, seed, true) {
				mean[name] += c.rise() / seeds
				most[name] = max(most[name], math.Abs(c.rise()))
				if beyond := l.drift(c.rise()) - bound; beyond > c.error {
					b.Errorf("%s changed by %.3f +- %.3f with shuffled rewards and seed %d, want at most %.2f", name, c.rise(),
						c.error, seed, bound)
				}
			}
		}
		for _, name := range l.metrics {
			b.ReportMetric(least[name], path.Base(name)+"-rise")
			b.ReportMetric(mean[name], path.Base(name)+"-rise-shuffled")
			b.ReportMetric(most[name], path.Base(name)+"-most-shuffled")
			if least[name] < wanted {
				b.Errorf("%s rose by %.3f with one of the seeds, want %.2f with each", name, least[name], wanted)
			}
			if l.drift(mean[name]) > bound {
				b.Errorf("%s changed by %.3f with shuffled rewards, want at most %.2f", name, mean[name], bound)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}

// drift returns the part of a control's change that measure bounds. For a run that begins with the weights of another
// run, this is only a rise: the run may forget what the weights knew.
func (l learningSample) drift(rise float64) float64 {
	if l.begin != nil {
		return rise
	}
	return math.Abs(rise)
}

// train trains the sample and returns how its metrics changed.
func (l learningSample) train(b *testing.B, seed int64, shuffled bool) map[string]change {
	b.Helper()
	s, root := sample.Read(b, l.file), b.TempDir()
	if l.alter != nil {
		l.alter(&s)
	}
	s.WriteConfigMaps(b, root)
	builder := registry.Builder{Data: source.New(source.Config{Root: root, Dir: b.TempDir(), Space: 1 << 24}).Open}
	if l.python {
		host := &pythonreward.Host{Socket: startRunner(b).socket(), InheritEnv: true, Env: variablesOf(s)}
		sandbox := &pythonreward.Host{Socket: host.Socket}
		b.Cleanup(host.Close)
		b.Cleanup(sandbox.Close)
		builder.Programs = func(contract.Definition) *pythonreward.Host { return host }
		builder.Sandboxes = func(contract.Definition) *pythonreward.Host { return sandbox }
	}
	file := s.RunFile(b, s.Pins(b, builder))
	configure := func(f *contract.RunFile) {
		f.Fixed, f.Evaluation, f.Concurrency, f.Steps = file.Fixed, file.Evaluation, file.Concurrency, file.Steps
		f.Fixed.Algorithm.Seed, f.Fixed.Model.Seed = seed, seed
		f.Evaluation.EverySteps = 0
		env := &f.Evaluation.Environments[0]
		env.Splits[0].Tasks, env.GroupSize = l.tasks, l.samples
		if l.change != nil {
			l.change(f)
		}
	}
	w := l.prepare(b, seed, configure)
	if l.rows != "" {
		w.writeRows(l.rows)
	}
	worker := judgedWorker{builder: builder}
	if shuffled {
		worker.learner = func(inner rollout.Learner) rollout.Learner { return shufflingLearner{inner} }
	}
	for i := range 2 {
		w.startJudgedWorkerOf(fmt.Sprintf("w%d", i), worker)
	}
	learner := w.startLearner(1, nil)
	<-learner.done // however long that takes
	w.waitFor(learner, contract.CauseCompleted)
	changes := map[string]change{}
	for _, name := range l.metrics {
		steps := w.file.Algorithm().Steps
		c := change{
			before: w.evaluated(0, "test/"+name), after: w.evaluated(steps, "test/"+name),
			error: math.Hypot(w.halfWidth(0, "test/"+name), w.halfWidth(steps, "test/"+name)),
		}
		b.Logf("seed %d, shuffled rewards: %v: %s from %.3f to %.3f, a change of %.3f +- %.3f", seed, shuffled, name,
			c.before, c.after, c.rise(), c.error)
		changes[name] = c
	}
	return changes
}

// prepare returns a fixture with the run, after it has trained the weights that the run begins with.
func (l learningSample) prepare(b *testing.B, seed int64, configure func(*contract.RunFile)) *fixture {
	b.Helper()
	if l.begin == nil {
		return newFixture(b, configure)
	}
	w, state := l.begin(b, seed)
	w.beginNext(state, func(f *contract.RunFile) {
		first := f.Fixed.InitFrom
		configure(f)
		f.Fixed.InitFrom = first
	})
	return w
}

// variablesOf returns the variables of the programs of a sample's environment.
func variablesOf(s sample.Sample) map[string]string {
	variables := map[string]string{}
	if execution := s.Environments[0].Spec.Execution; execution != nil {
		for _, v := range execution.Env {
			variables[v.Name] = v.Value
		}
	}
	return variables
}

// halfWidth returns half the width of the confidence interval of a metric of an evaluation; 0 for the metric of
// held-out rows, which has no interval.
func (w *fixture) halfWidth(step int64, name string) float64 {
	w.t.Helper()
	if name == contract.MetricHeldOutNLL {
		return 0
	}
	return (w.evaluated(step, name+"/ci95_high") - w.evaluated(step, name+"/ci95_low")) / 2
}

// shufflingLearner submits the groups of a worker with the rewards of each role exchanged among the trajectories of
// that role, so that a reward says nothing about its trajectory. Metrics stay as they are, and so do evaluations. The
// order of rewards follows from the group's slot alone.
type shufflingLearner struct {
	rollout.Learner
}

// Submit implements rollout.Learner.
func (s shufflingLearner) Submit(ctx context.Context, encoded exchange.EncodedGroup) (*exchange.SubmitReply, error) {
	if encoded.Key.Kind != rl.Train {
		return s.Learner.Submit(ctx, encoded)
	}
	group, err := exchange.DecodeGroup(encoded.Message)
	if err != nil {
		return nil, err
	}
	shuffleRewards(group)
	if encoded, err = exchange.EncodeGroup(group); err != nil {
		return nil, err
	}
	return s.Learner.Submit(ctx, encoded)
}

// shuffleRewards exchanges the rewards of a group's trajectories at random within each role.
func shuffleRewards(group rl.Group) {
	byRole := map[string][]*float64{}
	var roles []string
	for m := range group.Members {
		for i := range group.Members[m].Trajectories {
			trajectory := &group.Members[m].Trajectories[i]
			if byRole[trajectory.Role] == nil {
				roles = append(roles, trajectory.Role)
			}
			byRole[trajectory.Role] = append(byRole[trajectory.Role], &trajectory.Reward)
		}
	}
	random := rand.New(rand.NewPCG(uint64(group.Key.Slot), 1))
	for _, role := range roles {
		rewards := byRole[role]
		random.Shuffle(len(rewards), func(i, j int) { *rewards[i], *rewards[j] = *rewards[j], *rewards[i] })
	}
}
