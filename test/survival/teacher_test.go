// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

// withTeacher makes the small run learn from a teacher alone, in groups of one episode.
func withTeacher(teacher algorithm.Teacher) func(*contract.RunFile) {
	return func(f *contract.RunFile) {
		env := &f.Fixed.Environments[0]
		env.Teacher, env.GroupSize, env.MinMembers = &teacher, 1, 1
		env.Definition.Reward = &settings.Reward{None: &settings.None{}}
		f.Fixed.Algorithm.ConstantGroups = algorithm.DropConstantGroups
	}
}

// instructedTeacher is the base model with a system prompt that the policy does not read.
var instructedTeacher = algorithm.Teacher{Model: tinkersim.ModelName, Coefficient: 1, Discount: 0.5,
	SystemPrompt: "Answer with a number."}

// TestTeacher trains by a teacher alone. Learner and worker die at each point of the protocol; digests, weights,
// metrics and the tokens that were used equal the undisturbed run's.
func TestTeacher(t *testing.T) {
	t.Parallel()
	undisturbed := newFixture(t, withTeacher(instructedTeacher))
	undisturbed.startRolloutWorker("w0")
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))
	checkTeacherMetrics(t, want.metrics)
	if want.usage.TeacherTokens == 0 || want.usage.ReferenceTokens != 0 {
		t.Errorf("usage is %+v, want tokens of the teacher and none of a reference", want.usage)
	}
	for _, point := range learner.FaultPoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, withTeacher(instructedTeacher))
			kill := w.startRolloutWorker("w0")
			w.startRolloutWorker("w1")
			step := int64(2)
			if strings.HasPrefix(point, "open.") {
				step = -1
			}
			<-w.startLearner(1, w.dieAt(point, step)).done
			kill()
			w.startRolloutWorker("w2")
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
			if diff := cmp.Diff(undisturbed.goldenRows(), w.goldenRows()); diff != "" {
				t.Errorf("rows (-undisturbed +got):\n%s", diff)
			}
		})
	}
}

// TestTeachersWithALag runs two environments with a teacher each, on samples of the version before: each teacher
// teaches its own environment, and the weights are the same after a death.
func TestTeachersWithALag(t *testing.T) {
	t.Parallel()
	taught := func(first, second algorithm.Teacher) func(*contract.RunFile) {
		return func(f *contract.RunFile) {
			withLag(1)(f)
			f.Fixed.Algorithm.Loss.Name = algorithm.LossGSPO
			withTeacher(first)(f)
			other := f.Fixed.Environments[0]
			other.Name, other.Teacher = "others", &second
			f.Fixed.Environments = append(f.Fixed.Environments, other)
		}
	}
	knowing := algorithm.Teacher{Model: tinkersim.SumsModelName, Coefficient: 1}
	outcomeOf := func(change func(*contract.RunFile)) outcome {
		w := newFixture(t, change)
		w.startRolloutWorker("w0")
		return w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	}
	want := outcomeOf(taught(instructedTeacher, knowing))
	first, second := 0.0, 0.0
	for _, line := range want.metrics {
		first, second = first+line["env/arithmetic/teacher_kl"], second+line["env/others/teacher_kl"]
	}
	if first == 0 || second == 0 || first == second {
		t.Errorf("the sums of teacher_kl are %v and %v, want two that differ", first, second)
	}
	if exchanged := outcomeOf(taught(knowing, instructedTeacher)); exchanged.adapter == want.adapter {
		t.Errorf("the weights are the same with the teachers exchanged: got %v for both", exchanged.adapter)
	}
	for _, point := range []string{"open.saved", "step.submitted", "row.written", "save.answered"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, taught(instructedTeacher, knowing))
			w.startRolloutWorker("w0")
			step := int64(2)
			if strings.HasPrefix(point, "open.") {
				step = -1
			}
			<-w.startLearner(1, w.dieAt(point, step)).done
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
		})
	}
}

// checkTeacherMetrics expects each step to have the divergence from the teacher, for the run and for its environment.
func checkTeacherMetrics(t *testing.T, lines []map[string]float64) {
	t.Helper()
	var found []float64
	for _, line := range lines {
		value, ok := line["teacher_kl"]
		if !ok {
			continue
		}
		found = append(found, value)
		if of := line["env/arithmetic/teacher_kl"]; of != value {
			t.Errorf("env/arithmetic/teacher_kl is %v, want %v: it is the only environment", of, value)
		}
		if line["batch/groups_usable"] != 4 {
			t.Errorf("%v groups are usable, want 4: the rewards of all are equal", line["batch/groups_usable"])
		}
	}
	if len(found) != 3 || slices.ContainsFunc(found, func(v float64) bool { return v == 0 || math.IsNaN(v) }) {
		t.Errorf("teacher_kl is %v, want 3 values that are not 0", found)
	}
}

// TestTeacherAndReference checks that a teacher and a reference each change the weights, alone and together.
func TestTeacherAndReference(t *testing.T) {
	t.Parallel()
	adapters := map[string]string{}
	for name, change := range map[string]func(*contract.RunFile){
		"neither":   func(*contract.RunFile) {},
		"reference": withPenalty(algorithm.Reference{Model: tinkersim.ModelName}),
		"teacher":   func(f *contract.RunFile) { f.Fixed.Environments[0].Teacher = &instructedTeacher },
		"both": func(f *contract.RunFile) {
			withPenalty(algorithm.Reference{Model: tinkersim.ModelName})(f)
			f.Fixed.Environments[0].Teacher = &instructedTeacher
		},
	} {
		w := newFixture(t, change)
		w.startRolloutWorker("w0")
		got := w.outcome(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
		for other, adapter := range adapters {
			if adapter == got.adapter {
				t.Errorf("the weights with %s are those with %s", name, other)
			}
		}
		adapters[name] = got.adapter
		if (got.usage.TeacherTokens > 0) != (name == "teacher" || name == "both") ||
			(got.usage.ReferenceTokens > 0) != (name == "reference" || name == "both") {
			t.Errorf("with %s the usage is %+v", name, got.usage)
		}
	}
}

// TestMissingTeacher expects a run to report that its teacher does not exist, and to wait for it before anything is
// sampled.
func TestMissingTeacher(t *testing.T) {
	t.Parallel()
	for code, teacher := range map[problem.Code]algorithm.Teacher{
		problem.ModelUnknown: {Model: "nobody/knows", Coefficient: 1},
		problem.CheckpointMissing: {Coefficient: 1,
			Checkpoint: "tinker://0034d8c9-0a88-52a9-b2b7-bce7cb1e6fef:train:0/sampler_weights/s"},
	} {
		t.Run(string(code), func(t *testing.T) {
			w := newFixture(t, withTeacher(teacher))
			w.startRolloutWorker("w0")
			a := w.startLearner(1, nil)
			if found := w.awaitProblem(a, code).Evidence; !strings.Contains(found, "environments[arithmetic].teacher") {
				t.Errorf("the learner reports %q, want the field environments[arithmetic].teacher", found)
			}
			if calls := w.sim.Stats().Calls; calls["asample"] > 0 {
				t.Errorf("samples were bought: %d", calls["asample"])
			}
		})
	}
}

// TestTeacherWithAnotherTokenizer checks that a run waits if its teacher is a checkpoint of a model with another
// tokenizer.
func TestTeacherWithAnotherTokenizer(t *testing.T) {
	t.Parallel()
	const other = "Qwen/Qwen3-8B"
	teacher := algorithm.Teacher{Coefficient: 1}
	w := newFixtureOn(t, tinkersim.Options{SessionTimeout: time.Minute, Aliases: []string{other}}, withTeacher(teacher))
	own := w.file.Fixed.Model.Name
	w.file.Fixed.Model.Name = other
	model := w.plainModel()
	w.file.Fixed.Model.Name = own
	saving, err := model.SaveSampler(t.Context(), client.SaveRequest{Name: "teacher"})
	if err != nil {
		t.Fatal(err)
	}
	saved, err := saving.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.file.Fixed.Environments[0].Teacher.Checkpoint = saved.Path
	w.startRolloutWorker("w0")
	a := w.startLearner(1, nil)
	found := w.awaitProblem(a, problem.TokenizersDiffer).Evidence
	for _, want := range []string{"environments[arithmetic].teacher.checkpoint " + saved.Path, other} {
		if !strings.Contains(found, want) {
			t.Errorf("the learner reports %q, want %q in it", found, want)
		}
	}
	if calls := w.sim.Stats().Calls; calls["asample"] > 0 {
		t.Errorf("samples were bought: %d", calls["asample"])
	}
}
