// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package settings records which settings decided the weights in earlier attempts of a run: they may be changed until a
// first step is committed.
package settings

import "slices"

// Former are the settings of earlier attempts, up to one.
type Former struct {
	// LastAttempt is the last attempt that had them.
	LastAttempt int32 `json:"lastAttempt"`
	// SpecDigest digests them, as in the run file of that attempt.
	SpecDigest string `json:"specDigest"`
	// ResumeFrom is the uid of the run that they continue; empty for none.
	ResumeFrom string `json:"resumeFrom,omitempty"`
	// Changed are the fields of the spec that differ from those of the current attempt, sorted; empty where that is unknown.
	Changed []string `json:"changed,omitempty"`
}

// History lists the settings of attempts before the current one, the earliest first.
type History []Former

// maxLength bounds a history: of attempts before that nothing matters, since none of them has committed a step.
const maxLength = 32

// Of returns the settings of an earlier attempt, if the history has them.
func (h History) Of(attempt int32) (Former, bool) {
	i := slices.IndexFunc(h, func(f Former) bool { return attempt <= f.LastAttempt })
	if i < 0 {
		return Former{}, false
	}
	return h[i], true
}

// Equal reports whether a run that had these settings continues with those of another run file.
func (f Former) Equal(specDigest, resumeFrom string) bool {
	return f.SpecDigest == specDigest && f.ResumeFrom == resumeFrom
}

// Append returns the history with the settings of the attempt that follows it.
func (h History) Append(former Former) History {
	next := slices.Clone(h)
	if n := len(next); n > 0 && next[n-1].Equal(former.SpecDigest, former.ResumeFrom) {
		next = next[:n-1]
	}
	next = append(next, former)
	return next[max(0, len(next)-maxLength):]
}
