// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHistory(t *testing.T) {
	var h SettingsHistory
	for _, former := range []FormerSettings{{LastAttempt: 2, SpecDigest: "a"}, {LastAttempt: 3, SpecDigest: "b"},
		{LastAttempt: 5, SpecDigest: "b"}, {LastAttempt: 6, SpecDigest: "a"}} {
		h = h.Append(former)
	}
	want := SettingsHistory{{LastAttempt: 2, SpecDigest: "a"}, {LastAttempt: 5, SpecDigest: "b"},
		{LastAttempt: 6, SpecDigest: "a"}}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("Append (-want +got):\n%s", diff)
	}
	for attempt, digest := range map[int32]string{1: "a", 2: "a", 3: "b", 5: "b", 6: "a", 7: ""} {
		if got, known := h.Of(attempt); got.SpecDigest != digest || known != (digest != "") {
			t.Errorf("Of(%d) = %q, %v, want %q", attempt, got.SpecDigest, known, digest)
		}
	}
	for attempt := range int32(100) {
		h = h.Append(FormerSettings{LastAttempt: 10 + attempt, SpecDigest: string('c' + attempt%2)})
	}
	if len(h) != maxLength || h[maxLength-1].LastAttempt != 109 {
		t.Errorf("the history has %d entries, the last of attempt %d; want %d, and 109", len(h), h[len(h)-1].LastAttempt,
			maxLength)
	}
}
