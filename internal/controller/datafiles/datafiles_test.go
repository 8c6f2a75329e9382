// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package datafiles

import (
	"testing"

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
