// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecoderMatchesReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	flat, sequences := randomFlat(rng), family(rng)
	for i, got := range decode(NewParams(flat), sequences, 3) {
		want := referenceLogits(toFloat64(flat), sequences[i])
		for step, logits := range got {
			for j, v := range logits {
				if math.Abs(float64(v)-want[len(want)-len(got)+step][j]) > 2e-4 {
					t.Fatalf("sequence %d, step %d, logit %d: %v", i, step, j, v)
				}
			}
		}
	}
}

func TestDecoderRowsDoNotDependOnBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	params := NewParams(randomFlat(rng))
	var sequences [][]int32
	for range 12 { // more rows than a pass over prompts takes at once
		sequences = append(sequences, family(rng)...)
	}
	for i, got := range decode(params, sequences, 5) {
		want := decode(params, sequences[i:i+1], 5)[0]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("sequence %d (-alone +together):\n%s", i, diff)
		}
	}
}

func TestDecoderDoesNotDependOnEarlierUse(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	params, sequences := NewParams(randomFlat(rng)), family(rng)
	var d Decoder
	d.Start(params, family(rng), []int{40, 40, 40, 40, 90, 40})
	d.Step(params, []int{4, 1}, []int32{3, 4})
	d.Start(params, sequences, []int{30, 25, 21, 5, 70, 1})
	got := slices.Clone(d.Logits(4))
	want := decode(params, sequences, 0)[4][0]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-new +used):\n%s", diff)
	}
}

// decode decodes each sequence: all but the last tokens as a prompt, and the last tokens step by step. It returns the
// logits after the prompt and after each step. Shorter sequences have fewer steps.
func decode(params *Params, sequences [][]int32, steps int) [][][]float32 {
	var d Decoder
	prompts, room, out := make([][]int32, len(sequences)), make([]int, len(sequences)), make([][][]float32, len(sequences))
	for i, s := range sequences {
		prompts[i], room[i] = s[:max(len(s)-steps, 1)], len(s)
	}
	d.Start(params, prompts, room)
	for i := range sequences {
		out[i] = append(out[i], slices.Clone(d.Logits(i)))
	}
	for step := range steps {
		var slots []int
		var tokens []int32
		for i, s := range sequences {
			if at := len(prompts[i]) + step; at < len(s) {
				slots, tokens = append(slots, i), append(tokens, s[at])
			}
		}
		d.Step(params, slots, tokens)
		for row, i := range slots {
			out[i] = append(out[i], slices.Clone(d.Logits(row)))
		}
	}
	return out
}

func TestChunk(t *testing.T) {
	sequence := func(front byte, own byte, n int) []int32 {
		out := slices.Repeat([]int32{int32(front)}, n)
		out[n-1] = int32(own)
		return out
	}
	short := [][]int32{sequence('a', 'x', 60), sequence('b', 'y', 60), sequence('c', 'z', 60)}
	long := [][]int32{sequence('a', 'x', 500), sequence('a', 'y', 500), sequence('a', 'z', 500), sequence('b', 'z', 500)}
	cases := map[string]struct {
		sequences    [][]int32
		first, limit int
		want         int
	}{
		"as many as fit": {short, 0, 120, 2},
		"all of them":    {short, 0, 1000, 3},
		"at least one":   {short, 1, 50, 2},
		"the limit is for what follows on a long one":  {long, 0, 100, 3},
		"what shares nothing with a long one is apart": {long, 2, 100, 3},
		"a long one at the end":                        {long, 3, 100, 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Chunk(tc.sequences, tc.first, tc.limit); got != tc.want {
				t.Errorf("Chunk from %d ends at %d, want %d", tc.first, got, tc.want)
			}
		})
	}
}
