// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// drawnModel is a model whose logits after each prefix are normal random numbers.
type drawnModel struct {
	random        *rand.Rand
	tokens        int
	spread, noise float64
	logits        map[string][]float64
}

// draw draws samples after each prompt at a temperature, which is near 0 for greedy sampling. Each token has its own
// noise.
func (m drawnModel) draw(temperature float64) [][]string {
	out := make([][]string, numPrompts)
	for i := range out {
		prompt := string(rune('A' + i))
		logits := m.after(prompt)
		for range numSamples {
			out[i] = append(out[i], prompt+string(rune('0'+m.choose(logits, temperature))))
		}
	}
	return out
}

// after returns the logits after a prefix.
func (m drawnModel) after(prefix string) []float64 {
	if m.logits[prefix] == nil {
		logits := make([]float64, m.tokens)
		for i := range logits {
			logits[i] = m.random.NormFloat64() * m.spread
		}
		m.logits[prefix] = logits
	}
	return m.logits[prefix]
}

// normal and gumbel are quantiles of their distributions: drawing a quantile is much faster than computing one.
var normal, gumbel = quantiles(func(u float64) float64 { return math.Sqrt2 * math.Erfinv(2*u-1) }),
	quantiles(func(u float64) float64 { return -math.Log(-math.Log(u)) })

func quantiles(of func(u float64) float64) []float64 {
	all := make([]float64, 1<<12)
	for i := range all {
		all[i] = of((float64(i) + 0.5) / float64(len(all)))
	}
	return all
}

// choose draws a token: the one with the largest noisy logit after Gumbel noise is added.
func (m drawnModel) choose(logits []float64, temperature float64) int {
	best, at := math.Inf(-1), 0
	for i, l := range logits {
		drawn := m.random.Uint32()
		if l = (l+m.noise*normal[drawn&0xfff])/temperature + gumbel[drawn>>20]; l > best {
			best, at = l, i
		}
	}
	return at
}

// repeat returns the samples of a request that is repeated with its seed: the noise changes some of them.
func (m drawnModel) repeat(drawn [][]string) [][]string {
	again := m.draw(1)
	for i := range drawn {
		for j, sample := range drawn[i] {
			if m.random.Float64() >= m.noise {
				again[i][j] = sample
			}
		}
	}
	return again
}

// TestNoisySampling checks decisions on the samples of 1,000 models with noisy arithmetic, or 50 under the race
// detector: whether a server honours seeds and settings that narrow the choice of tokens, or ignores them. It uses
// several streams of random numbers, none of which served to choose the margins of the decisions.
func TestNoisySampling(t *testing.T) {
	for _, noise := range []float64{0, 0.05, 0.2} {
		for _, spread := range []float64{1, 3} {
			for stream := range uint64(4) {
				t.Run(fmt.Sprintf("noise %g, spread of logits %g, stream %d", noise, spread, stream), func(t *testing.T) {
					t.Parallel()
					counts := decisionsOf(drawnModel{random: rand.New(rand.NewPCG(1, stream)), tokens: 50, spread: spread,
						noise: noise})
					t.Log(counts)
					for _, setting := range []string{"honoured setting", "honoured seed", "kept place"} {
						if n := counts[setting+" ignored"]; n > 0 || counts[setting+" supported"] < simulatedDecisions*9/10 {
							t.Errorf("the %s: %v", setting, counts)
						}
					}
					for _, setting := range []string{"ignored setting", "ignored seed", "fixed seed", "lost place"} {
						if counts[setting+" ignored"] < simulatedDecisions-1 {
							t.Errorf("the %s: %v", setting, counts)
						}
					}
				})
			}
		}
	}
}

// decisionsOf decides on the samples of many models like m, and counts the decisions.
func decisionsOf(m drawnModel) map[string]int {
	counts := map[string]int{}
	record := func(setting string, support Support, _ string) { counts[setting+" "+string(support)]++ }
	for range simulatedDecisions {
		m.logits = map[string][]float64{}
		wide, other := m.draw(1), m.draw(1)
		again := m.repeat(wide)
		support, note := narrowing(wide, m.draw(0.01))
		record("honoured setting", support, note)
		support, note = narrowing(wide, other)
		record("ignored setting", support, note)
		support, note = seeding(wide, again, other)
		record("honoured seed", support, note)
		fresh := m.draw(1)
		support, note = seeding(wide, fresh, other)
		record("ignored seed", support, note)
		support, note = seeding(wide, again, m.repeat(wide))
		record("fixed seed", support, note)
		support, note = placing(wide, again, other)
		record("kept place", support, note)
		support, note = placing(wide, fresh, other)
		record("lost place", support, note)
	}
	return counts
}
