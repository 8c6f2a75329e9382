// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// TestSamplesKeepTheServersLimits asks for five samples at once. Each submit, and each result, takes a second.
func TestSamplesKeepTheServersLimits(t *testing.T) {
	cases := map[string]struct {
		config string
		want   []int // seconds at which samples are submitted
	}{
		"without limits":             {`{}`, []int{0, 0, 0, 0, 0}},
		"bytes of one request":       {`{"sample_dispatch_bytes_semaphore_size":1}`, []int{0, 1, 2, 3, 4}},
		"two unfinished samples":     {`{"sample_max_concurrent_requests":2}`, []int{0, 0, 2, 2, 4}},
		"a limit of 0 counts as one": {`{"sample_max_concurrent_requests":0}`, []int{0, 2, 4, 6, 8}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{
					"client/config": {ok(tc.config)},
					"asample":       {{hold: time.Second, status: 200, body: `{"request_id":"a"}`}},
					"retrieve_future#a": {{hold: time.Second, status: 200,
						body: `{"sequences":[{"tokens":[1],"logprobs":[-1],"stop_reason":"stop"}]}`}},
				})
				var all sync.WaitGroup
				for i := range int64(5) {
					all.Go(func() {
						if _, err := w.Sample(ctx, tinker.SampleRequest{NumSamples: 1, Prompt: tinker.Text([]int32{1}),
							SamplingSession: "s", SeqID: &i, SamplingParams: tinker.DefaultSampling()}); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				var got []int
				for _, request := range w.requests("asample") {
					got = append(got, int(request.at.Seconds()))
				}
				slices.Sort(got)
				if diff := cmp.Diff(fmt.Sprint(tc.want), fmt.Sprint(got)); diff != "" {
					t.Errorf("seconds at which samples were submitted (-want +got):\n%s", diff)
				}
			})
		})
	}
}
