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

// OfPods reads from the events of a Job that lacks pods why they were refused. Events of refusals before the newest pod
// do not count.
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

// lastSeen returns the time at which an event last occurred. The recorder of the Job controller writes the older
// fields.
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

// generatedName is a pod's name as the API server quotes it, with the suffix that differs at each try.
var generatedName = regexp.MustCompile(`(pods? "[^"]*)-[a-z0-9]{5}"`)

// podWords are the API server's words in a note, without the parts that differ between tries: a status should not
// change with each try.
func podWords(note string) string {
	note = strings.TrimPrefix(note, "(combined from similar events): ")
	note = strings.TrimPrefix(note, "Error creating: ")
	return generatedName.ReplaceAllString(note, `$1"`)
}
