// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func exampleSettings() Settings {
	return Settings{
		LearningRate: 4e-5, Optimizer: contract.Optimizer{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8},
		Loss: contract.Loss{Name: contract.LossPPO, Config: map[string]float64{"clip_low_threshold": 0.8,
			"clip_high_threshold": 1.2}},
		Advantage: contract.Advantage{Baseline: contract.BaselineGroupMean, Scale: contract.ScaleNone}, Substeps: 1,
	}
}

func TestLineageNextCoversEverySetting(t *testing.T) {
	changes := map[string]func(s *Settings){
		"nothing":       func(*Settings) {},
		"learning rate": func(s *Settings) { s.LearningRate *= 2 },
		"beta1":         func(s *Settings) { s.Optimizer.Beta1 = 0.8 },
		"beta2":         func(s *Settings) { s.Optimizer.Beta2 = 0.8 },
		"epsilon":       func(s *Settings) { s.Optimizer.Epsilon = 0 },
		"weight decay":  func(s *Settings) { s.Optimizer.WeightDecay = 1 },
		"gradient clip": func(s *Settings) { s.Optimizer.GradClipNorm = 1 },
		"loss":          func(s *Settings) { s.Loss.Name = contract.LossCISPO },
		"loss setting": func(s *Settings) {
			s.Loss.Config = map[string]float64{"clip_low_threshold": 0.8, "clip_high_threshold": 1.3}
		},
		"one setting": func(s *Settings) { s.Loss.Config = map[string]float64{"clip_low_threshold": 0.8} },
		"baseline":    func(s *Settings) { s.Advantage.Baseline = contract.BaselineLeaveOneOut },
		"scale":       func(s *Settings) { s.Advantage.Scale = contract.ScaleGroupStd },
		"ddof":        func(s *Settings) { s.Advantage.DDoF = 1 },
		"substeps":    func(s *Settings) { s.Substeps = 2 },
		"grouping":    func(s *Settings) { s.Grouping = contract.GroupingEpisode },
		"roles": func(s *Settings) {
			s.Roles = []contract.Role{{Name: "judge", Loss: s.Loss, Advantage: s.Advantage}}
		},
		"role's name": func(s *Settings) {
			s.Roles = []contract.Role{{Name: "solver", Loss: s.Loss, Advantage: s.Advantage}}
		},
		"role's loss": func(s *Settings) { s.Roles = []contract.Role{{Name: "judge", Advantage: s.Advantage}} },
		"kl": func(s *Settings) {
			s.KL = &contract.KL{Coefficient: 0.1, Reference: contract.Reference{Model: "m"}}
		},
		"kl.coefficient": func(s *Settings) {
			s.KL = &contract.KL{Coefficient: 0.2, Reference: contract.Reference{Model: "m"}}
		},
		"kl.discount": func(s *Settings) {
			s.KL = &contract.KL{Coefficient: 0.1, Discount: 0.5, Reference: contract.Reference{Model: "m"}}
		},
		"kl.reference": func(s *Settings) {
			s.KL = &contract.KL{Coefficient: 0.1, Reference: contract.Reference{Checkpoint: "m"}}
		},
		"role's advantage": func(s *Settings) {
			s.Roles = []contract.Role{{Name: "judge", Loss: s.Loss,
				Advantage: contract.Advantage{Baseline: contract.BaselineNone}}}
		},
	}
	manifest := Manifest{Step: 1, Slots: []SlotDigest{{Slot: 4}}}
	seen := map[Lineage]string{}
	for name, change := range changes {
		settings := exampleSettings()
		change(&settings)
		next := Genesis("spec").Next(manifest, settings)
		if other, ok := seen[next]; ok {
			t.Errorf("changing %s gives the lineage of %s", name, other)
		}
		seen[next] = name
	}
}

func TestLineageNextCoversPolicyAndBatch(t *testing.T) {
	manifest, settings := Manifest{Step: 1, Slots: []SlotDigest{{Slot: 4}}}, exampleSettings()
	base := Genesis("spec").Next(manifest, settings)
	if again := Genesis("spec").Next(manifest, exampleSettings()); again != base {
		t.Error("the same step gives another lineage")
	}
	if Genesis("other").Next(manifest, settings) == base {
		t.Error("another policy gives the same lineage")
	}
	if Genesis("spec").Next(Manifest{Step: 1}, settings) == base {
		t.Error("an empty batch gives the same lineage")
	}
	if Genesis("spec").Next(Manifest{Step: 1}, settings) == Genesis("spec") {
		t.Error("an empty batch does not move the lineage on")
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
