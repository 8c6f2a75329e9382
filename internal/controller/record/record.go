// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package record writes the status of an object, decides when the status of a run can wait, records the events that
// follow from a status, and writes the history of a run into a ConfigMap.
package record

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// Event is an event to record once the status that it follows from is written.
type Event struct {
	Type   string
	Reason string
	Action string
	Note   string
}

// ManagedByOtherManager is the reason of the event at an object that the manager of another release reconciles.
const ManagedByOtherManager = "ManagedByOtherManager"

// BudgetNearlyReached is the reason of the event at a TinkerEndpoint when 80% of one of its budgets are used.
const BudgetNearlyReached = "BudgetNearlyReached"

// TakenOver is the reason of the event at a TinkerEndpoint that a manager takes over from one that is gone.
const TakenOver = "TakenOver"

// Normal makes an event of the type Normal.
func Normal(reason, action, note string) Event {
	return Event{corev1.EventTypeNormal, reason, action, note}
}

// Warning makes an event of the type Warning.
func Warning(reason, action, note string) Event {
	return Event{corev1.EventTypeWarning, reason, action, note}
}

// maxNote is the longest note of an event that the API server accepts.
const maxNote = 1024

// Events records events about an object.
func Events(recorder events.EventRecorder, object client.Object, all ...Event) {
	for _, e := range all {
		recorder.Eventf(object, nil, e.Type, e.Reason, e.Action, "%s", contract.Truncate(e.Note, maxNote))
	}
}

// Status writes the status of an object under the resource version that before has, so that a status which was
// computed from an old view is refused with a conflict.
func Status(ctx context.Context, c client.Client, before, object client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	return nil
}

// Transition returns a condition before and after a change, and whether its status or its reason differs. Either
// may be nil.
func Transition(before, after []metav1.Condition, kind string) (was, is *metav1.Condition, changed bool) {
	was, is = meta.FindStatusCondition(before, kind), meta.FindStatusCondition(after, kind)
	if was == nil || is == nil {
		return was, is, was != is
	}
	return was, is, was.Status != is.Status || was.Reason != is.Reason
}
