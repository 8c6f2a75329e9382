// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// chunksOf returns the datums of each request for a pass, by the token that textData gives each. The server rejects the
// size of the requests with the given numbers.
func chunksOf(t *testing.T, datums int, tooLarge map[int]bool, post func(ctx context.Context, m *Model, data []tinker.Datum) error) (chunks [][]int32) {
	t.Helper()
	bubble(t, func(t *testing.T, ctx context.Context) {
		replies := map[string][]scriptedReply{"client/config": {ok(`{"fwdbwd_max_chunk_len":3}`)}}
		for i := range 2 * datums {
			reply := ok(fmt.Sprintf(`{"request_id":"%d"}`, i))
			if tooLarge[i] {
				reply = status(413)
			}
			replies["forward_backward"] = append(replies["forward_backward"], reply)
			replies[fmt.Sprintf("retrieve_future#%d", i)] = []scriptedReply{ok(`{"error":"not asked for","category":"server"}`)}
		}
		w := newTestClient(t, replies)
		if err := post(ctx, w.createModel(t, ctx), textData(datums)); err != nil {
			t.Fatal(err)
		}
		for i, body := range w.bodies("forward_backward") {
			request, err := tinker.DecodeForwardBackward([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if tooLarge[i] {
				continue
			}
			var chunk []int32
			for _, d := range request.Data {
				tokens, _ := d.ModelInput.TextTokens()
				chunk = append(chunk, tokens...)
			}
			chunks = append(chunks, chunk)
		}
	})
	return chunks
}

// TestPassHasTheChunksOfForwardBackward posts data in two parts, at any place, and compares the requests with those for all data
// together.
func TestPassHasTheChunksOfForwardBackward(t *testing.T) {
	const datums = 8
	for name, tooLarge := range map[string]map[int]bool{"all sizes are accepted": nil, "a full chunk is too large": {0: true}} {
		want := chunksOf(t, datums, tooLarge, func(ctx context.Context, m *Model, data []tinker.Datum) error {
			_, err := m.ForwardBackward(ctx, data, tinker.Loss{})
			return err
		})
		for first := 1; first <= datums; first++ {
			t.Run(fmt.Sprintf("%s, %d datums first", name, first), func(t *testing.T) {
				posted := 0
				got := chunksOf(t, datums, tooLarge, func(ctx context.Context, m *Model, data []tinker.Datum) error {
					p := m.NewPass(ctx, tinker.Loss{})
					rest, err := p.PostFull(ctx, data[:first])
					if err != nil {
						return err
					}
					posted = first - len(rest)
					_, err = p.PostRest(ctx, append(rest, data[first:]...))
					return err
				})
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("requests (-together +in parts):\n%s", diff)
				}
				if full := first / 3 * 3; posted != full {
					t.Errorf("%d datums were submitted at once, want the %d of full chunks", posted, full)
				}
			})
		}
	}
}
