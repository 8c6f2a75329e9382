// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

// Scorer is a model or checkpoint that computes log-probabilities of the policy's tokens: the reference of the KL
// penalty, or a teacher.
type Scorer struct {
	// Path is the path of its field in the spec.
	Path string
	algorithm.Reference
}

// Scorers lists the models that score the training data of a run.
func (f Fixed) Scorers() []Scorer {
	var scorers []Scorer
	if f.Algorithm != nil && f.Algorithm.KL != nil {
		reference := algorithm.Reference{Model: f.Model.Name}
		if given := f.Algorithm.KL.Reference; given != nil {
			reference = *given
		}
		scorers = append(scorers, Scorer{"algorithm.kl.reference", reference})
	}
	for _, e := range f.Environments {
		if e.Teacher != nil {
			scorers = append(scorers, Scorer{fmt.Sprintf("environments[%s].teacher", e.Name), e.Teacher.Reference()})
		}
	}
	return scorers
}

// Teachers returns the teachers of the run by the names of their environments; nil if there are none.
func (f Fixed) Teachers() map[string]algorithm.Teacher {
	var teachers map[string]algorithm.Teacher
	for _, e := range f.Environments {
		if e.Teacher != nil {
			if teachers == nil {
				teachers = map[string]algorithm.Teacher{}
			}
			teachers[e.Name] = *e.Teacher
		}
	}
	return teachers
}
