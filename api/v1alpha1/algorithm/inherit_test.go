// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package algorithm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

func TestARoleInheritsWhatItsEntryDoesNotGive(t *testing.T) {
	own := algorithm.Advantage{Baseline: algorithm.BaselineBatchMean, Scale: algorithm.ScaleNone, DDoF: 1}
	a := algorithm.Algorithm{
		Advantage: own, Loss: algorithm.Loss{Name: algorithm.LossImportanceSampling},
		Roles: []algorithm.Role{
			{Name: "solver", Advantage: &algorithm.RoleAdvantage{Scale: algorithm.ScaleGroupStd, DDoF: new(int32(0))}},
			{Name: "judge", Loss: &algorithm.Loss{Name: algorithm.LossPPO}},
		},
	}
	for role, want := range map[string]struct {
		advantage algorithm.Advantage
		loss      algorithm.LossName
	}{
		"solver": {algorithm.Advantage{Baseline: algorithm.BaselineBatchMean, Scale: algorithm.ScaleGroupStd},
			algorithm.LossImportanceSampling},
		"judge": {own, algorithm.LossPPO},
		"other": {own, algorithm.LossImportanceSampling},
	} {
		t.Run(role, func(t *testing.T) {
			if diff := cmp.Diff(want.advantage, a.AdvantageOf(role)); diff != "" {
				t.Errorf("advantage (-want +got):\n%s", diff)
			}
			if got := a.LossOf(role).Name; got != want.loss {
				t.Errorf("loss is %s, want %s", got, want.loss)
			}
		})
	}
}

func TestClippedLossesAreToldApart(t *testing.T) {
	for name, want := range map[algorithm.LossName]bool{
		algorithm.LossImportanceSampling: false, algorithm.LossPPO: true, algorithm.LossCISPO: true,
		algorithm.LossGSPO: true,
	} {
		if got := name.Clips(); got != want {
			t.Errorf("%s clips: got %t, want %t", name, got, want)
		}
	}
}
