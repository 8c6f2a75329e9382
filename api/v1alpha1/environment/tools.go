// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

// SandboxTool is a tool with which the policy runs programs.
// +kubebuilder:validation:XValidation:rule="has(self.python) != has(self.shell)",message="give exactly one of python and shell"
type SandboxTool struct {
	// name is the name of the tool for the policy.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_-]*$')",message="must be of letters, digits, _ and -, and begin with a letter or _"
	// +required
	Name string `json:"name"`
	// python runs code in Python, in a session of the episode that keeps its variables.
	// +optional
	Python *PythonTool `json:"python,omitempty"`
	// shell runs commands of sh, in the directory of the episode.
	// +optional
	Shell *ShellTool `json:"shell,omitempty"`
}

// PythonTool is a session of Python.
type PythonTool struct{}

// ShellTool is a shell.
type ShellTool struct{}

// RunsPrograms reports whether an interaction runs programs of the policy.
func (i *Interaction) RunsPrograms() bool {
	return i != nil && i.ToolUse != nil && len(i.ToolUse.Tools) > 0
}
