// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"maps"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPrepareErrors(t *testing.T) {
	ints := func(v ...int64) Tensor { return Tensor{Int: v} }
	reals := func(v ...float32) Tensor { return Tensor{Float: v} }
	rl := map[string]Tensor{"target_tokens": ints(1, 2), "logprobs": reals(-1, -1), "advantages": reals(1, 1)}
	with := func(name string, tensor Tensor) map[string]Tensor {
		m := maps.Clone(rl)
		m[name] = tensor
		return m
	}
	without := func(name string) map[string]Tensor {
		m := maps.Clone(rl)
		delete(m, name)
		return m
	}
	two := []int32{5, 6}
	for name, test := range map[string]struct {
		loss   Loss
		tokens []int32
		inputs map[string]Tensor
	}{
		"unknown loss":                   {Loss{"stable_reinforce", nil}, two, rl},
		"unknown setting":                {Loss{"ppo", map[string]float64{"beta": 1}}, two, rl},
		"setting that is not finite":     {Loss{"dro", map[string]float64{"beta": math.NaN()}}, two, rl},
		"clip thresholds in wrong order": {Loss{"ppo", map[string]float64{"clip_low_threshold": 2}}, two, rl},
		"no targets":                     {Loss{"ppo", nil}, two, without("target_tokens")},
		"no advantages":                  {Loss{"ppo", nil}, two, without("advantages")},
		"no logprobs":                    {Loss{"cispo", nil}, two, without("logprobs")},
		"mask":                           {Loss{"ppo", nil}, two, with("mask", reals(1, 1))},
		"weights of a policy loss":       {Loss{"importance_sampling", nil}, two, with("weights", reals(1, 1))},
		"thresholds of a loss without":   {Loss{"importance_sampling", nil}, two, with("clip_low_threshold", reals(1, 1))},
		"advantages of cross_entropy":    {Loss{"cross_entropy", nil}, two, rl},
		"mask of a loss without":         {Loss{"ppo", nil}, two, with("sequence_ratio_mask", reals(1, 1))},
		"too short a mask":               {Loss{"gspo", nil}, two, with("sequence_ratio_mask", reals(1))},
		"too few targets":                {Loss{"ppo", nil}, two, with("target_tokens", ints(1))},
		"too many advantages":            {Loss{"ppo", nil}, two, with("advantages", reals(1, 1, 1))},
		"advantage that is not finite":   {Loss{"ppo", nil}, two, with("advantages", reals(1, float32(math.Inf(1))))},
		"log-prob that is not a number":  {Loss{"ppo", nil}, two, with("logprobs", reals(1, float32(math.NaN())))},
		"real targets":                   {Loss{"ppo", nil}, two, with("target_tokens", reals(1, 2))},
		"target above the vocabulary":    {Loss{"ppo", nil}, two, with("target_tokens", ints(1, 260))},
		"negative target":                {Loss{"ppo", nil}, two, with("target_tokens", ints(-1, 2))},
		"shape that lies": {Loss{"ppo", nil}, two,
			with("advantages", Tensor{Shape: []int{2}, Float: []float32{1}})},
		"negative shape": {Loss{"ppo", nil}, two,
			with("advantages", Tensor{Shape: []int{-1, -2}, Float: []float32{1, 2}})},
		"tensor of two types": {Loss{"ppo", nil}, two,
			with("advantages", Tensor{Int: []int64{1, 2}, Float: []float32{1, 2}})},
		"two targets a position": {Loss{"ppo", nil}, two,
			with("target_tokens", Tensor{Shape: []int{2, 2}, Int: []int64{1, 2, 3, 4}})},
		"flat weights of broad targets": {Loss{"cross_entropy", nil}, two, map[string]Tensor{
			"target_tokens": {Shape: []int{2, 2}, Int: []int64{1, 2, 3, 4}}, "weights": reals(1, 1)}},
		"no tokens":                  {Loss{"ppo", nil}, nil, rl},
		"token above the vocabulary": {Loss{"ppo", nil}, []int32{5, 260}, rl},
		"negative token":             {Loss{"ppo", nil}, []int32{-5, 2}, rl},
		"too many tokens":            {Loss{"ppo", nil}, make([]int32, Window+1), rl},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := testBase().prepare([]Datum{{Tokens: test.tokens, Inputs: test.inputs}}, test.loss)
			var user *UserError
			if !errors.As(err, &user) {
				t.Errorf("error is %v, want one of the user", err)
			}
		})
	}
	if _, err := testBase().prepare(nil, Loss{Name: "ppo"}); err == nil {
		t.Error("an empty batch was accepted")
	}
}

func TestPrepareReadsInputs(t *testing.T) {
	for name, test := range map[string]struct {
		loss   Loss
		inputs map[string]Tensor
		want   []element
	}{
		"weights of cross_entropy are 1 when they are missing": {
			Loss{Name: "cross_entropy"},
			map[string]Tensor{"target_tokens": {Int: []int64{1, 2}}},
			[]element{{weight: 1, mask: 1}, {weight: 1, mask: 1}},
		},
		"weights may be any number, also whole ones": {
			Loss{Name: "cross_entropy"},
			map[string]Tensor{"target_tokens": {Int: []int64{1, 2}}, "weights": {Int: []int64{-3, 0}}},
			[]element{{weight: -3, mask: 1}, {weight: 0, mask: 1}},
		},
		"clip thresholds can be given for each token": {
			Loss{Name: "ppo", Config: map[string]float64{"clip_high_threshold": 3}},
			map[string]Tensor{
				"target_tokens": {Int: []int64{1, 2}}, "logprobs": {Float: []float32{-1, -2}},
				"advantages":         {Float: []float32{0.5, 2}},
				"clip_low_threshold": {Float: []float32{0.25, 0.5}},
			},
			[]element{
				{weight: 1, sampled: -1, advantage: 0.5, low: 0.25, high: 3, mask: 1},
				{weight: 1, sampled: -2, advantage: 2, low: 0.5, high: 3, mask: 1},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := testBase().prepare([]Datum{{Tokens: []int32{7, 8}, Inputs: test.inputs}}, test.loss)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.datums[0].elements, cmp.AllowUnexported(element{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
