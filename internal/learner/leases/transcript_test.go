// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func TestFirstSlotsOfABatchHaveTranscripts(t *testing.T) {
	f, _ := open(t, 0)
	tr := train(t, f, 0)
	tr.config.Transcripts = 1
	tr.Reset(rl.Position{Step: 1, Cursor: 3}, []Version{{Step: 1, Lineage: lineage, Sampler: "s1"}})
	asked := map[int64]bool{}
	for _, lease := range f.grant("w0", 64) {
		asked[lease.Key.Slot] = lease.Transcript
	}
	expect(t, "the slots with a transcript", map[int64]bool{3: true, 4: false}, asked)
}
