// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// CheckAtBroker asks the broker of a TinkerEndpoint which features the server supports, and waits until the broker has
// checked. A server has no such request.
func (c *Client) CheckAtBroker(ctx context.Context, r tinker.CheckRequest) (tinker.CheckResponse, error) {
	for {
		// The broker answers after some seconds, whether the check has ended or not.
		found, err := post(ctx, c.caller, "check", tinker.PathCheck, r, func(tinker.CheckResponse) error { return nil })
		if err != nil || !found.Pending {
			return found, err
		}
	}
}
