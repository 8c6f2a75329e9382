// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package datafiles

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestMatch(t *testing.T) {
	read := func(sources ...v1alpha1.DataSourceStatus) *v1alpha1.DatasetStatus {
		return &v1alpha1.DatasetStatus{Sources: sources}
	}
	a, b := v1alpha1.DataSourceStatus{Name: "a", SHA256: "1"}, v1alpha1.DataSourceStatus{Name: "b", SHA256: "2"}
	cases := map[string]struct {
		files Files
		read  *v1alpha1.DatasetStatus
		want  bool
	}{
		"no ConfigMap":      {nil, nil, true},
		"what was read":     {Files{"a": "1", "b": "2"}, read(a, b), true},
		"a changed key":     {Files{"a": "1", "b": "3"}, read(a, b), false},
		"a missing key":     {Files{"a": "1", "b": ""}, read(a, b), false},
		"nothing was read":  {Files{"a": "1"}, nil, false},
		"less was read":     {Files{"a": "1", "b": "2"}, read(a), false},
		"another was read":  {Files{"a": "1"}, read(b), false},
		"a missing object":  {Files{"a": ""}, read(a), false},
		"one that stays so": {Files{"a": ""}, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.files.Match(tc.read); got != tc.want {
				t.Errorf("Match = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestDigestOfFiles(t *testing.T) {
	definition := contract.Definition{Dataset: &contract.Dataset{Dataset: environment.Dataset{JSONL: &environment.JSONL{
		ConfigMapRef: &ref.ConfigMap{Name: "c"}}}}}
	own, err := contract.DefinitionDigest(definition)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, files := range []Files{nil, {"a": "1"}, {"a": "2"}, {"a": ""}} {
		digest, err := files.Digest(definition)
		if err != nil || seen[digest] || (digest == own) != (files == nil) {
			t.Errorf("Digest of %v = %s, %v", files, digest, err)
		}
		seen[digest] = true
	}
}

// TestMarkChanged checks that a run sees an environment as not probed once the ConfigMap of a usable environment has
// changed. An environment whose probe failed keeps the result of the probe, because a failed probe has read no rows.
func TestMarkChanged(t *testing.T) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"},
		Data: map[string]string{"rows.jsonl": "{}"}}
	sum := digest(config, "rows.jsonl")
	read := func(sum string) *v1alpha1.DatasetStatus {
		return &v1alpha1.DatasetStatus{Sources: []v1alpha1.DataSourceStatus{{Name: "rows.jsonl", SHA256: sum}}}
	}
	cases := map[string]struct {
		ready   metav1.ConditionStatus
		dataset *v1alpha1.DatasetStatus
		marked  bool
	}{
		"usable, as it was read":        {metav1.ConditionTrue, read(sum), false},
		"usable, and changed since":     {metav1.ConditionTrue, read("another"), true},
		"a first probe that failed":     {metav1.ConditionFalse, nil, false},
		"one that failed after another": {metav1.ConditionFalse, read("another"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			env := &v1alpha1.RewardEnvironment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Generation: 1}}
			env.Spec.Dataset = &environment.Dataset{JSONL: &environment.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "c"}},
				Splits: []environment.DataSplit{{Name: "train", Source: "rows.jsonl"}}}
			env.Status.ObservedGeneration, env.Status.Dataset = new(int64(1)), tc.dataset
			meta.SetStatusCondition(&env.Status.Conditions,
				metav1.Condition{Type: v1alpha1.ConditionReady, Status: tc.ready, Reason: "R"})
			if err := MarkChanged(t.Context(), fake.NewClientBuilder().WithObjects(config).Build(), env); err != nil {
				t.Fatal(err)
			}
			if marked := env.Status.ObservedGeneration == nil; marked != tc.marked {
				t.Errorf("the environment is marked as not probed: %v, want %v", marked, tc.marked)
			}
		})
	}
}
