// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package algorithm

import "cmp"

// Clips reports whether the loss bounds the probability ratio, which training on samples of an older policy needs.
func (n LossName) Clips() bool { return n == LossPPO || n == LossCISPO || n == LossGSPO }

// role returns the entry of a role; nil if there is none.
func (a *Algorithm) role(name string) *Role {
	for i := range a.Roles {
		if string(a.Roles[i].Name) == name {
			return &a.Roles[i]
		}
	}
	return nil
}

// AdvantageOf returns the settings by which the rewards of a role become advantages. The role inherits the settings
// that its entry does not have.
func (a *Algorithm) AdvantageOf(role string) Advantage {
	r := a.role(role)
	if r == nil || r.Advantage == nil {
		return a.Advantage
	}
	advantage := Advantage{
		Baseline: cmp.Or(r.Advantage.Baseline, a.Advantage.Baseline),
		Scale:    cmp.Or(r.Advantage.Scale, a.Advantage.Scale),
		DDoF:     a.Advantage.DDoF,
	}
	if r.Advantage.DDoF != nil {
		advantage.DDoF = *r.Advantage.DDoF
	}
	return advantage
}

// LossOf returns the loss of a role's data.
func (a *Algorithm) LossOf(role string) Loss {
	if r := a.role(role); r != nil && r.Loss != nil {
		return *r.Loss
	}
	return a.Loss
}

// String names the reference for people.
func (r Reference) String() string {
	if r.Checkpoint != "" {
		return "checkpoint " + r.Checkpoint
	}
	return "base model " + r.Model
}
