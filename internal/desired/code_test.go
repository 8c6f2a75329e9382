// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// named returns the code in a key of the ConfigMap functions.
func named(key string) environment.Source {
	return environment.Source{ConfigMapKeyRef: &ref.ConfigMapKey{Name: "functions", Key: key}}
}

// inline returns code that is in the spec.
func inline(code string) environment.Source { return environment.Source{Code: code} }

// readFrom reads keys of one ConfigMap.
func readFrom(texts map[string]string) ReadKey {
	return func(key ref.ConfigMapKey) (text, missing string, err error) {
		if text, ok := texts[key.Key]; ok {
			return text, "", nil
		}
		return "", fmt.Sprintf("ConfigMap %q has no key %q", key.Name, key.Key), nil
	}
}

// TestFillCode checks that all functions of a spec have the code of their ConfigMaps, and which code cannot be read.
func TestFillCode(t *testing.T) {
	texts := map[string]string{"a": "a", "blank": " \n", "long": strings.Repeat("x", environment.MaxCode+1),
		"binary": "\xff"}
	sum := func(key ref.ConfigMapKey) *environment.Reward {
		reward := &environment.Reward{Weighted: []environment.WeightedReward{{Name: "one"}, {Name: "two"}}}
		reward.Weighted[1].Python = &environment.Python{Source: named(key.Key)}
		return reward
	}
	for name, tc := range map[string]struct {
		reward      *environment.Reward
		interaction *environment.Interaction
		want        []v1alpha1.CodeStatus
		field       string
		says        string
	}{
		"inline": {reward: &environment.Reward{RewardRule: environment.RewardRule{
			Python: &environment.Python{Source: environment.Source{Code: "x"}}}}},
		"a part of a sum": {reward: sum(ref.ConfigMapKey{Key: "a"}),
			want: []v1alpha1.CodeStatus{{Function: "reward.weighted[1].python", SHA256: digestOfA}}},
		"episodes": {interaction: &environment.Interaction{Python: &environment.PythonEpisodes{Source: named("a")}},
			want: []v1alpha1.CodeStatus{{Function: "interaction.python", SHA256: digestOfA}}},
		"an agent": {interaction: &environment.Interaction{Agent: &environment.Agent{
			Python: &environment.AgentFunction{Source: named("a")}}},
			want: []v1alpha1.CodeStatus{{Function: "interaction.agent.python", SHA256: digestOfA}}},
		"a missing key": {reward: sum(ref.ConfigMapKey{Key: "b"}), field: "spec.reward.weighted[1].python.configMapKeyRef",
			says: `has no key "b"`},
		"nothing": {reward: sum(ref.ConfigMapKey{Key: "blank"}), field: "spec.reward.weighted[1].python.configMapKeyRef",
			says: "is empty"},
		"too much": {reward: sum(ref.ConfigMapKey{Key: "long"}), field: "spec.reward.weighted[1].python.configMapKeyRef",
			says: "has 65537 bytes"},
		"no text": {reward: sum(ref.ConfigMapKey{Key: "binary"}), field: "spec.reward.weighted[1].python.configMapKeyRef",
			says: "is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			got, found, err := FillCode(tc.reward, tc.interaction, readFrom(texts))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("digests (-want +got):\n%s", diff)
			}
			if tc.field != "" {
				if found == nil || found.Field != tc.field || !strings.Contains(found.Evidence, tc.says) ||
					found.Code != problem.CodeUnavailable {
					t.Errorf("problem %+v, want one of %s that says %q", found, tc.field, tc.says)
				}
				return
			}
			definition := contract.Definition{Reward: tc.reward, Interaction: tc.interaction}
			if err := definition.CheckRead(); found != nil || err != nil {
				t.Errorf("problem %+v, and then %v", found, err)
			}
		})
	}
}

// TestCodeOfAConfigMapIsAsInline checks that code from a ConfigMap and the same code in the spec give one digest of
// the definition.
func TestCodeOfAConfigMapIsAsInline(t *testing.T) {
	given := pythonEnvironment("own", nil, environment.Python{Source: inline(rewardCode)})
	apart := pythonEnvironment("own", nil, environment.Python{Source: named("a")})
	unread, err := contract.DefinitionDigest(Definition(apart.Spec))
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := FillCode(apart.Spec.Reward, nil, readFrom(map[string]string{"a": rewardCode})); found != nil ||
		err != nil {
		t.Fatal(found, err)
	}
	want, err := contract.DefinitionDigest(Definition(given.Spec))
	if err != nil {
		t.Fatal(err)
	}
	got, err := contract.DefinitionDigest(Definition(apart.Spec))
	if err != nil || got != want || unread == want {
		t.Errorf("digest %s, %v, want %s; before it was read it is %s", got, err, want, unread)
	}
}

// TestImageOfAModule checks that a run keeps the image of its probe if a registry has it by its digest.
func TestImageOfAModule(t *testing.T) {
	const digest = "registry.example/own@sha256:aa"
	module, code := environment.Source{Module: "rewards.math"}, inline(rewardCode)
	for name, tc := range map[string]struct {
		source   environment.Source
		reported string
		want     string
		pinned   string
	}{
		"of a registry":      {module, digest, digest, digest},
		"of another runtime": {module, "docker-pullable://" + digest, digest, digest},
		"of the node alone":  {module, "sha256:bb", "sha256:bb", "own:1"},
		"not known":          {module, "", "", "own:1"},
		"of inline code":     {code, digest, "", "own:1"},
	} {
		t.Run(name, func(t *testing.T) {
			env := pythonEnvironment("own", &v1alpha1.Execution{FunctionImage: environment.FunctionImage{Image: "own:1"}},
				environment.Python{Source: tc.source})
			env.Status.Image = ImageOfProbe(Definition(env.Spec), tc.reported)
			if env.Status.Image != tc.want {
				t.Errorf("image %q, want %q", env.Status.Image, tc.want)
			}
			if got := PinnedDefinition(env).Execution.Image; got != tc.pinned {
				t.Errorf("a run has the image %q, want %q", got, tc.pinned)
			}
		})
	}
}

// TestTextsThatNobodyHasReadAreNotStored checks that a run file can be made of texts that were not read, in order to
// check a spec, but cannot be encoded.
func TestTextsThatNobodyHasReadAreNotStored(t *testing.T) {
	apart := Pins{"arithmetic": testPins()["arithmetic"]}
	pin := apart["arithmetic"]
	pin.Definition.Reward = &environment.Reward{RewardRule: environment.RewardRule{
		Python: &environment.Python{Source: named("a"), Processes: 1}}}
	apart["arithmetic"] = pin
	template := &v1alpha1.Renderer{Template: &v1alpha1.Template{ConfigMapKeyRef: &ref.ConfigMapKey{Name: "texts",
		Key: "a"}}}
	for name, tc := range map[string]struct {
		pins     Pins
		renderer *v1alpha1.Renderer
		want     string
	}{
		"all is read": {pins: testPins()},
		"a function":  {pins: apart, want: `ConfigMap "functions" of reward.python was not read`},
		"a template":  {pins: testPins(), renderer: template, want: `ConfigMap "texts" of the model's template was not read`},
	} {
		t.Run(name, func(t *testing.T) {
			run := testRun(func(run *v1alpha1.TrainingRun) { run.Spec.Model.Renderer = tc.renderer })
			file, err := File(FileInput{Run: run, Attempt: 1, Pins: tc.pins, DefaultBaseURL: "https://hosted"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = contract.EncodeRunFile(file); (err == nil) != (tc.want == "") ||
				err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("encoding it: %v, want %q", err, tc.want)
			}
		})
	}
}
