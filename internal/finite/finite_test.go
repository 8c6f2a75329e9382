// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package finite

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnly(t *testing.T) {
	values := map[string]float64{"a": -1, "zero": 0, "most": math.MaxFloat64, "nan": math.NaN(), "inf": math.Inf(1),
		"-inf": math.Inf(-1)}
	if diff := cmp.Diff(map[string]float64{"a": -1, "zero": 0, "most": math.MaxFloat64}, Only(values)); diff != "" {
		t.Errorf("Only (-want +got):\n%s", diff)
	}
}
