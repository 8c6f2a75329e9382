// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package status writes the statuses of our kinds: conditions, progress as a learner reports it, and the
// bound on its size. All of it is pure, and it decides nothing about pods.
package status

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// maxConditionMessage keeps a status small; the API server would take 32 KiB. A list of what there is to
// choose from, such as the known renderers, has room in it.
const maxConditionMessage = 1536

// Condition is a condition whose generation and time Set decides.
type Condition = metav1.Condition

// True makes a condition that holds.
func True(kind, reason, message string) Condition {
	return Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// False makes a condition that does not hold.
func False(kind, reason, message string) Condition {
	return Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Unknown makes a condition that is not decided yet, or cannot be known.
func Unknown(kind, reason, message string) Condition {
	return Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// Set puts a condition into a list. Its transition time changes with its status alone.
func Set(conditions *[]metav1.Condition, generation int64, now time.Time, c Condition) {
	c.Message, c.ObservedGeneration, c.LastTransitionTime = Trim(c.Message, maxConditionMessage), generation,
		metav1.NewTime(now)
	meta.SetStatusCondition(conditions, c)
}

// IsTrue says whether a condition holds.
func IsTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}

// Since is when a condition took the status that it has, if it has the one given.
func Since(conditions []metav1.Condition, kind string, status metav1.ConditionStatus) (time.Time, bool) {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.Status != status {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// Trim makes one line of at most n bytes.
func Trim(text string, n int) string {
	return contract.Truncate(strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " "), n)
}
