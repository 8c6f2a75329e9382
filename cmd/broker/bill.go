// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	// billDelay is how long after the end of an hour its bill is asked for: results of the hour may be delivered until
	// then.
	billDelay = 15 * time.Minute
	// billPatience is how long the answer may take.
	billPatience = time.Minute
)

// followBill compares the bill of each hour with the broker's count, until ctx ends or the endpoint has no bills.
func (t *term) followBill(ctx context.Context) {
	for hour := time.Now().Truncate(time.Hour); ; hour = hour.Add(time.Hour) {
		if wait.Sleep(ctx, time.Until(hour.Add(time.Hour+billDelay))) != nil {
			return
		}
		if !t.compareBill(ctx, hour) {
			return
		}
	}
}

// compareBill shows the bill of an hour in the metrics, and reports whether the endpoint may have bills of other
// hours.
func (t *term) compareBill(ctx context.Context, hour time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, billPatience)
	defer cancel()
	bill, err := t.broker.Bill(ctx, hour)
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound, tinker.CategoryUnsupported:
		t.process.log.Info("the endpoint gives no bills", "err", err)
		return false
	}
	if err != nil {
		t.process.log.Warn("the bill of an hour is not known", "err", err)
	}
	if bill != nil {
		t.process.metrics.compare(*bill)
	}
	return true
}
