// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/uitest"
)

// suspended reports whether the spec of a run suspends it.
func (f *fixture) suspended(t *testing.T, name string) bool {
	t.Helper()
	run := &v1alpha1.TrainingRun{}
	if err := f.cluster.Get(t.Context(), client.ObjectKey{Namespace: uitest.Namespace, Name: name}, run); err != nil {
		t.Fatal(err)
	}
	return run.Spec.Suspend != nil && *run.Spec.Suspend
}

func TestActions(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	const action = stuck + "/actions/suspend"
	f.expect(t, action, "stops at the next saved state", `method="post"`,
		"kubectl tinker suspend countdown-qwen3 --namespace research")
	if f.suspended(t, uitest.Stuck) {
		t.Fatal("the page that asks changes the run")
	}
	answer, page := f.do(t, http.MethodPost, action)
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != stuck ||
		!f.suspended(t, uitest.Stuck) {
		t.Fatalf("the action answers %s:\n%s", answer.Status, page)
	}
	if answer, page := f.get(t, stuck+"/actions/retry"); answer.StatusCode != http.StatusOK ||
		!strings.Contains(page, "has not failed") || strings.Contains(page, `method="post"`) {
		t.Errorf("an action that does not apply is answered with %s:\n%s", answer.Status, page)
	}
	if answer, _ := f.do(t, http.MethodPost, stuck+"/actions/retry"); answer.StatusCode == http.StatusSeeOther {
		t.Errorf("an action that does not apply is done: got status %d", answer.StatusCode)
	}
	if answer, _ := f.do(t, http.MethodPost, stuck+"/actions/delete"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown action is answered with %s", answer.Status)
	}
	if answer, _ := f.do(t, http.MethodPost, "/"); answer.StatusCode != http.StatusNotFound &&
		answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST to a page is answered with %s", answer.Status)
	}
}

func forbidden(verb string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "rl.tinker-operator.dev", Resource: "trainingruns"}, "",
		errors.New("user viewer cannot "+verb))
}

// viewer returns the hooks for a person who may read runs and ConfigMaps, but no pods, events or environments, and who
// may change nothing.
func viewer() interceptor.Funcs {
	ready := false
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			switch list.(type) {
			case *corev1.PodList, *eventsv1.EventList, *v1alpha1.RewardEnvironmentList:
				return forbidden("list")
			}
			ready = true
			return c.List(ctx, list, options...)
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			if ready {
				return forbidden("patch")
			}
			return nil
		},
	}
}

func forbiddenUpdate(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
	return forbidden("update")
}

func TestViewer(t *testing.T) {
	f := newFixture(t, viewer(), uitest.Read)
	f.expect(t, "/", uitest.Stuck)
	f.expect(t, stuck, "RepliesCut", "cannot list", "Events cannot be read", "data-chart")
	f.expect(t, "/environments", "not up to date", "cannot list")
	f.expect(t, stuck+"/actions/suspend", "cannot patch", `!method="post"`)
	answer, page := f.do(t, http.MethodPost, stuck+"/actions/suspend")
	if answer.StatusCode != http.StatusForbidden || !strings.Contains(page, "is not changed") ||
		f.suspended(t, uitest.Stuck) {
		t.Errorf("a viewer's action is answered with %s:\n%s", answer.Status, page)
	}
}

// TestWhoMaySeeNoRuns checks that a person who may not list runs sees the refusal instead of an empty list.
func TestWhoMaySeeNoRuns(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return forbidden("list")
		}}, uitest.Read)
	f.expect(t, "/", "not up to date", "cannot list")
	if answer, _ := f.get(t, stuck); answer.StatusCode != http.StatusForbidden {
		t.Errorf("the page of a run is answered with %s", answer.Status)
	}
}

// TestKeysAreHidden checks that keys are hidden even if a person has written them into the spec.
func TestKeysAreHidden(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	run, h, err := uitest.NewRun("keys", 3, uitest.Figures("keys", .1, .5, 99))
	if err != nil {
		t.Fatal(err)
	}
	run.Spec.PodOverrides = []v1alpha1.TargetedPodOverrides{{Target: v1alpha1.TargetLearner}}
	run.Spec.PodOverrides[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "sk-verysecret"}, {Name: "OTHER",
		ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "key-name"}}}}
	run.Spec.Tinker.BaseURL = "https://somebody:hunter2@tinker.example/"
	run.Spec.InitFrom = &v1alpha1.InitFrom{RunRef: &v1alpha1.RunCheckpoint{Name: uitest.Stuck}}
	if err := uitest.Add(t.Context(), f.cluster, run, h); err != nil {
		t.Fatal(err)
	}
	other := run.DeepCopy()
	other.Name, other.UID, other.ResourceVersion = "keys-2", "uid-keys-2", ""
	other.Spec.PodOverrides[0].Env[0].Value = "sk-othersecret"
	if err := uitest.Add(t.Context(), f.cluster, other, nil); err != nil {
		t.Fatal(err)
	}
	late := serve(t, f.cluster, uitest.Read)
	late.expect(t, "/runs/research/keys", "name: TOKEN", "value: (hidden)", "key-name", "https://(hidden)@tinker.example/",
		"!sk-verysecret", "!hunter2")
	late.expect(t, "/compare?run=research/keys&run=research/keys-2", "(hidden)", "!sk-verysecret", "!sk-othersecret")
}
