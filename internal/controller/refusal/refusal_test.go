// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

var (
	jobs      = schema.GroupResource{Group: "batch", Resource: "jobs"}
	overQuota = apierrors.NewForbidden(jobs, "j", errors.New("exceeded quota"))
	invalid   = apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "j", nil)
)

// webhook returns the API server's error for an admission webhook that refuses with a status of its own.
func webhook(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: code, Reason: reason, Message: `admission webhook "w" denied the request: no`,
	}}
}

// terminating is the API server's refusal to create an object in a namespace that is being deleted.
func terminating() error {
	err := apierrors.NewForbidden(jobs, "j", errors.New("unable to create new content in namespace n because it is "+
		"being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause,
		Field: "metadata.namespace"}}
	return fmt.Errorf("creating learner job: %w", err)
}

func TestOf(t *testing.T) {
	cases := map[string]struct {
		err  error
		want string
	}{
		"nothing":           {nil, ""},
		"a quota":           {fmt.Errorf("creating job: %w", overQuota), "CreateRefused"},
		"an invalid object": {fmt.Errorf("creating job: %w", invalid), "SpecRefused"},
		"a bad request":     {apierrors.NewBadRequest("b"), "SpecRefused"},
		"a webhook":         {webhook(422, metav1.StatusReasonInvalid), "CreateRefused"},
		"a webhook's 400":   {webhook(400, metav1.StatusReasonBadRequest), "CreateRefused"},
		"no address left": {apierrors.NewInternalError(
			errors.New(`failed to allocate a serviceIP for Service "s": range is full`)), "CreateRefused"},
		"a silent webhook": {apierrors.NewInternalError(
			errors.New(`failed calling webhook "w": failed to call webhook: connection refused`)), "CreateRefused"},
		"an internal error":                 {apierrors.NewInternalError(errors.New("etcd")), ""},
		"a namespace that is being deleted": {terminating(), "NamespaceTerminating"},
		"a timeout":                         {apierrors.NewTimeoutError("t", 1), ""},
		"a conflict":                        {apierrors.NewConflict(jobs, "j", errors.New("c")), ""},
		"an existing object":                {apierrors.NewAlreadyExists(jobs, "j"), ""},
		"no answer":                         {errors.New("connection refused"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, is := Of(tc.err)
			if got.Code != problem.Code(tc.want) || is != (tc.want != "") || (is && got.Evidence == "") {
				t.Errorf("Of = %+v, %v, want %q", got, is, tc.want)
			}
		})
	}
}

func TestNewest(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	event := func(reason, note string, after time.Duration) eventsv1.Event {
		return eventsv1.Event{Reason: reason, Note: note, DeprecatedLastTimestamp: metav1.NewTime(at.Add(after))}
	}
	refused := event("FailedCreate", `Error creating: pods "run-abcde-learner-1-x7k2p" is forbidden: exceeded quota`,
		time.Minute)
	const words = `pods "run-abcde-learner-1" is forbidden: exceeded quota`
	cases := map[string]struct {
		events []eventsv1.Event
		want   string
	}{
		"no events": {nil, ""},
		"one":       {[]eventsv1.Event{refused}, words},
		"several as one": {[]eventsv1.Event{event("FailedCreate", "(combined from similar events): "+refused.Note, 0)},
			words},
		"the newest counts":   {[]eventsv1.Event{refused, event("FailedCreate", "Error creating: other", 0)}, words},
		"a pod since":         {[]eventsv1.Event{refused, event("SuccessfulCreate", "Created pod: p", 2*time.Minute)}, ""},
		"a pod before":        {[]eventsv1.Event{event("SuccessfulCreate", "Created pod: p", 0), refused}, words},
		"a pod among several": {[]eventsv1.Event{refused, event("SuccessfulCreate", "Created pod: p", time.Minute)}, words},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := newest(tc.events).Evidence; got != tc.want {
				t.Errorf("newest = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "run", UID: "one", Generation: 3}}
	m := &Memory{}
	type outcome struct {
		Wait  time.Duration
		Again bool
	}
	wait := func(generation int64, after time.Duration) outcome {
		left, again := m.Latest(run, "learner").Wait(generation, now.Add(after))
		return outcome{left, again}
	}
	expect := func(what string, got, want outcome) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: Wait (-want +got):\n%s", what, diff)
		}
	}
	expect("nothing known", wait(3, 0), outcome{0, true})
	if !m.Record(run, "learner", "j", overQuota, now) {
		t.Error("a quota refuses nothing")
	}
	expect("a quota", wait(3, 15*time.Second), outcome{30 * time.Second, true})
	expect("a quota later", wait(3, time.Minute), outcome{0, true})
	m.Record(run, "learner", "j", invalid, now)
	expect("an invalid object", wait(3, time.Hour), outcome{0, false})
	expect("another spec", wait(4, 0), outcome{0, true})
	if m.Latest(run, "rollout").Code != "" {
		t.Errorf("memory mixes roles up: got %q, want none", m.Latest(run, "rollout").Code)
	}
	if m.Record(run, "learner", "j", nil, now) || m.Latest(run, "learner").Code != "" {
		t.Errorf("an object that was created is still refused: got %+v, want none", m.Latest(run, "learner"))
	}
	m.Record(run, "learner", "j", invalid, now)
	run.UID = "two"
	expect("another run of the name", wait(3, 0), outcome{0, true})
}
