// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"errors"
	"math"
	"testing"
)

func TestValidateNamesTheField(t *testing.T) {
	cases := map[string]struct {
		change func(g *Group)
		field  string
	}{
		"as it should be":                {func(*Group) {}, ""},
		"a tombstone without members":    {func(g *Group) { g.Outcome, g.Members = EnvironmentFault, nil }, ""},
		"an evaluation":                  {func(g *Group) { g.Key.Kind, g.Key.Evaluation = Evaluate, "p" }, ""},
		"a member that sampled nothing":  {func(g *Group) { g.Members[2].Trajectories[0].Segments = nil }, ""},
		"an unknown kind":                {func(g *Group) { g.Key.Kind = 7 }, "key.kind"},
		"a negative slot":                {func(g *Group) { g.Key.Slot = -1 }, "key.slot"},
		"no lineage":                     {func(g *Group) { g.Key.Lineage = Lineage{} }, "key.lineage"},
		"a plan for training":            {func(g *Group) { g.Key.Evaluation = "p" }, "key.plan"},
		"an evaluation without a plan":   {func(g *Group) { g.Key.Kind = Evaluate }, "key.plan"},
		"an unknown outcome":             {func(g *Group) { g.Outcome = 99 }, "outcome"},
		"negative usage":                 {func(g *Group) { g.SampledTokens = -1 }, "usage"},
		"a usable group without members": {func(g *Group) { g.Members = g.Members[1:2] }, "members"},
		"members out of order":           {func(g *Group) { g.Members[2].Index = 1 }, "members[2].index"},
		"an index too large":             {func(g *Group) { g.Members[2].Index = MaxMembers }, "members[2].index"},
		"a member's unknown outcome":     {func(g *Group) { g.Members[1].Outcome = 99 }, "members[1].outcome"},
		"a reward that is no number":     {func(g *Group) { g.Members[0].Reward = math.NaN() }, "members[0].reward"},
		"an infinite reward":             {func(g *Group) { g.Members[0].Reward = math.Inf(1) }, "members[0].reward"},
		"negative turns":                 {func(g *Group) { g.Members[0].Turns = -1 }, "members[0].turns"},
		"a member's negative usage":      {func(g *Group) { g.Members[0].PromptTokens = -1 }, "members[0].usage"},
		"negative retries":               {func(g *Group) { g.Members[0].Retries = -1 }, "members[0].retries"},
		"a segment of one token":         {func(g *Group) { g.Members[2].Trajectories[0].Segments[0].Tokens = []int32{1} }, "members[2].trajectories[0].segments[0].tokens"},
		"a negative token":               {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Tokens[0] = -4 }, "members[0].trajectories[0].segments[1].tokens"},
		"too few actions":                {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Actions = []bool{true} }, "members[0].trajectories[0].segments[1].actions"},
		"an action first":                {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Actions[0] = true }, "members[0].trajectories[0].segments[1].actions"},
		"no action":                      {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Actions[1] = false }, "members[0].trajectories[0].segments[1].actions"},
		"a negative turn":                {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Turn = -1 }, "members[0].trajectories[0].segments[1].turn"},
		"too few log-probs":              {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Logprobs = nil }, "members[0].trajectories[0].segments[1].logprobs"},
		"a log-prob that is no number":   {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Logprobs[1] = float32(math.NaN()) }, "members[0].trajectories[0].segments[1].logprobs"},
		"a log-prob of a prompt":         {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Logprobs[0] = -1 }, "members[0].trajectories[0].segments[1].logprobs"},
		"too few references":             {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].ReferenceLogprobs = []float32{} }, "members[0].trajectories[0].segments[1].reference_logprobs"},
		"an infinite reference log-prob": {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].ReferenceLogprobs[1] = float32(math.Inf(-1)) }, "members[0].trajectories[0].segments[1].reference_logprobs"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := changed(tc.change).Validate()
			if tc.field == "" {
				if err != nil {
					t.Fatalf("Validate: %v", err)
				}
				return
			}
			var wrong *FieldError
			if !errors.As(err, &wrong) || wrong.Field != tc.field {
				t.Errorf("Validate: %v, want the field %s", err, tc.field)
			}
		})
	}
}
