// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Reasons of the events that the Job controller records about the pods that it makes.
const (
	podRefused = "FailedCreate"
	podCreated = "SuccessfulCreate"
)

// OfPods returns why Kubernetes refuses the pods of a Job, from the events of the Job. It ignores events before the
// creation of the newest pod.
func OfPods(ctx context.Context, reader client.Reader, job *batchv1.Job) (problem.Problem, error) {
	var events eventsv1.EventList
	of := client.MatchingFields{"regarding.kind": "Job", "regarding.uid": string(job.UID)}
	if err := reader.List(ctx, &events, client.InNamespace(job.Namespace), of); err != nil {
		return problem.Problem{}, fmt.Errorf("listing events of job %s: %w", job.Name, err)
	}
	return newest(events.Items), nil
}

func newest(events []eventsv1.Event) problem.Problem {
	var note string
	var refused, created time.Time
	for _, e := range events {
		at := lastSeen(e)
		switch {
		case e.Reason == podRefused && !at.Before(refused):
			refused, note = at, e.Note
		case e.Reason == podCreated && at.After(created):
			created = at
		}
	}
	if note == "" || refused.Before(created) {
		return problem.Problem{}
	}
	return problem.Problem{Code: problem.CreateRefused, Evidence: podWords(note)}
}

// lastSeen returns the time of the last occurrence of an event. It also reads the deprecated fields, which the recorder
// of the Job controller writes.
func lastSeen(e eventsv1.Event) time.Time {
	at := e.CreationTimestamp.Time
	for _, other := range []time.Time{e.EventTime.Time, e.DeprecatedLastTimestamp.Time} {
		if other.After(at) {
			at = other
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}

// generatedName matches the name of a pod as the API server quotes it. Its suffix differs at each try.
var generatedName = regexp.MustCompile(`(pods? "[^"]*)-[a-z0-9]{5}"`)

// podWords returns the API server's message in the note of an event, without the parts that differ between tries, so
// that the status does not change with each try.
func podWords(note string) string {
	note = strings.TrimPrefix(note, "(combined from similar events): ")
	note = strings.TrimPrefix(note, "Error creating: ")
	return generatedName.ReplaceAllString(note, `$1"`)
}
