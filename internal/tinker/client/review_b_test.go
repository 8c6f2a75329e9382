// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestReviewEncodeCost(t *testing.T) {
	t.Skip("finding not repaired yet: tinker L6")
	const datums, tokens = 256, 8192
	var data []tinker.Datum
	for range datums {
		in, tg, f := make([]int32, tokens), make([]int64, tokens), make([]float32, tokens)
		for i := range in {
			in[i], tg[i], f[i] = int32(i), int64(i), -0.5
		}
		data = append(data, tinker.Datum{ModelInput: tinker.Text(in), LossFnInputs: map[string]tinker.Tensor{tinker.InputTargetTokens: tinker.Ints(tg), tinker.InputLogprobs: tinker.Floats(f), tinker.InputAdvantages: tinker.Floats(f)}})
	}
	began := time.Now()
	if err := checkData(data); err != nil {
		t.Fatal(err)
	}
	check := time.Since(began)
	began = time.Now()
	chunks := splitData(data, tinker.DefaultServerConfig())
	split := time.Since(began)
	began = time.Now()
	bytes := 0
	for _, c := range chunks {
		b, err := tinker.EncodeForwardBackward(tinker.ForwardBackwardRequest{ModelID: "m", SeqID: 1, Loss: tinker.Loss{Name: tinker.LossPPO}, Data: c})
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(b)
	}
	t.Logf("%d tokens: check %v, split %v, encode %v; %d chunks posted one after the other, %d MB", datums*tokens, check, split, time.Since(began), len(chunks), bytes>>20)
}
