// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TestTeachers runs teachers in two forms of the run's environment: arithmetic has a reward, and plain has none.
func TestTeachers(t *testing.T) {
	pins := testPins()
	plain, agent := pins["arithmetic"], pins["arithmetic"]
	plain.Definition.Reward = &environment.Reward{None: &environment.None{}}
	agent.Definition.Interaction = &environment.Interaction{Agent: &environment.Agent{}}
	pins["plain"], pins["agent"] = plain, agent
	teacher := algorithm.Teacher{Model: "tinkersim/byte-136k-countdown", Coefficient: 1}
	instructed := teacher
	instructed.SystemPrompt = "Think."
	train := func(name string, teacher *algorithm.Teacher, size int32) func(*v1alpha1.TrainingRun) {
		return func(run *v1alpha1.TrainingRun) {
			run.Spec.Environments = []v1alpha1.TrainingEnvironment{{GroupSize: size, Teacher: teacher,
				EnvironmentUse: v1alpha1.EnvironmentUse{Name: name, Sampling: playing.Sampling{MaxTokens: 16}}}}
			run.Spec.Evaluation = &v1alpha1.Evaluation{Environments: []v1alpha1.EvaluationEnvironment{{
				EnvironmentUse: v1alpha1.EnvironmentUse{Name: "arithmetic", Sampling: playing.Sampling{MaxTokens: 16}}}}}
		}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.TrainingRun)
		code   problem.Code
		says   string
	}{
		"a teacher beside rewards":           {change: train("arithmetic", &teacher, 4)},
		"a teacher alone, of single members": {change: train("plain", &teacher, 1)},
		"a teacher with a system prompt":     {change: train("plain", &instructed, 1)},
		"no reward and no teacher": {train("plain", nil, 4), problem.RewardMissing,
			"environments[plain]"},
		"single members with a reward": {train("arithmetic", &teacher, 1), problem.GroupTooSmall,
			"environments[arithmetic]: groupSize 1"},
		"an agent whose teacher has a system prompt": {train("agent", &instructed, 4), problem.TeacherUnusable,
			"environments[agent].teacher.systemPrompt"},
		"an evaluation without a reward": {func(run *v1alpha1.TrainingRun) {
			train("plain", &teacher, 1)(run)
			run.Spec.Evaluation.Environments = nil
		}, problem.RewardMissing, "evaluation.environments[plain]"},
		"a teacher of another tokenizer": {train("plain", &algorithm.Teacher{Model: "Qwen/Qwen3-8B"}, 1),
			problem.TokenizersDiffer, "environments[plain].teacher.model is Qwen/Qwen3-8B"},
		"a teacher that is not known": {train("plain", &algorithm.Teacher{Model: "own/model"}, 1),
			problem.TokenizersDiffer, "environments[plain].teacher.model is own/model"},
		"a reference of another tokenizer": {func(run *v1alpha1.TrainingRun) {
			run.Spec.Algorithm.KL = &algorithm.KL{Coefficient: 1, Reference: &algorithm.Reference{Model: "Qwen/Qwen3-8B"}}
		}, problem.TokenizersDiffer, "algorithm.kl.reference.model is Qwen/Qwen3-8B"},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := File(FileInput{Run: testRun(tc.change), Attempt: 1, Pins: pins, DefaultBaseURL: "https://hosted"})
			if tc.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				env := file.Fixed.Environments[0]
				if least := (env.GroupSize + 1) / 2; env.MinMembers != least || env.Teacher == nil {
					t.Errorf("minMembers is %d, want %d; the teacher is %+v", env.MinMembers, least, env.Teacher)
				}
				return
			}
			refused, _ := errors.AsType[*SpecError](err)
			if refused == nil || refused.Code != tc.code || !strings.Contains(refused.Evidence, tc.says) {
				t.Errorf("File: %v, want %s with %q", err, tc.code, tc.says)
			}
		})
	}
}

// TestPricesOfTeachers checks that all teachers are counted at the price of the most expensive one.
func TestPricesOfTeachers(t *testing.T) {
	file := fileOf("Qwen/Qwen3-8B", environment.Judge{}, environment.Judge{})
	for i, model := range []string{"large", "small"} {
		file.Fixed.Environments[i].Name = model
		file.Fixed.Environments[i].Teacher = &algorithm.Teacher{Model: model}
	}
	run := &v1alpha1.TrainingRun{Spec: v1alpha1.TrainingRunSpec{Budget: &v1alpha1.Budget{USD: new(10.0),
		Prices: []v1alpha1.ModelPrice{{Model: "small", PromptUSDPerMillion: 1}, {Model: "large", PromptUSDPerMillion: 3}}}}}
	if err := AddBudget(&file, run, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(3.0, file.Prices.Teacher.Prompt); diff != "" {
		t.Errorf("price of teachers (-want +got):\n%s", diff)
	}
	run.Spec.Budget.Prices = run.Spec.Budget.Prices[:1]
	if err := AddBudget(&file, run, nil); err == nil || !strings.Contains(err.Error(), `model "large"`) {
		t.Errorf("AddBudget without a price of a teacher: %v", err)
	}
}
