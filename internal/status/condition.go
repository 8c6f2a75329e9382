// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package status writes the statuses of our kinds: conditions, repairs by the fields of a spec, progress as a learner
// reports it, and the bound on its size. All of it is pure, and it decides nothing about pods.
package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// maxConditionMessage keeps a status small; the API server would accept 32 KiB. A message has room for a list of
// choices, such as the known renderers.
const maxConditionMessage = 1536

// Condition is a condition whose generation and time Set decides.
type Condition struct {
	metav1.Condition
	// Code is the code of the problem that the condition shows; empty if it shows none.
	Code problem.Code
}

// True makes a condition that holds.
func True(kind, reason, message string) Condition {
	return newCondition(kind, metav1.ConditionTrue, reason, message)
}

// False makes a condition that does not hold.
func False(kind, reason, message string) Condition {
	return newCondition(kind, metav1.ConditionFalse, reason, message)
}

// Unknown makes a condition that is not decided yet, or cannot be known.
func Unknown(kind, reason, message string) Condition {
	return newCondition(kind, metav1.ConditionUnknown, reason, message)
}

func newCondition(kind string, is metav1.ConditionStatus, reason, message string) Condition {
	return Condition{Condition: metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message}}
}

// Show makes a condition that shows a problem, with the reason and the sentences of the table.
func Show(kind string, is metav1.ConditionStatus, found problem.Problem) Condition {
	c := newCondition(kind, is, found.Reason(), found.Message())
	c.Code = found.Code
	return c
}

// As returns a copy of the condition with another type and status.
func (c Condition) As(kind string, is metav1.ConditionStatus) Condition {
	c.Type, c.Status = kind, is
	return c
}

// Find returns a condition with its code; nil if the list has none of the type.
func Find(conditions []metav1.Condition, codes []v1alpha1.ConditionCode, kind string) *Condition {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return nil
	}
	return &Condition{*c, CodeOf(codes, kind)}
}

// CodeOf returns the code of the problem that a condition shows; empty if it shows none.
func CodeOf(codes []v1alpha1.ConditionCode, kind string) problem.Code {
	for _, c := range codes {
		if c.Condition == kind {
			return problem.Code(c.Code)
		}
	}
	return ""
}

// Set puts a condition into one list, and its code into another. The transition time of the condition changes only with
// its status.
func Set(conditions *[]metav1.Condition, codes *[]v1alpha1.ConditionCode, generation int64, now time.Time,
	c Condition) {
	c.Message, c.ObservedGeneration, c.LastTransitionTime = Trim(c.Message, maxConditionMessage), generation,
		metav1.NewTime(now)
	meta.SetStatusCondition(conditions, c.Condition)
	code := c.Code.Bounded()
	if code == "" && problem.IsKnown(problem.Code(c.Reason)) {
		code = problem.Code(c.Reason)
	}
	*codes = slices.DeleteFunc(*codes, func(other v1alpha1.ConditionCode) bool { return other.Condition == c.Type })
	if code != "" {
		*codes = append(*codes, v1alpha1.ConditionCode{Condition: c.Type, Code: string(code)})
	}
	slices.SortFunc(*codes, func(a, b v1alpha1.ConditionCode) int { return cmp.Compare(a.Condition, b.Condition) })
}

// IsTrue reports whether a condition holds.
func IsTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}

// Since returns the time since which a condition has the given status; false if it has another one.
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
