// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
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
		"an evaluation for training":     {func(g *Group) { g.Key.Evaluation = "p" }, "key.evaluation"},
		"no digest for an evaluation":    {func(g *Group) { g.Key.Kind = Evaluate }, "key.evaluation"},
		"an unknown outcome":             {func(g *Group) { g.Outcome = 99 }, "outcome"},
		"negative usage":                 {func(g *Group) { g.SampledTokens = -1 }, "usage"},
		"a usable group without members": {func(g *Group) { g.Members = g.Members[1:2] }, "members"},
		"members out of order":           {func(g *Group) { g.Members[2].Index = 1 }, "members[2].index"},
		"an index too large":             {func(g *Group) { g.Members[2].Index = MaxMembers }, "members[2].index"},
		"a member's unknown outcome":     {func(g *Group) { g.Members[1].Outcome = 99 }, "members[1].outcome"},
		"a reward that is NaN":           {func(g *Group) { g.Members[0].Reward = math.NaN() }, "members[0].reward"},
		"an infinite reward":             {func(g *Group) { g.Members[0].Reward = math.Inf(1) }, "members[0].reward"},
		"negative turns":                 {func(g *Group) { g.Members[0].Turns = -1 }, "members[0].turns"},
		"a member's negative usage":      {func(g *Group) { g.Members[0].PromptTokens = -1 }, "members[0].usage"},
		"negative retries":               {func(g *Group) { g.Members[0].Retries = -1 }, "members[0].retries"},
		"a segment of one token": {func(g *Group) { g.Members[2].Trajectories[0].Segments[0].Tokens = []int32{1} },
			"members[2].trajectories[0].segments[0].tokens"},
		"a negative token": {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Tokens[0] = -4 },
			"members[0].trajectories[0].segments[1].tokens"},
		"too few actions": {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Actions = []bool{true} },
			"members[0].trajectories[0].segments[1].actions"},
		"an action first": {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Actions[0] = true },
			"members[0].trajectories[0].segments[1].actions"},
		"no action": {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Actions[1] = false },
			"members[0].trajectories[0].segments[1].actions"},
		"a negative turn": {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Turn = -1 },
			"members[0].trajectories[0].segments[1].turn"},
		"too few log-probs": {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Logprobs = nil },
			"members[0].trajectories[0].segments[1].logprobs"},
		"a log-prob that is NaN": {func(g *Group) {
			g.Members[0].Trajectories[0].Segments[1].Logprobs[1] = float32(math.NaN())
		}, "members[0].trajectories[0].segments[1].logprobs"},
		"a log-prob of a prompt": {func(g *Group) { g.Members[0].Trajectories[0].Segments[1].Logprobs[0] = -1 },
			"members[0].trajectories[0].segments[1].logprobs"},
		"too few references": {func(
			g *Group) {
			g.Members[0].Trajectories[0].Segments[1].ReferenceLogprobs = []float32{}
		}, "members[0].trajectories[0].segments[1].reference_logprobs"},
		"an infinite reference log-prob": {func(
			g *Group) {
			g.Members[0].Trajectories[0].Segments[1].ReferenceLogprobs[1] = float32(math.Inf(-1))
		}, "members[0].trajectories[0].segments[1].reference_logprobs"},
		"too few log-probs of a teacher": {func(g *Group) {
			g.Members[0].Trajectories[0].Segments[1].TeacherLogprobs = []float32{-1}
		}, "members[0].trajectories[0].segments[1].teacher_logprobs"},
		"a teacher's log-prob that is NaN": {func(g *Group) {
			g.Members[0].Trajectories[0].Segments[1].TeacherLogprobs = []float32{0, float32(math.NaN())}
		}, "members[0].trajectories[0].segments[1].teacher_logprobs"},
	}
	checkFields(t, exampleGroup, cases)
}

// checkFields changes groups, and compares the fields that the errors name. An empty field means that there is no
// error.
func checkFields(t *testing.T, example func() Group, cases map[string]struct {
	change func(g *Group)
	field  string
}) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			group := example()
			tc.change(&group)
			err := group.Validate()
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

func TestValidateNamesTheFieldOfATrajectory(t *testing.T) {
	solver := func(g *Group) *Trajectory { return &g.Members[0].Trajectories[0] }
	const path = "members[0].trajectories[0]"
	checkFields(t, exampleRoles, map[string]struct {
		change func(g *Group)
		field  string
	}{
		"as it should be": {func(*Group) {}, ""},
		"none of a usable member": {func(g *Group) { g.Members[2].Trajectories = nil },
			"members[2].trajectories"},
		"one of a member that is not usable": {func(g *Group) { g.Members[1].Trajectories = make([]Trajectory, 1) },
			"members[1].trajectories"},
		"too many": {func(g *Group) {
			g.Members[2].Trajectories = make([]Trajectory, MaxTrajectories+1)
		}, "members[2].trajectories"},
		"a role that is not a metric's name": {func(g *Group) { solver(g).Role = "Solver/1" }, path + ".role"},
		"a role that is too long": {func(g *Group) { solver(g).Role = strings.Repeat("a", 64) },
			path + ".role"},
		"a key that is not valid UTF-8": {func(g *Group) { solver(g).Key = "\xff" }, path + ".key"},
		"a reward that is NaN":          {func(g *Group) { solver(g).Reward = math.NaN() }, path + ".reward"},
		"a step's reward that is infinite": {func(g *Group) { solver(g).StepRewards[1] = math.Inf(1) },
			path + ".step_rewards"},
		"steps without rewards": {func(g *Group) { solver(g).StepRewards = nil },
			path + ".segments[0].steps"},
		"rewards without steps": {func(g *Group) { solver(g).Segments[1].Steps = nil },
			path + ".segments[1].steps"},
		"a step that has no reward": {func(g *Group) { solver(g).Segments[1].Steps[0].Index = 2 },
			path + ".segments[1].steps"},
		"a negative step": {func(g *Group) { solver(g).Segments[1].Steps[0].Index = -1 },
			path + ".segments[1].steps"},
		"steps that end before the segment": {func(g *Group) { solver(g).Segments[0].Steps[0].End = 2 },
			path + ".segments[0].steps"},
		"steps that end after the segment": {func(g *Group) { solver(g).Segments[0].Steps[0].End = 4 },
			path + ".segments[0].steps"},
		"a trajectory without segments is fine": {func(g *Group) { solver(g).Segments = nil }, ""},
		"too many roles": {func(g *Group) {
			for i := range contract.MaxRoles {
				g.Members[2].Trajectories = append(g.Members[2].Trajectories, Trajectory{Role: string(rune('a' + i))})
			}
		}, "members"},
	})
}
