// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// family returns sequences, some of which share their front with the sequence before, as the members of a group do.
func family(rng *rand.Rand) [][]int32 {
	prompt := randomSequence(rng, 21)
	other := randomSequence(rng, 5)
	return [][]int32{
		append(append([]int32{}, prompt...), randomSequence(rng, 9)...),
		append(append([]int32{}, prompt...), randomSequence(rng, 4)...),
		prompt,
		other,
		randomSequence(rng, 70),
		randomSequence(rng, 1),
	}
}

// blocks returns sequences of several blocks of attention; the second shares more than one of them.
func blocks(rng *rand.Rand) [][]int32 {
	front := randomSequence(rng, blockRows+9)
	return [][]int32{
		append(append([]int32{}, front...), randomSequence(rng, blockRows+3)...),
		append(append([]int32{}, front...), randomSequence(rng, 7)...),
	}
}

func TestPassForwardMatchesReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	flat, sequences := randomFlat(rng), append(family(rng), blocks(rng)...)
	var pass Pass
	pass.Forward(NewParams(flat), sequences)
	for i, s := range sequences {
		want := referenceLogits(toFloat64(flat), s)
		for position, row := range pass.Rows(i) {
			for j, v := range pass.Logits(row) {
				if math.Abs(float64(v)-want[position][j]) > 2e-4 {
					t.Fatalf("sequence %d, position %d, logit %d: %v, want %v", i, position, j, v, want[position][j])
				}
			}
		}
	}
	if shared := 2 * 21; pass.RowCount() != 30+25+21+5+70+1-shared+2*blockRows+19 {
		t.Errorf("%d rows: common fronts are not shared", pass.RowCount())
	}
}

// TestPassBackwardFiniteDifferences checks the gradient of a random linear function of all logits, along its own
// direction within each matrix.
func TestPassBackwardFiniteDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	flat, many := randomFlat(rng), blocks(rng)
	sequences := append(family(rng)[:gradientSequences], many[:gradientSequences/2]...)
	slopes := make([][][]float64, len(sequences))
	var pass Pass
	params := NewParams(flat)
	params.PrepareBackward()
	pass.Forward(params, sequences)
	for row := range pass.RowCount() {
		clear(pass.Logits(int32(row)))
	}
	for i, s := range sequences {
		for position := range s {
			slopes[i] = append(slopes[i], make([]float64, Vocab))
			to := pass.Logits(pass.Rows(i)[position])
			for j := range to {
				slope := float32(rng.NormFloat64())
				slopes[i][position][j] = float64(slope)
				to[j] += slope
			}
		}
	}
	grad := make([]float32, Size)
	pass.Backward(params, grad, Wanted{Embed: true, Attention: true, MLP: true, Unembed: true})

	value := func(flat []float64) float64 {
		sum := 0.0
		for i, s := range sequences {
			for position, row := range referenceLogits(flat, s) {
				for j, v := range row {
					sum += v * slopes[i][position][j]
				}
			}
		}
		return sum
	}
	matrices := append(AttentionBlocks(), MLPBlocks()...)
	for _, b := range append(matrices, UnembedBlock(), EmbedBlock()) {
		t.Run(fmt.Sprintf("%dx%d at %d", b.Rows, b.Cols, b.Offset), func(t *testing.T) {
			checkDirection(t, flat, grad, b, value)
		})
	}
}

// checkDirection compares the gradient along its own direction within a block with a difference quotient.
func checkDirection(t *testing.T, flat, grad []float32, b Block, value func([]float64) float64) {
	t.Helper()
	const step = 1e-5
	plus, minus, length := toFloat64(flat), toFloat64(flat), 0.0
	for _, v := range b.elements(grad) {
		length += float64(v) * float64(v)
	}
	length = math.Sqrt(length)
	for i := range b.Rows {
		for j := range b.Cols {
			at := b.Offset + i*b.Stride + j
			plus[at] += step * float64(grad[at]) / length
			minus[at] -= step * float64(grad[at]) / length
		}
	}
	want := (value(plus) - value(minus)) / (2 * step)
	if math.Abs(want-length) > 1e-3*math.Abs(want) {
		t.Errorf("slope along the gradient is %v, its length %v", want, length)
	}
}

func (b Block) elements(flat []float32) []float32 {
	var out []float32
	for i := range b.Rows {
		out = append(out, b.of(flat).row(i)...)
	}
	return out
}

func TestPassRowsDoNotDependOnBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	params, sequences := NewParams(randomFlat(rng)), family(rng)
	var together, alone Pass
	together.Forward(params, sequences)
	for i, s := range sequences {
		alone.Forward(params, [][]int32{s})
		for position := range s {
			got, want := together.Logits(together.Rows(i)[position]), alone.Logits(alone.Rows(0)[position])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("sequence %d, position %d (-alone +together):\n%s", i, position, diff)
			}
		}
	}
}

func TestPassBackwardWanted(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	params := NewParams(randomFlat(rng))
	params.PrepareBackward()
	all := gradientOf(params, Wanted{Embed: true, Attention: true, MLP: true, Unembed: true})
	for name, test := range map[string]struct {
		wanted Wanted
		blocks []Block
	}{
		"attention alone": {Wanted{Attention: true}, AttentionBlocks()},
		"MLP alone":       {Wanted{MLP: true}, MLPBlocks()},
		"unembed alone":   {Wanted{Unembed: true}, []Block{UnembedBlock()}},
	} {
		t.Run(name, func(t *testing.T) {
			got := gradientOf(params, test.wanted)
			want := make([]float32, Size)
			for _, b := range test.blocks {
				for i := range b.Rows {
					copy(b.of(want).row(i), b.of(all).row(i))
				}
			}
			if !cmp.Equal(want, got) {
				t.Errorf("gradients differ from the gradients of a full pass (-want +got):\n%.300s", cmp.Diff(want, got))
			}
		})
	}
}

// gradientOf returns the gradient of the sum of all logits, each times a weight that depends on its index.
func gradientOf(params *Params, wanted Wanted) []float32 {
	var pass Pass
	pass.Forward(params, family(rand.New(rand.NewPCG(5, 5))))
	for row := range pass.RowCount() {
		for j := range pass.Logits(int32(row)) {
			pass.Logits(int32(row))[j] = float32(j%7) - 3
		}
	}
	grad := make([]float32, Size)
	pass.Backward(params, grad, wanted)
	return grad
}
