// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/uitest"
)

var (
	specField    = regexp.MustCompile(`(?s)<textarea[^>]*>\n?(.*?)</textarea>`)
	versionField = regexp.MustCompile(`name="version" value="([^"]*)"`)
)

// edited returns the form of an editor's page after replacements in the text of the spec.
func edited(t *testing.T, page string, replace ...string) url.Values {
	t.Helper()
	spec, version := specField.FindStringSubmatch(page), versionField.FindStringSubmatch(page)
	if spec == nil || version == nil {
		t.Fatalf("the page has no spec that can be edited:\n%s", page)
	}
	text := html.UnescapeString(spec[1])
	for i := 0; i+1 < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("the spec has no %q:\n%s", replace[i], text)
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return url.Values{"spec": {text}, "version": {version[1]}, "step": {"check"}}
}

// lineOf returns the attribute with the number of the line of a text in which a part begins.
func lineOf(text, part string) string {
	before, _, _ := strings.Cut(text, part)
	return `data-line="` + strconv.Itoa(strings.Count(before, "\n")+1) + `"`
}

func (f *fixture) specOf(t *testing.T, name string) v1alpha1.TrainingRunSpec {
	t.Helper()
	run := &v1alpha1.TrainingRun{}
	if err := f.cluster.Get(t.Context(), client.ObjectKey{Namespace: uitest.Namespace, Name: name}, run); err != nil {
		t.Fatal(err)
	}
	return run.Spec
}

func TestEditedSpecIsCheckedBesideItsLines(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	page := f.expect(t, stuck+"/spec", "maxTokens: 512", "kubectl edit trainingrun countdown-qwen3 --namespace research")
	for name, tc := range map[string]struct {
		old, changed, at string
		want             []string
	}{
		"range": {"maxTokens: 512", "maxTokens: -1", "maxTokens:",
			[]string{"spec.environments[0].sampling.maxTokens", "should be greater than or equal to 1"}},
		"type":        {"loraRank: 32", "loraRank: wide", "loraRank:", []string{"spec.model.loraRank", "integer"}},
		"enumeration": {"name: PPO", "name: ppo", "name: ppo", []string{"did you mean PPO?"}},
		"unknown": {"maxTokens: 512", "maxtokens: 512", "maxtokens:", []string{"unknown field",
			"did you mean spec.environments[0].sampling.maxTokens?"}},
		"rule": {"name: PPO", "name: ImportanceSampling", "loss:", []string{"clip"}},
		"YAML": {"loraRank: 32", "loraRank: [32", "loraRank:", []string{"yaml"}},
	} {
		form := edited(t, page, tc.old, tc.changed)
		answer, checked := f.post(t, stuck+"/spec", form)
		text := html.UnescapeString(checked)
		for _, want := range tc.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the page lacks %q:\n%s", name, want, text)
			}
		}
		if name != "YAML" && !strings.Contains(text, lineOf(form.Get("spec"), tc.at)) {
			t.Errorf("%s: nothing is beside %s:\n%s", name, lineOf(form.Get("spec"), tc.at), text)
		}
		if answer.StatusCode != http.StatusOK || strings.Contains(checked, `value="apply"`) {
			t.Errorf("%s: the answer is %s, and offers to apply the spec", name, answer.Status)
		}
	}
}

func TestEditedSpecIsAppliedOnceConfirmed(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	form := edited(t, f.expect(t, stuck+"/spec"), "maxTokens: 512", "maxTokens: 2048")
	answer, page := f.post(t, stuck+"/spec", form)
	if answer.StatusCode != http.StatusOK || !strings.Contains(page, `value="apply"`) ||
		!strings.Contains(page, "spec.environments[countdown].sampling.maxTokens") {
		t.Fatalf("the change is answered with %s:\n%s", answer.Status, page)
	}
	if got := f.specOf(t, uitest.Stuck).Environments[0].Sampling.MaxTokens; got != 512 {
		t.Fatalf("the check changes the run: maxTokens is %d", got)
	}
	form = edited(t, page)
	form.Set("step", "apply")
	if answer, page = f.post(t, stuck+"/spec", form); answer.Header.Get("Location") != stuck {
		t.Fatalf("the change is answered with %s:\n%s", answer.Status, page)
	}
	if got := f.specOf(t, uitest.Stuck).Environments[0].Sampling.MaxTokens; got != 2048 {
		t.Errorf("maxTokens is %d", got)
	}
	form.Set("version", "another/7")
	if _, page = f.post(t, stuck+"/spec", form); !strings.Contains(page, "apply your changes to the latest version") {
		t.Errorf("a spec that was changed meanwhile is overwritten:\n%s", page)
	}
	form.Set("step", "edit")
	if _, page = f.post(t, stuck+"/spec", form); !strings.Contains(page, "data-check") {
		t.Errorf("the spec cannot be edited further:\n%s", page)
	}
}

func TestHiddenValuesSurviveAnEdit(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	run, _, err := uitest.NewRun("keys", 3, uitest.Figures("keys", .1, .5, 99))
	if err != nil {
		t.Fatal(err)
	}
	run.Spec.PodOverrides = []v1alpha1.TargetedPodOverrides{{Target: v1alpha1.TargetLearner}}
	run.Spec.PodOverrides[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "sk-verysecret"}}
	if err := uitest.Add(t.Context(), f.cluster, run, nil); err != nil {
		t.Fatal(err)
	}
	f = serve(t, f.cluster, uitest.Read)
	const path = "/runs/research/keys"
	page := f.expect(t, path+"/spec", "value: (hidden)", "!sk-verysecret")
	form := edited(t, page, "maxTokens: 512", "maxTokens: 1024")
	_, page = f.post(t, path+"/spec", form)
	if strings.Contains(page, "sk-verysecret") || strings.Count(page, "<tr>") != 2 {
		t.Errorf("the page shows more than the change:\n%s", page)
	}
	form.Set("step", "apply")
	f.post(t, path+"/spec", form)
	if spec := f.specOf(t, "keys"); spec.PodOverrides[0].Env[0].Value != "sk-verysecret" ||
		spec.Environments[0].Sampling.MaxTokens != 1024 {
		t.Errorf("the spec is now %+v", spec.PodOverrides[0].Env)
	}
	page = f.expect(t, path+"/spec")
	_, page = f.post(t, path+"/spec", edited(t, page, "name: TOKEN", "name: OTHER"))
	if !strings.Contains(page, "give the whole value") {
		t.Errorf("a hidden value moves to another variable:\n%s", page)
	}
}

func TestViewersEditIsRefused(t *testing.T) {
	hooks := viewer()
	f := newFixture(t, hooks, uitest.Read)
	f.site.Connection.Client = interceptor.NewClient(f.cluster, interceptor.Funcs{Update: forbiddenUpdate})
	_, page := f.post(t, stuck+"/spec", edited(t, f.expect(t, stuck+"/spec"), "maxTokens: 512", "maxTokens: 9"))
	if !strings.Contains(page, "cannot update") || strings.Contains(page, `value="apply"`) {
		t.Errorf("a viewer may edit:\n%s", page)
	}
	f.expect(t, "/environments/research/countdown/spec", "kubectl edit rewardenvironment countdown", "data-check")
}
