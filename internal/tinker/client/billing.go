// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/url"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// BillingUsage returns the account's bill for the hours from the first up to the second time. The error of a server
// without bills has CategoryNotFound or CategoryUnsupported.
func (c *Client) BillingUsage(ctx context.Context, from, to time.Time) (tinker.BillingUsage, error) {
	query := url.Values{"starting_on": {from.UTC().Format(time.RFC3339)}, "ending_before": {to.UTC().Format(time.RFC3339)}}
	return fetch[tinker.BillingUsage](ctx, c.caller, get("billing_usage", "billing/usage/events", query))
}
