// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestCauses(t *testing.T) {
	kind := apischema.GroupKind{Group: "rl.tinker-operator.dev", Kind: KindRun}
	losses := []string{"ImportanceSampling", "PPO", "CISPO"}
	for name, tc := range map[string]struct {
		err  error
		want []Cause
	}{
		"fields": {apierrors.NewInvalid(kind, "run", field.ErrorList{
			field.Invalid(field.NewPath("spec", "model", "loraRank"), 0, "must be at least 1"),
			field.NotSupported(field.NewPath("spec", "algorithm", "loss", "name"), "ppo", losses),
			field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid"),
		}), []Cause{
			{"spec.model.loraRank", "Invalid value: 0: must be at least 1"},
			{"spec.algorithm.loss.name", `Unsupported value: "ppo": supported values: "ImportanceSampling", "PPO", "CISPO"` +
				": did you mean PPO?"},
		}},
		"unknown fields": {apierrors.NewBadRequest(`strict decoding error: unknown field "spec.model.lorarank", ` +
			`unknown field "spec.learningRate"`), []Cause{
			{"spec.model.lorarank", "unknown field: did you mean spec.model.loraRank?"},
			{"spec.learningRate", "unknown field: did you mean spec.algorithm.optimizer.learningRate?"},
		}},
		"no field":  {apierrors.NewForbidden(apischema.GroupResource{Resource: "runs"}, "a", errors.New("no")), nil},
		"no status": {errors.New("the network is down"), nil},
	} {
		if diff := cmp.Diff(tc.want, Causes(KindRun, tc.err)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLines(t *testing.T) {
	lines := LinesOf("algorithm:\n  steps: 80\nenvironments:\n- name: countdown\n  sampling:\n    maxTokens: 512\n" +
		"- name: b\n")
	for path, want := range map[string]int{"algorithm": 1, "algorithm.steps": 2, "algorithm.loss.name": 1,
		"environments[0].sampling.maxTokens": 6, "environments[1]": 7, "environments[b].name": 7, "environments[9].name": 3,
		"model": 0, "": 0} {
		if got := lines.Line(path); got != want {
			t.Errorf("%s is at line %d, want %d", path, got, want)
		}
	}
	if got := LinesOf("a: [").Line("a"); got != 0 {
		t.Errorf("a text that is no YAML has line %d", got)
	}
}
