// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import "cmp"

// Tests runs the program that a reply contains, its last fenced block of code, against the tests of the row.
// SetDefaults has the defaults of its fields.
// +kubebuilder:validation:XValidation:rule="has(self.language) != has(self.command)",message="give exactly one of language: Python and command, which runs the file program of its directory"
type Tests struct {
	// language is the language of the programs: Python.
	// +optional
	Language TestLanguage `json:"language,omitempty"`
	// command runs the file program of the current directory, for example ["node", "program"]. Tests are then pairs of
	// input and output.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=4096
	// +optional
	Command []string `json:"command,omitempty"`
	// field is the name of the column with the tests of a row. Defaults to tests.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Field string `json:"field,omitempty"`
	// score selects the reward. All rewards a program that passes all tests with 1. Fraction rewards the share of the
	// tests that the program passes. Defaults to All.
	// +optional
	Score TestScore `json:"score,omitempty"`
	// timeoutSeconds is the processor time that a test may take. Defaults to 6.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// memory is the memory limit of a program. As many programs run at once as fit into the container's memory limit, up
	// to 16. Defaults to 256Mi.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).compareTo(quantity('16Mi')) >= 0",message="must be a quantity of at least 16Mi, such as 256Mi: an interpreter needs as much"
	// +optional
	Memory string `json:"memory,omitempty"`
}

// TestLanguage is a language of programs.
// +kubebuilder:validation:Enum=Python
type TestLanguage string

// TestPython means that the programs are in Python.
const TestPython TestLanguage = "Python"

// TestScore selects the reward of passed tests.
// +kubebuilder:validation:Enum=All;Fraction
type TestScore string

// The rewards of tests.
const (
	TestAll      TestScore = "All"
	TestFraction TestScore = "Fraction"
)

func (t *Tests) setDefaults() {
	t.Field = cmp.Or(t.Field, "tests")
	t.Score = cmp.Or(t.Score, TestAll)
	t.TimeoutSeconds = cmp.Or(t.TimeoutSeconds, 6)
	t.Memory = cmp.Or(t.Memory, "256Mi")
}

// Isolation is the isolation without which programs of a policy do not run.
type Isolation struct {
	// minimum is Process, Landlock or RuntimeClass. Process means limits, and no sockets. Landlock also limits the files
	// that a program reads and writes, and needs Linux 5.13 or later. RuntimeClass means gVisor. If the pod has less
	// isolation, nothing runs, and the condition Ready says which isolation it has. Defaults to Landlock.
	// +optional
	Minimum IsolationLevel `json:"minimum,omitempty"`
}

// IsolationLevel is the degree of isolation of programs.
// +kubebuilder:validation:Enum=Process;Landlock;RuntimeClass
type IsolationLevel string

// The levels of isolation, each of which includes the level before it.
const (
	IsolationProcess      IsolationLevel = "Process"
	IsolationLandlock     IsolationLevel = "Landlock"
	IsolationRuntimeClass IsolationLevel = "RuntimeClass"
)

// Level returns the minimum of an isolation, which may be nil.
func (i *Isolation) Level() IsolationLevel {
	if i == nil {
		return IsolationLandlock
	}
	return cmp.Or(i.Minimum, IsolationLandlock)
}

// RunsPrograms reports whether a rule runs programs of a policy.
func (r *RewardRule) RunsPrograms() bool {
	return r.Tests != nil || r.Math != nil && r.Math.Grader == MathVerify
}

// RunsPrograms reports whether a reward runs programs of a policy.
func (r *Reward) RunsPrograms() bool {
	for _, rule := range r.Rules() {
		if rule.RunsPrograms() {
			return true
		}
	}
	return false
}
