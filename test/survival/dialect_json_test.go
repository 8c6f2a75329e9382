// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"slices"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/dialect"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

// TestSameWeightsInJSON trains at a server that reads and answers JSON only: the first attempt finds that out and dies,
// and the weights equal the weights of a run in protobuf.
func TestSameWeightsInJSON(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"step.submitted", "save.submitted", "covered.sent"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := withoutCapabilities(newFixtureOn(t, tinkersim.Options{SessionTimeout: time.Minute, Dialect: dialect.NameJSON},
				nil))
			w.startWorker("w0", behavior{})
			first := w.startLearner(1, w.dieAt(point, 2))
			<-first.done
			w.passCapabilities(first.verdict.Progress.Capabilities)
			if !slices.Contains(w.file.Capabilities.Unsupported, "protobuf") {
				t.Fatalf("the first attempt found %+v, want that protobuf is not supported", w.file.Capabilities)
			}
			w.checkSame(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
		})
	}
}

// TestEncodingIsFoundOnceAndKept checks that the encoding is found, even if the server fails meanwhile, and that the
// finding does not change.
func TestEncodingIsFoundOnceAndKept(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		dialect, want string
		rules         []fault.Rule
	}{
		"protobuf": {dialect.Protobuf, "supported", nil},
		"JSON":     {dialect.NameJSON, "unsupported", nil},
		"JSON, behind a server that fails": {dialect.NameJSON, "unsupported",
			[]fault.Rule{{Op: "forward", Do: fault.Refuse, Status: 503, Count: 2}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withoutCapabilities(newFixtureOn(t, tinkersim.Options{SessionTimeout: time.Minute, Dialect: tc.dialect}, nil))
			w.addFaults(tc.rules...)
			w.startWorker("w0", behavior{})
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
			w.checkSame(verdict)
			c := verdict.Progress.Capabilities
			if got := slices.Contains(c.Supported, "protobuf"); got != (tc.want == "supported") {
				t.Errorf("protobuf supported: %v, want %s", got, tc.want)
			}
			if got := slices.Contains(c.Unsupported, "protobuf"); got != (tc.want == "unsupported") {
				t.Errorf("protobuf unsupported: %v, want %s", got, tc.want)
			}
		})
	}
}
