// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestResumedAdapterIsBitEqual checks that a resumed training continues exactly as the original.
func TestResumedAdapterIsBitEqual(t *testing.T) {
	adam := AdamParams{LearningRate: 1e-3, Beta1: .9, Beta2: .95, Eps: 1e-8, WeightDecay: .01, GradClipNorm: 1}
	train := func(a *Adapter) {
		mustRun(t, a, testBatch(20), Loss{Name: "cross_entropy"})
		mustRun(t, a, policyBatch(t, a, 7), Loss{Name: "importance_sampling"})
		mustStep(t, a, adam)
	}
	whole := NewAdapter(testBase(), testConfig)
	train(whole)
	resumed, err := UnmarshalState(testBase(), whole.MarshalState(true), true)
	if err != nil {
		t.Fatal(err)
	}
	for step := range 3 {
		train(whole)
		train(resumed)
		if !bytes.Equal(whole.MarshalState(true), resumed.MarshalState(true)) {
			t.Fatalf("states differ %d steps later", step+1)
		}
		if !cmp.Equal(whole.Snapshot().params.Flat(), resumed.Snapshot().params.Flat()) {
			t.Fatalf("sampler weights differ %d steps later", step+1)
		}
	}
	if resumed.Config() != testConfig || resumed.Steps() != 4 {
		t.Errorf("resumed as %+v after %d steps", resumed.Config(), resumed.Steps())
	}
}

func TestStateWithoutOptimizer(t *testing.T) {
	a := NewAdapter(testBase(), testConfig)
	mustRun(t, a, testBatch(5), Loss{Name: "cross_entropy"})
	mustStep(t, a, AdamParams{LearningRate: 1e-3, Beta1: .9, Beta2: .95, Eps: 1e-8})
	for name, data := range map[string][]byte{
		"left out when written": a.MarshalState(false),
		"left out when read":    a.MarshalState(true),
	} {
		t.Run(name, func(t *testing.T) {
			b, err := UnmarshalState(testBase(), data, false)
			if err != nil {
				t.Fatal(err)
			}
			if !cmp.Equal(a.params, b.params) {
				t.Errorf("parameters differ (-want +got):\n%.300s", cmp.Diff(a.params, b.params))
			}
			if b.Steps() != 0 || l2(b.first) != 0 || l2(b.second) != 0 {
				t.Errorf("%d steps and moments with norms %v and %v, want a fresh Adam state", b.Steps(), l2(b.first), l2(b.second))
			}
		})
	}
	_, err := UnmarshalState(testBase(), a.MarshalState(false), true)
	var user *UserError
	if !errors.As(err, &user) {
		t.Errorf("an optimizer was read from nothing: %v", err)
	}
}

func TestStateOmitsGradient(t *testing.T) {
	a := NewAdapter(testBase(), testConfig)
	before := a.MarshalState(true)
	mustRun(t, a, testBatch(5), Loss{Name: "cross_entropy"})
	if !bytes.Equal(before, a.MarshalState(true)) {
		t.Errorf("the gradient is in the state (-want +got):\n%.300s", cmp.Diff(before, a.MarshalState(true)))
	}
}

func TestUnmarshalDamagedData(t *testing.T) {
	a := trained(testConfig)
	state := a.MarshalState(true)
	weights := a.Snapshot().Marshal()
	flipped := func(data []byte, at int) []byte {
		out := bytes.Clone(data)
		out[at] ^= 1
		return out
	}
	resealed := func(body []byte) []byte { return seal(append(header(stateMagic, testBase()), body...)) }
	for name, test := range map[string]struct {
		data []byte
		want error
	}{
		"nothing":            {nil, errMagic},
		"another kind":       {weights, errMagic},
		"another version":    {flipped(state, len(stateMagic)-2), errMagic},
		"a magic line alone": {[]byte(stateMagic), errLength},
		"cut":                {state[:len(state)-1], errChecksum},
		"damaged":            {flipped(state, len(state)/2), errChecksum},
		"too short":          {resealed(make([]byte, stateHead-1)), errLength},
		"rank 0":             {resealed(make([]byte, stateHead)), errCorrupt},
		"parameters missing": {resealed(append([]byte{flagMLP | flagOptimizer, 1}, make([]byte, stateHead-2)...)),
			errLength},
		"made on another base": {state, ErrBase},
	} {
		t.Run(name, func(t *testing.T) {
			base := testBase()
			if errors.Is(test.want, ErrBase) {
				base = &BaseModel{network: &network{params: base.params}, vocabulary: nativeVocabulary{}}
			}
			if _, err := UnmarshalState(base, test.data, true); !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
		})
	}
	if _, err := UnmarshalWeights(testBase(), state); !errors.Is(err, errMagic) {
		t.Errorf("a state was read as weights: %v", err)
	}
	if _, err := UnmarshalWeights(testBase(), seal(header(weightsMagic, testBase()))); !errors.Is(err, errLength) {
		t.Errorf("empty weights were read: %v", err)
	}
}
