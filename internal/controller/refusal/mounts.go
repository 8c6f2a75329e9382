// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mountFailures are the reasons of the events about a volume that a pod does not get. The status of the pod does not
// mention it.
var mountFailures = []string{"FailedMount", "FailedAttachVolume", "FailedMapVolume"}

// vague begins the kubelet's notes about a wait whose reason they do not name.
const vague = "Unable to attach or mount volumes"

// OfMounts returns the words of the newest event about a volume that a pod does not get; empty if there is none.
func OfMounts(ctx context.Context, reader client.Reader, pod *corev1.Pod) (string, error) {
	var events eventsv1.EventList
	of := client.MatchingFields{"regarding.kind": "Pod", "regarding.uid": string(pod.UID)}
	if err := reader.List(ctx, &events, client.InNamespace(pod.Namespace), of); err != nil {
		return "", fmt.Errorf("listing events of pod %s: %w", pod.Name, err)
	}
	return newestMount(events.Items), nil
}

func newestMount(events []eventsv1.Event) string {
	var note string
	var newest time.Time
	for _, e := range events {
		if !slices.Contains(mountFailures, e.Reason) {
			continue
		}
		at, isVague := lastSeen(e), strings.HasPrefix(e.Note, vague)
		switch {
		case note == "", strings.HasPrefix(note, vague) && !isVague, strings.HasPrefix(note, vague) == isVague &&
			at.After(newest):
			note, newest = e.Note, at
		}
	}
	return strings.TrimPrefix(note, "(combined from similar events): ")
}
