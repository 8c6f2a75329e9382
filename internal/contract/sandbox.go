// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

// RunsPrograms reports whether a definition runs programs of the policy.
func (d Definition) RunsPrograms() bool {
	return d.Reward.RunsPrograms() || d.Interaction.RunsPrograms()
}

// SandboxID names the runner of the policy's programs in a pod; it is empty for a definition without such programs.
// Equal containers have equal names.
func (d Definition) SandboxID() string {
	if !d.RunsPrograms() {
		return ""
	}
	return nameOf("sandbox", d.Execution)
}
