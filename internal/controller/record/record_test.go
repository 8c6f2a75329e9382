// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

func TestNotesFitIntoAnEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	Events(recorder, &corev1.Pod{}, Warning("R", "A", strings.Repeat("é", 1000)))
	if note := strings.TrimPrefix(<-recorder.Events, "Warning R "); len(note) > maxNote || !strings.HasPrefix(note, "éé") {
		t.Errorf("a note has %d bytes, want at most %d", len(note), maxNote)
	}
}
