// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/tracking"
)

// object is a decoded JSON object.
type object = map[string]any

// specSchema reads the schema of the spec out of a generated CRD.
func specSchema(t *testing.T, plural string) object {
	t.Helper()
	data, err := os.ReadFile("../../config/crd/bases/rl.tinker-operator.dev_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct{ Properties map[string]object }
				}
			}
		}
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// admit sets the defaults of the schema as the API server does, and notes in met where there are any.
func admit(schema object, value any, path string, met map[string]bool) {
	switch v := value.(type) {
	case object:
		properties, _ := schema["properties"].(object)
		for name, property := range properties {
			property := property.(object)
			if initial, ok := property["default"]; ok {
				met[path+"."+name] = true
				if _, given := v[name]; !given {
					v[name] = clone(initial)
				}
			}
			if member, ok := v[name]; ok {
				admit(property, member, path+"."+name, met)
			}
		}
	case []any:
		for _, item := range v {
			admit(schema["items"].(object), item, path+"[]", met)
		}
	}
}

// defaultsBelow returns where the schema has defaults, except in the overrides of pods: those are defaults of
// Kubernetes' own types, which Go's zero values express.
func defaultsBelow(schema object, path string) []string {
	var all []string
	if _, ok := schema["default"]; ok {
		all = append(all, path)
	}
	if items, ok := schema["items"].(object); ok {
		all = append(all, defaultsBelow(items, path+"[]")...)
	}
	properties, _ := schema["properties"].(object)
	for name, property := range properties {
		if name == "pod" || name == "valueFrom" { // These have the types of Kubernetes.
			continue
		}
		all = append(all, defaultsBelow(property.(object), path+"."+name)...)
	}
	return all
}

func clone(value any) any {
	if o, ok := value.(object); ok {
		copied := maps.Clone(o)
		for name, member := range copied {
			copied[name] = clone(member)
		}
		return copied
	}
	return value
}

// decoded returns the JSON of a typed value as an object.
func decoded(t *testing.T, value any) object {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// Client-side apply stores the whole object in an annotation of at most 256 KiB, beside what others annotate.
func TestCRDsFitClientSideApply(t *testing.T) {
	const limit = 200_000
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		compact, err := yaml.YAMLToJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		if len(compact) > limit {
			t.Errorf("%s has %d bytes as compact JSON, %d are the limit", name, len(compact), limit)
		}
	}
}

func TestDefaultSetsWhatTheMarkersSay(t *testing.T) {
	runs := map[string]v1alpha1.TrainingRunSpec{
		"a run that trains": {Algorithm: &algorithm.Algorithm{}, Evaluation: &v1alpha1.Evaluation{},
			Environments: []v1alpha1.TrainingEnvironment{{GroupSize: 2}}},
		"a run that only evaluates": {Mode: v1alpha1.ModeEvaluate, Evaluation: &v1alpha1.Evaluation{Environments: []v1alpha1.EvaluationEnvironment{{}}}},
		"artifacts":                 {Artifacts: &v1alpha1.Artifacts{ClaimName: "runs"}},
		"a KL penalty":              {Algorithm: &algorithm.Algorithm{KL: &algorithm.KL{Coefficient: 0.1}}},
		"a run that is tracked":     {Tracking: &tracking.Tracking{WandB: &tracking.WandB{Project: "p"}}},
		"given values": {
			Model: v1alpha1.Model{LoraRank: new(int32(8)), TrainModules: []v1alpha1.TrainModule{v1alpha1.TrainMLP}},
			Algorithm: &algorithm.Algorithm{Loss: algorithm.Loss{Name: algorithm.LossCISPO}, Lag: 3,
				Optimizer: algorithm.Optimizer{Beta1: new(0.5)}},
			Rollouts: v1alpha1.Rollouts{Workers: new(int32(0))}, Suspend: new(true),
			FailurePolicy: v1alpha1.FailurePolicy{MaxRestarts: new(int32(0)), RequireOptimizerState: new(false)},
		},
	}
	met := map[string]bool{}
	schema := specSchema(t, "trainingruns")
	for name, spec := range runs {
		t.Run(name, func(t *testing.T) {
			want := decoded(t, spec)
			admit(schema, want, "spec", met)
			run := v1alpha1.TrainingRun{Spec: spec}
			run.Default()
			var admitted v1alpha1.TrainingRunSpec
			if data, err := json.Marshal(want); err != nil || json.Unmarshal(data, &admitted) != nil {
				t.Fatalf("decoding the defaulted spec: %v", err)
			}
			if diff := cmp.Diff(admitted, run.Spec); diff != "" {
				t.Errorf("spec (-markers +Default):\n%s", diff)
			}
		})
	}
	requireAllMet(t, schema, met)
}

func TestDefaultOfRewardEnvironmentSetsWhatTheMarkersSay(t *testing.T) {
	met := map[string]bool{}
	schema := specSchema(t, "rewardenvironments")
	for name, spec := range map[string]v1alpha1.RewardEnvironmentSpec{
		"nothing": {},
		"solvers": {Dataset: &environment.Dataset{Arithmetic: &environment.ArithmeticData{}},
			Interaction: &environment.Interaction{SolverJudge: &environment.SolverJudge{}}},
		"tools": {Dataset: &environment.Dataset{Arithmetic: &environment.ArithmeticData{}},
			Interaction: &environment.Interaction{ToolUse: &environment.ToolUse{}}},
		"countdown": {Dataset: &environment.Dataset{Countdown: &environment.CountdownData{}}},
		"given countdown": {Dataset: &environment.Dataset{Countdown: &environment.CountdownData{MinNumbers: new(int32(2)),
			Tasks: new(int64(7))}}},
		"server": {ORS: &environment.ORS{Server: &environment.ORSServer{Image: "sums"}}},
		"given server": {ORS: &environment.ORS{SecretDelivery: environment.DeliverBody,
			Server: &environment.ORSServer{Image: "sums", Port: new(int32(9000))}}},
		"functions": {Execution: &environment.Execution{}},
		"given values": {
			Dataset: &environment.Dataset{Arithmetic: &environment.ArithmeticData{MaxOperand: new(int32(5))}},
			Interaction: &environment.Interaction{ToolUse: &environment.ToolUse{
				ParseErrors: environment.ParseErrors{Train: environment.MaskParseErrors}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := decoded(t, spec)
			admit(schema, want, "spec", met)
			defaulted := v1alpha1.RewardEnvironment{Spec: spec}
			defaulted.Default()
			if diff := cmp.Diff(want, decoded(t, defaulted.Spec)); diff != "" {
				t.Errorf("spec (-markers +Default):\n%s", diff)
			}
		})
	}
	requireAllMet(t, schema, met)
}

// requireAllMet fails for each default of the schema that no case of the test reached.
func requireAllMet(t *testing.T, schema object, met map[string]bool) {
	t.Helper()
	for _, path := range defaultsBelow(schema, "spec") {
		if !met[path] {
			t.Errorf("no case of this test has the parent of %s: add one", path)
		}
	}
	if len(met) == 0 {
		t.Errorf("the schema has no defaults: %v", slices.Sorted(maps.Keys(schema)))
	}
}
