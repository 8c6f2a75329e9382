// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/test/model/scenarios"
)

// small has the scenarios that together take seconds, with their numbers of states; make model-check explores the rest.
// A number changes only with the model or a configuration.
var small = map[string]int{
	"first-version/row":                     19521,
	"first-version/foreign":                 4,
	"first-version/lag-parent":              1951,
	"first-version/lag-refill":              1917,
	"protocol/lag1/crash":                   30005,
	"protocol/per-step/lag1/crash":          33284,
	"protocol/per-step/lag1 tombstone/fail": 194314,
	"protocol/per-step/lag2/crash":          6087,
	"minus/drain-clean":                     25376,
	"with/drain-clean":                      26442,
	"protocol/group2/crash":                 27937,
	"protocol/group2/suspend":               31203,
	"minus/sampler-clean":                   37169,
	"minus/run-filter":                      5,
	"minus/eval-keep":                       14152,
	"with/eval-keep":                        13162,
	"refill/any/tombstone1":                 1486,
	"refill/certain/tombstone1":             749,
	"by-record/crash":                       12782,
	"by-record/second-learner":              148926,
	"by-record/minus claim first":           9833,
	"no-store/crash":                        9071,
	"unload/crash":                          4843,
	"manager/first-version":                 74929,
	"manager/protocol":                      140,
	"manager/protocol job-suspended":        2826,
	"manager/minus hold":                    1401,
	"manager/protocol more-steps":           5240,
	"manager/minus continue":                760,
	"manager/no-lock more-steps":            1084,
	"sampling/protocol":                     107,
	"conversations/protocol":                3336,
	"conversations/limit":                   3144,
	"conversations/by arrival":              14409,
	"conversations/minus conversation":      7047,
	"conversations/minus prompt":            1617,
	"conversations/minus repeat":            1617,
	"conversations/by worker":               23436,
	"conversations/minus one open":          22176,
	"conversations/minus left out":          3144,
	"conversations/minus order of keys":     3336,
	"agents/protocol":                       10936,
	"agents/protocol equal":                 17862,
	"agents/minus repeat":                   4640,
	"agents/minus adopt":                    126714,
	"agents/adopt open":                     12986,
	"agents/minus digest":                   10936,
	"agents/minus again":                    12617,
	"agents/next try":                       21164,
	"wire/protocol":                         20730,
	"wire/no-dedupe":                        45043,
	"credentials/protocol":                  579,
	"credentials/protocol unreachable":      511,
	"credentials/minus signature":           1015,
	"credentials/minus attempt":             953,
	"credentials/minus run":                 579,
	"credentials/minus key":                 579,
	"credentials/minus run and key":         1015,
	"credentials/private-key":               1015,
	"credentials/one-token":                 1015,
	"credentials/minus token":               1087,
	"credentials/minus certificate":         818,
	"credentials/minus pass-on unreachable": 455,
	"adapter/protocol":                      201608,
	"adapter/minus acknowledge":             4580,
	"adapter/minus report":                  418,
	"adapter/by-index":                      4298,
	"suspects/protocol":                     3927,
	"suspects/two deaths":                   6971,
	"suspects/cut off":                      31598,
	"suspects/minus permits":                5563,
	"suspects/minus permits undisturbed":    1809,
	"suspects/minus suspects":               8943,
	"suspects/minus alone":                  6819,
	"suspects/minus second death":           2986,
	"suspects/first death":                  1481,
	"spending/protocol":                     18362,
	"spending/minus grant":                  2657,
	"spending/minus look":                   17583,
	"spending/look first":                   20474,
	"spending/read first":                   42076,
}

func TestSmallScenarios(t *testing.T) {
	explored := 0
	for _, scenario := range scenarios.All() {
		states, ok := small[scenario.Name]
		if !ok {
			continue
		}
		explored++
		t.Run(scenario.Name, func(t *testing.T) {
			result := scenario.Run(1_000_000)
			if difference := scenario.Compare(result); difference != "" {
				t.Error(difference)
			}
			if result.States != states {
				t.Errorf("%d states, want %d", result.States, states)
			}
		})
	}
	if explored != len(small) {
		t.Errorf("%d of %d scenarios exist", explored, len(small))
	}
}

func TestRecordedScenariosExist(t *testing.T) {
	if unknown := scenarios.Unknown(); len(unknown) > 0 {
		t.Errorf("recorded and unknown: %q", unknown)
	}
}
