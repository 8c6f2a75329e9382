// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import "time"

// BillingUsage is the answer of GET billing/usage/events.
type BillingUsage struct {
	Data []BillingEvent `json:"data"`
}

// BillingEvent is the usage of one kind in an hour.
type BillingEvent struct {
	BucketStart time.Time `json:"bucket_start"`
	// SessionID is the session that used it, if the server says so.
	SessionID *string     `json:"session_id"`
	EventInfo BillingInfo `json:"event_info"`
}

// The types of BillingInfo that have tokens.
const (
	BillingTraining = "training"
	BillingPrefill  = "sampling_prefill"
	BillingSample   = "sampling_sample"
)

// BillingInfo is a kind of use, and how much it was.
type BillingInfo struct {
	Type       string `json:"type"`
	TokenCount int64  `json:"token_count"`
}
