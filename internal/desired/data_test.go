// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"testing"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

func TestMountData(t *testing.T) {
	pin := func(d environment.Dataset) Pin {
		d = *(&v1alpha1.RewardEnvironment{Spec: v1alpha1.RewardEnvironmentSpec{Dataset: &d}}).Spec.Dataset
		return Pin{Definition: contract.Definition{Dataset: datasetOf(d)}}
	}
	split := []environment.DataSplit{{Name: "train"}}
	pins := Pins{
		"a": pin(environment.Dataset{JSONL: &environment.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "rows"}}, Splits: split}),
		"b": pin(environment.Dataset{JSONL: &environment.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "rows"}}, Splits: split}),
		"c": pin(environment.Dataset{JSONL: &environment.JSONL{ClaimName: "volume"}, Splits: split}),
		"d": pin(environment.Dataset{Hub: &environment.Hub{Repository: "o/n",
			TokenSecretKeyRef: &ref.SecretKey{Name: "hf", Key: "T"}}}),
		"e": testPins()["arithmetic"],
	}
	if got, want := pins.Data(), "claim/volume,configmap/rows,disk,secret/hf"; got != want {
		t.Fatalf("Data = %s, want %s", got, want)
	}
	job := RolloutJob(testRun(), 1, "link", settings)
	before := job.DeepCopy()
	MountData(job, testPins().Data(), v1alpha1.PodOverrides{}, settings)
	if diff := cmp.Diff(before, job); diff != "" || DataOf(job) != "" {
		t.Errorf("a run whose tasks are generated has mounts:\n%s", diff)
	}
	MountData(job, pins.Data(), v1alpha1.PodOverrides{}, settings)
	if DataOf(job) != pins.Data() {
		t.Errorf("the Job's annotation is %q", DataOf(job))
	}
	spec := job.Spec.Template.Spec
	mounts := map[string]bool{}
	for _, m := range spec.Containers[0].VolumeMounts[len(before.Spec.Template.Spec.Containers[0].VolumeMounts):] {
		mounts[m.MountPath] = m.ReadOnly
	}
	want := map[string]bool{contract.DataDir + "/claim/volume": true, contract.DataDir + "/configmap/rows": true,
		contract.DataDir + "/secret/hf": true, dataDir: false}
	if diff := cmp.Diff(want, mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if !slices.Contains(spec.Containers[0].Args, "--data-dir="+dataDir) {
		t.Errorf("arguments = %v", spec.Containers[0].Args)
	}
	for _, v := range spec.Volumes[len(before.Spec.Template.Spec.Volumes):] {
		switch {
		case v.EmptyDir != nil && v.EmptyDir.SizeLimit.Value() <= dataBytes:
			t.Errorf("the disk has %v", v.EmptyDir.SizeLimit)
		case v.ConfigMap != nil && !*v.ConfigMap.Optional, v.Secret != nil && !*v.Secret.Optional,
			v.PersistentVolumeClaim != nil && !v.PersistentVolumeClaim.ReadOnly:
			t.Errorf("volume %+v would keep a pod waiting, or is writable", v)
		}
	}
}

func TestPinnedDefinition(t *testing.T) {
	env := &v1alpha1.RewardEnvironment{Spec: v1alpha1.RewardEnvironmentSpec{Dataset: &environment.Dataset{
		JSONL: &environment.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "rows"}},
		Splits: []environment.DataSplit{{Name: "train", Source: "rows.jsonl", ShuffleSeed: new(int64(3)), Skip: 1,
			Take: new(int64(2))}, {Name: "few", From: "train"}},
	}}}
	env.Status.Dataset = &v1alpha1.DatasetStatus{Revision: "r",
		Sources: []v1alpha1.DataSourceStatus{{Name: "rows.jsonl", SHA256: "s", Rows: new(int64(4))}}}
	want := &contract.Dataset{Dataset: environment.Dataset{
		JSONL: &environment.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "rows"}},
		Splits: []environment.DataSplit{
			{Name: "train", Source: "rows.jsonl", ShuffleSeed: new(int64(3)), Skip: 1, Take: new(int64(2))},
			{Name: "few", From: "train"},
		},
	}, Contents: &contract.DataContents{Revision: "r",
		Sources: []contract.DataSource{{Name: "rows.jsonl", SHA256: "s", Rows: 4}}},
	}
	if diff := cmp.Diff(want, PinnedDefinition(env).Dataset); diff != "" {
		t.Errorf("PinnedDefinition (-want +got):\n%s", diff)
	}
}

// TestKeysOfJudgesAreMounted requires that the pods that play have the Secrets of judges, even if they read no data.
func TestKeysOfJudgesAreMounted(t *testing.T) {
	judged := func(secret string) environment.Reward {
		return environment.Reward{RewardRule: environment.RewardRule{Rubric: &environment.Rubric{Judge: environment.Judge{
			OpenAI: &environment.OpenAIJudge{APIKeySecretKeyRef: &ref.SecretKey{Name: secret, Key: "k"}},
		}}}}
	}
	generated := &contract.Dataset{Dataset: environment.Dataset{Arithmetic: &environment.ArithmeticData{MaxOperand: 9}}}
	alone, sum := judged("a"), environment.Reward{Weighted: []environment.WeightedReward{{
		RewardRule: judged("b").RewardRule},
		{RewardRule: judged("a").RewardRule}}}
	pins := Pins{
		"alone": {Definition: contract.Definition{Dataset: generated, Reward: &alone}},
		"sum":   {Definition: contract.Definition{Dataset: generated, Reward: &sum}},
	}
	if got := pins.Data(); got != "secret/a,secret/b" {
		t.Errorf("Data = %q", got)
	}
}
