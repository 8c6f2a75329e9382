// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// transcript returns what was recorded of the episode, and nil where nobody asked for that. The reason is why the episode
// is not usable.
func (e *episode) transcript(reason string) []byte {
	if !e.spec.Transcript {
		return nil
	}
	parts := make([]transcript.Part, 0, len(e.order))
	for _, c := range e.order {
		parts = append(parts, transcript.Part{Role: c.role, Key: c.key, StopReason: c.stop, Recorder: c.recorder})
	}
	return transcript.Encode(reason, parts, rl.MaxTranscript/max(1, e.spec.GroupSize))
}

// messageOf returns the text of an error, which may be nil.
func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
