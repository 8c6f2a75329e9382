// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rewardenvironment

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// probes are the known probes of one environment. If they are lost, a request may be made once more, and only the
// clocks of nodes say when a probe ended.
type probes struct {
	// started is the start of the newest probe.
	started time.Time
	// deleted are the probes that were deleted last. The cache may still have them for a while.
	deleted []types.UID
}
