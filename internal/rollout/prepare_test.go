// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/tinker-operator/tinker-operator/internal/exchange"
)

func TestPermitWaitsForTheLearner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Data{}
		state := func() exchange.DataState {
			var renewal exchange.Renewal
			d.report(&renewal)
			return renewal.Data
		}
		d.permit(true)
		permitted := make(chan func())
		go func() {
			done, err := d.Permit(t.Context())
			if err != nil {
				t.Error(err)
			}
			permitted <- done
		}()
		synctest.Wait()
		if got := state(); got != exchange.DataWaiting {
			t.Fatalf("the state is %v, want waiting: a permit that was not asked for must not count", got)
		}
		d.permit(false)
		synctest.Wait()
		d.permit(true)
		done := <-permitted
		if got := state(); got != exchange.DataDownloading {
			t.Errorf("the state is %v, want downloading", got)
		}
		done()
		if got := state(); got != exchange.DataSettled {
			t.Errorf("the state is %v, want settled", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Permit(ctx); !errors.Is(err, context.Canceled) || state() != exchange.DataSettled {
			t.Errorf("Permit = %v, state %v, want the context's error and nothing that is waited for", err, state())
		}
	})
}
