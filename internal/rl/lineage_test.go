// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

func exampleSettings() Settings {
	return Settings{
		LearningRate: 4e-5, Algorithm: algorithm.Algorithm{
			Optimizer: algorithm.Optimizer{Beta1: new(0.9), Beta2: new(0.95), Epsilon: 1e-8},
			Loss:      algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)},
			Advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleNone}, Substeps: 1,
		},
	}
}

// inRole returns an advantage as a role's, with all fields set.
func inRole(a algorithm.Advantage) *algorithm.RoleAdvantage {
	return &algorithm.RoleAdvantage{Baseline: a.Baseline, Scale: a.Scale, DDoF: new(a.DDoF)}
}

func TestLineageNextCoversEverySetting(t *testing.T) {
	changes := map[string]func(s *Settings){
		"nothing":            func(*Settings) {},
		"learning rate":      func(s *Settings) { s.LearningRate *= 2 },
		"beta1":              func(s *Settings) { s.Algorithm.Optimizer.Beta1 = new(0.8) },
		"beta2":              func(s *Settings) { s.Algorithm.Optimizer.Beta2 = new(0.8) },
		"epsilon":            func(s *Settings) { s.Algorithm.Optimizer.Epsilon = 0 },
		"weight decay":       func(s *Settings) { s.Algorithm.Optimizer.WeightDecay = 1 },
		"gradient clip":      func(s *Settings) { s.Algorithm.Optimizer.GradClipNorm = 1 },
		"loss":               func(s *Settings) { s.Algorithm.Loss.Name = algorithm.LossCISPO },
		"loss setting":       func(s *Settings) { s.Algorithm.Loss.ClipHigh = new(1.3) },
		"other loss setting": func(s *Settings) { s.Algorithm.Loss.ClipLow = new(0.7) },
		"one setting":        func(s *Settings) { s.Algorithm.Loss.ClipHigh = nil },
		"baseline":           func(s *Settings) { s.Algorithm.Advantage.Baseline = algorithm.BaselineLeaveOneOut },
		"scale":              func(s *Settings) { s.Algorithm.Advantage.Scale = algorithm.ScaleGroupStd },
		"ddof":               func(s *Settings) { s.Algorithm.Advantage.DDoF = 1 },
		"substeps":           func(s *Settings) { s.Algorithm.Substeps = 2 },
		"grouping":           func(s *Settings) { s.Algorithm.Grouping = algorithm.GroupingEpisode },
		"roles": func(s *Settings) {
			s.Algorithm.Roles = []algorithm.Role{{Name: "judge", Loss: &s.Algorithm.Loss,
				Advantage: inRole(s.Algorithm.Advantage)}}
		},
		"role's name": func(s *Settings) {
			s.Algorithm.Roles = []algorithm.Role{{Name: "solver", Loss: &s.Algorithm.Loss,
				Advantage: inRole(s.Algorithm.Advantage)}}
		},
		"role's loss": func(s *Settings) {
			s.Algorithm.Roles = []algorithm.Role{{Name: "judge", Loss: &algorithm.Loss{Name: algorithm.LossCISPO}}}
		},
		"kl": func(s *Settings) {
			s.Algorithm.KL = &algorithm.KL{Coefficient: 0.1, Reference: &algorithm.Reference{Model: "m"}}
		},
		"kl.coefficient": func(s *Settings) {
			s.Algorithm.KL = &algorithm.KL{Coefficient: 0.2, Reference: &algorithm.Reference{Model: "m"}}
		},
		"kl.discount": func(s *Settings) {
			s.Algorithm.KL = &algorithm.KL{Coefficient: 0.1, Discount: 0.5, Reference: &algorithm.Reference{Model: "m"}}
		},
		"kl.reference": func(s *Settings) {
			s.Algorithm.KL = &algorithm.KL{Coefficient: 0.1, Reference: &algorithm.Reference{Checkpoint: "m"}}
		},
		"teacher": func(s *Settings) {
			s.Teachers = map[string]algorithm.Teacher{"math": {Model: "m", Coefficient: 1}}
		},
		"teacher's environment": func(s *Settings) {
			s.Teachers = map[string]algorithm.Teacher{"code": {Model: "m", Coefficient: 1}}
		},
		"teacher.checkpoint": func(s *Settings) {
			s.Teachers = map[string]algorithm.Teacher{"math": {Checkpoint: "m", Coefficient: 1}}
		},
		"teacher.coefficient": func(s *Settings) {
			s.Teachers = map[string]algorithm.Teacher{"math": {Model: "m", Coefficient: 2}}
		},
		"teacher.discount": func(s *Settings) {
			s.Teachers = map[string]algorithm.Teacher{"math": {Model: "m", Coefficient: 1, Discount: 0.5}}
		},
		"teacher.systemPrompt": func(s *Settings) {
			s.Teachers = map[string]algorithm.Teacher{"math": {Model: "m", Coefficient: 1, SystemPrompt: "Think."}}
		},
		"role's advantage": func(s *Settings) {
			s.Algorithm.Roles = []algorithm.Role{{Name: "judge", Loss: &s.Algorithm.Loss,
				Advantage: &algorithm.RoleAdvantage{Baseline: algorithm.BaselineNone}}}
		},
	}
	manifest := Manifest{Step: 1, Slots: []SlotDigest{{Slot: 4}}}
	seen := map[Lineage]string{}
	for name, change := range changes {
		settings := exampleSettings()
		change(&settings)
		next := Genesis("spec").Next(manifest, settings)
		if other, ok := seen[next]; ok {
			t.Errorf("changing %s results in the lineage of %s", name, other)
		}
		seen[next] = name
	}
}

func TestLineageNextCoversPolicyAndBatch(t *testing.T) {
	manifest, settings := Manifest{Step: 1, Slots: []SlotDigest{{Slot: 4}}}, exampleSettings()
	base := Genesis("spec").Next(manifest, settings)
	if again := Genesis("spec").Next(manifest, exampleSettings()); again != base {
		t.Errorf("the same step has another lineage: got %v, want %v", again, base)
	}
	if Genesis("other").Next(manifest, settings) == base {
		t.Errorf("another policy has the same lineage: got %v for both", Genesis("other").Next(manifest, settings))
	}
	if Genesis("spec").Next(Manifest{Step: 1}, settings) == base {
		t.Errorf("an empty batch has the same lineage: got %v for both",
			Genesis("spec").Next(Manifest{Step: 1}, settings))
	}
	if Genesis("spec").Next(Manifest{Step: 1}, settings) == Genesis("spec") {
		t.Errorf("an empty batch does not move the lineage on: got %v for both",
			Genesis("spec").Next(Manifest{Step: 1}, settings))
	}
}

func TestLineageRoundTrips(t *testing.T) {
	want := Genesis("spec")
	if got, err := ParseLineage(want.String()); err != nil || got != want {
		t.Errorf("ParseLineage(%s) = %s, %v", want, got, err)
	}
}

func TestParseLineageRefuses(t *testing.T) {
	for _, text := range []string{"", "12", "zz" + Genesis("a").String()[2:], "AB" + Genesis("a").String()[2:],
		Genesis("a").String() + "00"} {
		if l, err := ParseLineage(text); err == nil {
			t.Errorf("ParseLineage(%q) = %s", text, l)
		}
	}
}

func TestGenesisIsNobodysParent(t *testing.T) {
	if !(Lineage{}).IsZero() || Genesis("").IsZero() {
		t.Error("IsZero is wrong about the zero lineage or about Genesis")
	}
	if got := (Lineage{}).Short(); got != "0000000000" {
		t.Errorf("Short of the zero Lineage = %q", got)
	}
}

func TestLineageIsAFunctionOfItsShortForm(t *testing.T) {
	for _, want := range []Lineage{{}, Genesis("spec"), Genesis("spec").Next(Manifest{}, exampleSettings())} {
		if got := lineageFromShort(want.Short()); got != want {
			t.Errorf("lineageFromShort(%s) = %s, want %s", want.Short(), got, want)
		}
	}
}
