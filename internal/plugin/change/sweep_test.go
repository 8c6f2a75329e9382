// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
)

// swept returns a feeder of a sweep with runs: "runs", "held", "suspended" (by a person) or "failed".
func swept(t *testing.T, out *bytes.Buffer, states ...string) feeder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.TrainingRun{})
	for i, state := range states {
		run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Name: "sums-" + strings.Repeat("i", i+1), Namespace: "n",
			Labels: map[string]string{observe.LabelSweep: "lr"}}}
		run.Spec.Suspend = new(state == "held" || state == "suspended")
		if state == "held" {
			run.Annotations = map[string]string{annotationHeld: "true"}
		}
		if state == "failed" {
			run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue}}
		}
		builder = builder.WithObjects(run)
	}
	f := newFeeder(cli.IO{Stdout: out}, builder.Build(), "n", "lr")
	f.period = time.Millisecond
	return f
}

// running returns which runs are not suspended.
func (f feeder) running(t *testing.T) []string {
	t.Helper()
	var list v1alpha1.TrainingRunList
	if err := f.kube.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, run := range list.Items {
		if !ptr.Deref(run.Spec.Suspend, false) {
			names = append(names, run.Name)
		}
	}
	return names
}

func TestFeedKeepsSoManyRunning(t *testing.T) {
	var out bytes.Buffer
	f := swept(t, &out, "runs", "failed", "suspended", "held", "held", "held")
	left, err := f.resume(t.Context(), 2)
	if err != nil || left != 2 {
		t.Fatalf("%d are held back, %v", left, err)
	}
	if diff := cmp.Diff([]string{"sums-i", "sums-ii", "sums-iiii"}, f.running(t)); diff != "" {
		t.Errorf("not suspended (-want +got):\n%s", diff)
	}
	if left, err = f.resume(t.Context(), 2); err != nil || left != 2 || len(f.running(t)) != 3 {
		t.Errorf("a second look leaves %d, %v", left, err)
	}
	if want := "trainingrun sums-iiii runs; 2 of sweep lr wait\n"; out.String() != want {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
}

// TestFeedEndsWhenNoneIsHeldBack ends the runs one after another.
func TestFeedEndsWhenNoneIsHeldBack(t *testing.T) {
	var out bytes.Buffer
	f := swept(t, &out, "runs", "held", "held")
	done := make(chan error, 1)
	go func() { done <- f.feed(t.Context(), 1) }()
	for _, name := range []string{"sums-i", "sums-ii"} {
		var run v1alpha1.TrainingRun
		for {
			if err := f.kube.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: name}, &run); err != nil {
				t.Fatal(err)
			}
			if !ptr.Deref(run.Spec.Suspend, false) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}}
		if err := f.kube.Status().Update(t.Context(), &run); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := f.running(t); len(got) != 3 {
		t.Errorf("%v are not suspended", got)
	}
}

func TestFeedSaysHowItContinues(t *testing.T) {
	f := swept(t, &bytes.Buffer{}, "runs", "held")
	ctx, cancel := context.WithCancel(t.Context())
	f.period = time.Hour
	time.AfterFunc(20*time.Millisecond, cancel)
	err := f.feed(ctx, 1)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(),
		"kubectl tinker resume --sweep lr --max-running 1") {
		t.Errorf("an interruption: %v", err)
	}
	lists, reset := f.kube, errors.New("the connection was reset")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	interrupts := func() {}
	f.kube = interceptor.NewClient(f.kube.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			interrupts()
			return reset
		},
	})
	for _, want := range []error{reset, context.Canceled} {
		if err := f.feed(ctx, 1); !errors.Is(err, want) || !strings.Contains(err.Error(),
			"kubectl tinker resume --sweep lr --max-running 1") {
			t.Errorf("a request that breaks: %v, want %v with the command that continues", err, want)
		}
		interrupts = stop
	}
	f.kube = lists
	f.sweep = "other"
	if _, err := f.resume(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "has no runs") {
		t.Errorf("a sweep that does not exist: %v", err)
	}
}

func TestHoldBackSuspends(t *testing.T) {
	runs, err := expand(newRun(), "", []string{"spec.algorithm.seed=1,2,3"})
	if err != nil {
		t.Fatal(err)
	}
	if err := holdBack(runs[1:]); err != nil {
		t.Fatal(err)
	}
	for i, run := range runs {
		spec, _ := run.Object["spec"].(map[string]any)
		if held := run.GetAnnotations()[annotationHeld] == "true"; held != (i > 0) || (spec["suspend"] == true) != held {
			t.Errorf("run %d is held back: %t, and its spec is %v", i+1, held, spec)
		}
	}
}
