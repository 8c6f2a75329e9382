// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// statusLog records every version of the namespace's runs, in the order of their writes.
type statusLog struct {
	mu       sync.Mutex
	versions []*v1alpha1.TrainingRun
}

// recordStatuses records statuses until the spec ends, and then checks the properties that every write must have, in
// any spec.
func recordStatuses(namespace string) *statusLog {
	GinkgoHelper()
	watcher, err := client.NewWithWatch(apiConfig, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	changes, err := watcher.Watch(context.Background(), &v1alpha1.TrainingRunList{}, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	l := &statusLog{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for change := range changes.ResultChan() {
			if run, ok := change.Object.(*v1alpha1.TrainingRun); ok && change.Type != watch.Deleted {
				l.mu.Lock()
				l.versions = append(l.versions, run)
				l.mu.Unlock()
			}
		}
	}()
	DeferCleanup(func() {
		changes.Stop()
		<-done
		Expect(l.contradictions()).To(BeEmpty(), "what the statuses of the spec say")
	})
	return l
}

// at waits until the version of a run that a spec has read is recorded, and returns its place: a watch may lag behind.
func (l *statusLog) at(run *v1alpha1.TrainingRun) int {
	GinkgoHelper()
	place := -1
	Eventually(func() int {
		place = slices.IndexFunc(l.since(0), func(version *v1alpha1.TrainingRun) bool {
			return version.UID == run.UID && version.ResourceVersion == run.ResourceVersion
		})
		return place
	}).Should(BeNumerically(">=", 0))
	return place
}

func (l *statusLog) since(n int) []*v1alpha1.TrainingRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.versions[n:])
}

// contradictions compares each version of a run with the one before.
func (l *statusLog) contradictions() []string {
	var found []string
	former := map[string]*v1alpha1.TrainingRun{}
	for _, run := range l.since(0) {
		if run.Status.State == "" {
			continue // The manager has not written yet.
		}
		was := former[string(run.UID)]
		former[string(run.UID)] = run
		for _, problem := range append(consistency(run), continuity(was, run)...) {
			found = append(found, fmt.Sprintf("%s at %s: %s", run.Name, run.ResourceVersion, problem))
		}
	}
	return found
}

// consistency returns the contradictions within one status.
func consistency(run *v1alpha1.TrainingRun) []string {
	var found []string
	is := func(kind string) bool { return meta.IsStatusConditionTrue(run.Status.Conditions, kind) }
	deny := func(wrong bool, words string) {
		if wrong {
			found = append(found, words)
		}
	}
	conditions := 8
	if run.Spec.Tracking != nil || run.Spec.Artifacts != nil {
		conditions++ // Recording
	}
	deny(len(run.Status.Conditions) != conditions, fmt.Sprintf("%d conditions", len(run.Status.Conditions)))
	deny(is(v1alpha1.ConditionReady) && is(v1alpha1.ConditionStalled), "Ready and Stalled")
	deny(is(v1alpha1.ConditionComplete) && is(v1alpha1.ConditionFailed), "Complete and Failed")
	deny(is(v1alpha1.ConditionFailed) != (run.Status.State == v1alpha1.StateFailed), "the state contradicts Failed")
	deny(is(v1alpha1.ConditionProgressing) &&
		(len(run.Status.Attempts) == 0 || run.Status.Attempts[0].AnswerTime == nil), "progress without a learner")
	for _, c := range run.Status.Conditions {
		deny(c.Message == "" || c.Reason == "", c.Type+" says nothing")
		deny(c.ObservedGeneration > run.Generation, c.Type+" is of a generation to come")
	}
	return found
}

// wasGivenMore reports whether the spec has more steps or epochs than a status had.
func wasGivenMore(was, run *v1alpha1.TrainingRun) bool {
	wanted := run.DeepCopy()
	wanted.Status = was.Status
	return desired.Raised(wanted)
}

// continuity returns the contradictions between two successive statuses of a run.
func continuity(was, run *v1alpha1.TrainingRun) []string {
	if was == nil {
		return nil
	}
	var found []string
	for _, c := range run.Status.Conditions {
		before := meta.FindStatusCondition(was.Status.Conditions, c.Type)
		if before == nil {
			continue
		}
		if (before.Status == c.Status) != before.LastTransitionTime.Equal(&c.LastTransitionTime) &&
			before.Status == c.Status {
			found = append(found, c.Type+" has another transition time with the same status")
		}
		final := c.Type == v1alpha1.ConditionComplete || c.Type == v1alpha1.ConditionFailed
		longer := c.Type == v1alpha1.ConditionComplete && wasGivenMore(was, run)
		if final && before.Status == "True" && c.Status != "True" && !longer &&
			*run.Spec.RetryGeneration == *was.Status.ObservedRetryGeneration {
			found = append(found, c.Type+" was final")
		}
	}
	if *run.Status.ObservedGeneration < *was.Status.ObservedGeneration {
		found = append(found, "observedGeneration falls")
	}
	if n, m := len(was.Status.Attempts), len(run.Status.Attempts); n > 0 &&
		(m == 0 || run.Status.Attempts[0].Number < was.Status.Attempts[0].Number) {
		found = append(found, "the newest attempt is missing")
	}
	if was.Status.StartTime != nil && !was.Status.StartTime.Equal(run.Status.StartTime) {
		found = append(found, "the start time moves")
	}
	return found
}

// transitions lists the versions whose conditions, state or attempts differ from the first version.
func transitions(versions []*v1alpha1.TrainingRun) []string {
	var found []string
	for _, run := range versions {
		if got, want := summary(run), summary(versions[0]); got != want {
			found = append(found, fmt.Sprintf("%s: %s, before %s", run.ResourceVersion, got, want))
		}
	}
	return found
}

func summary(run *v1alpha1.TrainingRun) string {
	words := []string{run.Status.State, fmt.Sprint(len(run.Status.Attempts), " attempts")}
	for _, c := range run.Status.Conditions {
		words = append(words, fmt.Sprintf("%s=%s %s since %s", c.Type, c.Status, c.Reason,
			c.LastTransitionTime.UTC().Format("15:04:05")))
	}
	return strings.Join(words, ", ")
}
