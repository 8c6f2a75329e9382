// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/stall"
)

// silentHub never answers.
type silentHub struct{}

// RoundTrip waits until the request is canceled.
func (silentHub) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestStalledDownloadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetcher := &Fetcher{Client: &http.Client{Transport: silentHub{}}}
		began := time.Now()
		_, _, err := fetcher.File(t.Context(), Source{Repository: "org/name"})
		if !errors.Is(err, stall.Err) {
			t.Errorf("File = %v, want %v", err, stall.Err)
		}
		if took := time.Since(began); took != stall.Limit {
			t.Errorf("it took %v, want %v", took, stall.Limit)
		}
	})
}
