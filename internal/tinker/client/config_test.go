// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// TestUnusedConfigurationIsFreed checks that nothing keeps the configuration of a client that is no longer used.
func TestUnusedConfigurationIsFreed(t *testing.T) {
	config := &serverConfig{}
	config.expireAfter(configAge)
	left := weak.Make(config)
	for range 100 {
		if runtime.GC(); left.Value() == nil {
			return
		}
	}
	t.Error("the configuration is kept until it is stale")
}

// TestConfigIsFetchedAgain checks that a client learns of changed limits, and keeps its limits while the server does
// not send others.
func TestConfigIsFetchedAgain(t *testing.T) {
	const (
		first  = `{"fwdbwd_max_chunk_len":7,"inflight_response_bytes_semaphore_size":100}`
		second = `{"fwdbwd_max_chunk_len":3,"inflight_response_bytes_semaphore_size":60}`
		locked = `{"fwdbwd_max_chunk_len":3,"pjwt_auth_enabled":true}`
	)
	issued := ok(`{"jwt":"` + jwt(`{"exp":2000000000}`, "s") + `"}`)
	type use struct {
		at     time.Duration
		length int
	}
	cases := map[string]struct {
		configs []scriptedReply
		tokens  []scriptedReply
		uses    []use
		// fetched are the times at which the configuration is fetched; left bytes may be downloaded at the end.
		fetched []time.Duration
		left    int64
	}{
		"not within an hour": {
			configs: []scriptedReply{ok(first), ok(second)}, uses: []use{{0, 7}, {59 * time.Minute, 7}}, fetched: ms(0),
			left: 100,
		},
		"after an hour": {
			configs: []scriptedReply{ok(first), ok(second)}, uses: []use{{0, 7}, {61 * time.Minute, 3}, {62 * time.Minute, 3}},
			fetched: []time.Duration{0, 61 * time.Minute}, left: 60,
		},
		"again a minute after a failure": {
			configs: []scriptedReply{ok(first), status(503), status(404), ok(second)},
			uses: []use{{0, 7}, {61 * time.Minute, 7}, {61*time.Minute + time.Second, 7}, {63 * time.Minute, 7},
				{65 * time.Minute, 3}},
			fetched: []time.Duration{0, 61 * time.Minute, 63 * time.Minute, 65 * time.Minute}, left: 60,
		},
		"without waiting long for it": {
			configs: []scriptedReply{ok(first), {hold: time.Hour}, ok(second)},
			uses:    []use{{0, 7}, {61 * time.Minute, 7}, {61*time.Minute + 11*time.Second, 7}, {63 * time.Minute, 3}},
			fetched: []time.Duration{0, 61 * time.Minute, 63 * time.Minute}, left: 60,
		},
		"with a JWT that is required from then on": {
			configs: []scriptedReply{ok(first), ok(locked)}, tokens: []scriptedReply{issued},
			uses: []use{{0, 7}, {61 * time.Minute, 3}}, fetched: []time.Duration{0, 61 * time.Minute},
			left: tinker.DefaultServerConfig().InflightResponseBytes,
		},
		"but not used without the JWT that it requires": {
			configs: []scriptedReply{ok(first), ok(locked)}, tokens: []scriptedReply{status(503)},
			uses: []use{{0, 7}, {61 * time.Minute, 7}}, fetched: []time.Duration{0, 61 * time.Minute}, left: 100,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				began := time.Now()
				w := newTestClient(t, map[string][]scriptedReply{"client/config": tc.configs, "auth/token": tc.tokens})
				for _, use := range tc.uses {
					time.Sleep(use.at - time.Since(began))
					config, err := w.connect(ctx)
					if err != nil || config.MaxChunkLen != use.length {
						t.Errorf("after %v: %d datums in a chunk, %v, want %d", use.at, config.MaxChunkLen, err, use.length)
					}
				}
				if took := time.Since(began) - tc.uses[len(tc.uses)-1].at; took > 10*time.Second {
					t.Errorf("the last use waited %v", took)
				}
				if diff := cmp.Diff(tc.fetched, w.times("client/config")); diff != "" {
					t.Errorf("times of the requests (-want +got):\n%s", diff)
				}
				expectLeft(t, &w.downloads, tc.left)
				if token := w.credentials.token.Load(); (token != nil) != (len(tc.tokens) > 0 && tc.tokens[0].status == 200) {
					t.Errorf("the JWT is %v", token)
				}
			})
		})
	}
}

// expectLeft reserves all bytes that may still be downloaded, and checks that the budget admits no byte more.
func expectLeft(t *testing.T, budget *byteBudget, left int64) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i, bytes := range []int64{left - 1, 1, 1} {
		if err := budget.Reserve(ended, bytes); (err == nil) != (i < 2) {
			t.Errorf("reservation %d of %d bytes, of which %d may be downloaded: %v", i+1, bytes, left, err)
		}
	}
}
