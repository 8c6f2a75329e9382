// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Bill is the server's bill for an hour, beside the broker's count. Train includes the tokens of forward, because
// bills do not distinguish the two.
type Bill struct {
	Billed, Counted endpoint.Tokens
}

// Bill asks the server for the bill of an hour, and returns nil if the broker did not count from the beginning of the
// hour. Rows of sessions that no run made are left out: the account may have other users. Rows without a session are
// included.
func (b *Broker) Bill(ctx context.Context, hour time.Time) (*Bill, error) {
	if b.config.Meter == nil {
		return nil, nil
	}
	counted, whole := b.config.Meter.Hour(hour)
	if !whole {
		return nil, nil
	}
	usage, err := b.inForce.Load().client.BillingUsage(ctx, hour, hour.Add(time.Hour))
	if err != nil {
		return nil, fmt.Errorf("asking for the bill of %s: %w", hour.UTC().Format(time.RFC3339), err)
	}
	bill := &Bill{Counted: endpoint.Tokens{Prefill: counted.Prefill, Sample: counted.Sample,
		Train: counted.Train + counted.Forward}}
	for _, event := range usage.Data {
		if event.SessionID != nil {
			if _, ours := b.owners.get(session, *event.SessionID); !ours {
				continue
			}
		}
		switch event.EventInfo.Type {
		case tinker.BillingTraining:
			bill.Billed.Train += event.EventInfo.TokenCount
		case tinker.BillingPrefill:
			bill.Billed.Prefill += event.EventInfo.TokenCount
		case tinker.BillingSample:
			bill.Billed.Sample += event.EventInfo.TokenCount
		}
	}
	return bill, nil
}
