// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// chooser draws tokens from logits. It keeps buffers between uses.
type chooser struct {
	weights [Vocab]float32
	order   []int32
	// silent tokens are never drawn.
	silent []int32
}

// token draws a token with the random number u and returns it with its log-probability at
// temperature 1, which is NaN if the logits give no probabilities. It changes the logits.
func (c *chooser) token(logits []float32, r SampleRequest, u float64) (int32, float64) {
	norm := transformer.LogSumExp(logits)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return 0, math.NaN()
	}
	for _, token := range c.silent {
		logits[token] = float32(math.Inf(-1))
	}
	token := c.draw(logits, r, u)
	return token, float64(logits[token]) - norm
}

// score returns the log-probability that chooser.token would return for a token.
func score(logits []float32, token int32) float64 {
	norm := transformer.LogSumExp(logits)
	if math.IsInf(norm, 0) {
		return math.NaN()
	}
	return float64(logits[token]) - norm
}

func (c *chooser) draw(logits []float32, r SampleRequest, u float64) int32 {
	top := slices.Max(logits)
	if r.Temperature == 0 {
		return int32(slices.Index(logits, top))
	}
	for i, v := range logits {
		c.weights[i] = transformer.Exp32(float32(float64(v-top) / r.Temperature))
	}
	if r.TopP == 1 && (r.TopK <= 0 || r.TopK >= Vocab) {
		return pick(c.weights[:], u)
	}
	c.keep(logits, r)
	return pick(c.weights[:], u)
}

// keep clears the weights of tokens that top-k, and then top-p, leave out.
func (c *chooser) keep(logits []float32, r SampleRequest) {
	c.order = likeliest(logits, c.order)
	kept := Vocab
	if r.TopK > 0 {
		kept = min(r.TopK, kept)
	}
	total := 0.0
	for _, id := range c.order[:kept] {
		total += float64(c.weights[id])
	}
	sum := 0.0
	for i, id := range c.order[:kept] {
		sum += float64(c.weights[id])
		if sum >= r.TopP*total {
			kept = i + 1
			break
		}
	}
	for _, id := range c.order[kept:] {
		c.weights[id] = 0
	}
}

// pick returns the index at which the running sum of the weights passes u times their sum.
func pick(weights []float32, u float64) int32 {
	total := 0.0
	for _, v := range weights {
		total += float64(v)
	}
	sum, last := 0.0, 0
	for i, v := range weights {
		if v == 0 {
			continue
		}
		sum, last = sum+float64(v), i
		if sum > u*total {
			break
		}
	}
	return int32(last)
}

// likeliest returns all tokens by falling logit. Of tokens with equal logits, the lower id comes first. It reuses
// order.
func likeliest(logits []float32, order []int32) []int32 {
	order = order[:0]
	for id := range int32(len(logits)) {
		order = append(order, id)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(logits[b], logits[a]), cmp.Compare(a, b))
	})
	return order
}
