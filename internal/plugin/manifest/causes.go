// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cause is a problem of one field of an object. Field is its path, or empty for the object.
type Cause struct{ Field, Message string }

// uncheckedField is the API server's name of the object if it did not check rules because a field is invalid.
const uncheckedField = "<nil>"

// Causes returns the problems of the fields of an object of a kind, from the API server's error about the object. It
// suggests the fields and values that may be meant. An error about no field has no causes.
func Causes(kind string, err error) []Cause {
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) {
		return nil
	}
	of, ok := checkers[kind]
	if !ok {
		return nil
	}
	c, schemaErr := of()
	if schemaErr != nil {
		return []Cause{{Message: schemaErr.Error()}}
	}
	var all []Cause
	told := refusal.Status()
	for _, found := range unknownField.FindAllStringSubmatch(told.Message, -1) {
		all = append(all, Cause{Field: found[1], Message: "unknown field" + suggestion(c.structural, found[1])})
	}
	if told.Reason != metav1.StatusReasonInvalid || told.Details == nil {
		return all
	}
	for _, cause := range told.Details.Causes {
		if cause.Field == uncheckedField {
			continue
		}
		message := cause.Message
		for _, found := range unsupported.FindAllStringSubmatch(message, -1) {
			if near := valueFor(found[1], strings.Split(strings.Trim(found[2], `", `), `", "`)); near != "" {
				message += ": " + near
			}
		}
		all = append(all, Cause{Field: cause.Field, Message: message})
	}
	return all
}
