// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import "slices"

// FormerSettings are the settings that earlier attempts had, up to a last one.
type FormerSettings struct {
	// LastAttempt is the last attempt that had them.
	LastAttempt int32 `json:"lastAttempt"`
	// SpecDigest is their digest, as in the run file of that attempt.
	SpecDigest string `json:"specDigest"`
	// ResumeFrom is the uid of the run that these attempts continued; empty if there is none.
	ResumeFrom string `json:"resumeFrom,omitempty"`
	// Changed are the fields that differ from the spec of the current attempt, sorted; empty if unknown.
	Changed []string `json:"changed,omitempty"`
}

// SettingsHistory lists the settings of attempts before the current one, the earliest first.
type SettingsHistory []FormerSettings

// maxLength bounds the length of a history. Older settings do not matter, since none of their attempts has committed
// a step.
const maxLength = 32

// Of returns the settings of an earlier attempt, if the history has them.
func (h SettingsHistory) Of(attempt int32) (FormerSettings, bool) {
	i := slices.IndexFunc(h, func(f FormerSettings) bool { return attempt <= f.LastAttempt })
	if i < 0 {
		return FormerSettings{}, false
	}
	return h[i], true
}

// Equal reports whether another run file has these settings.
func (f FormerSettings) Equal(specDigest, resumeFrom string) bool {
	return f.SpecDigest == specDigest && f.ResumeFrom == resumeFrom
}

// Append returns the history with the settings of a later attempt. If they equal the last settings of the history,
// they replace them.
func (h SettingsHistory) Append(former FormerSettings) SettingsHistory {
	next := slices.Clone(h)
	if n := len(next); n > 0 && next[n-1].Equal(former.SpecDigest, former.ResumeFrom) {
		next = next[:n-1]
	}
	next = append(next, former)
	return next[max(0, len(next)-maxLength):]
}
