// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

// Weights are merged weights rounded to bf16, to sample from. The rounding makes the sampler's
// log-probabilities differ slightly from the trainer's, as they do on the real service. Weights are
// immutable and safe for concurrent use.
type Weights struct {
	base   *BaseModel
	params *transformer.Params
}

// BaseWeights returns the base model's own sampler weights.
func BaseWeights(base *BaseModel) *Weights { return newWeights(base, base.params.Flat()) }

// Snapshot returns the current weights for sampling.
func (a *Adapter) Snapshot() *Weights { return newWeights(a.base, a.merged.Flat()) }

func newWeights(base *BaseModel, flat []float32) *Weights {
	rounded := make([]float32, len(flat))
	for i, v := range flat {
		rounded[i] = fromBFloat16(toBFloat16(v))
	}
	return &Weights{base: base, params: transformer.NewParams(rounded)}
}

// toBFloat16 rounds to bf16, to even in a tie. Package tinker has the same rounding for wire tensors; this package
// imports nothing of the API.
func toBFloat16(v float32) uint16 {
	bits := math.Float32bits(v)
	if v != v {
		return uint16(bits>>16) | 1<<6
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func fromBFloat16(v uint16) float32 { return math.Float32frombits(uint32(v) << 16) }

const weightsMagic = "tinkersim weights 1\n"

// Marshal returns the weights as canonical bytes with a checksum.
func (w *Weights) Marshal() []byte {
	out := header(weightsMagic, w.base)
	for _, v := range w.params.Flat() {
		out = binary.LittleEndian.AppendUint16(out, toBFloat16(v))
	}
	return seal(out)
}

// UnmarshalWeights reads the output of Marshal. The base must be the base model that the weights were made with.
func UnmarshalWeights(base *BaseModel, data []byte) (*Weights, error) {
	body, err := unseal(weightsMagic, base, data)
	if err != nil {
		return nil, err
	}
	if len(body) != 2*transformer.Size {
		return nil, errLength
	}
	flat := make([]float32, transformer.Size)
	for i := range flat {
		flat[i] = fromBFloat16(binary.LittleEndian.Uint16(body[2*i:]))
	}
	return &Weights{base: base, params: transformer.NewParams(flat)}, nil
}

// PromptLogprobs returns the log-probability of each token of the prompt given those before; entry
// 0 is NaN.
func (w *Weights) PromptLogprobs(ctx context.Context, prompt []int32) ([]float32, error) {
	out := make([]float32, len(prompt))
	err := w.visitPrompt(ctx, prompt, func(s spelling, in window, logits func(position int) []float32) {
		for i := range prompt[1:] {
			if windowOf(s.ends[i+1]-2) != in {
				continue
			}
			sum := 0.0
			for at := s.ends[i]; at < s.ends[i+1]; at++ {
				sum += score(logits(at-1), s.native[at])
			}
			out[i+1] = float32(sum)
		}
	})
	if err != nil {
		return nil, err
	}
	out[0] = float32(math.NaN())
	return out, nil
}

// TopKPromptLogprobs returns, for each position of the prompt, the k likeliest of the tokens that can be sampled, the
// likeliest first. Of equally likely tokens, the lower native token comes first. Entry 0 is empty.
func (w *Weights) TopKPromptLogprobs(ctx context.Context, prompt []int32,
	k int) (ids [][]int32, logprobs [][]float32, err error) {
	if most := Vocab - len(w.base.silent); k < 1 || k > most {
		return nil, nil, userErrorf("top-k of %d is not between 1 and %d", k, most)
	}
	ids, logprobs = make([][]int32, len(prompt)), make([][]float32, len(prompt))
	err = w.visitPrompt(ctx, prompt, func(s spelling, in window, logits func(position int) []float32) {
		for i := range prompt[1:] {
			if last := s.ends[i] - 1; windowOf(last) == in {
				ids[i+1], logprobs[i+1] = likeliestOf(w.base.vocabulary, logits(last), k)
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return ids, logprobs, nil
}

// Target is a token whose log-probability at a position of a prompt is asked for. The position is at least 1.
type Target struct {
	Position int
	Token    int32
}

// TargetLogprobs returns the log-probability of each target, given the prompt before its position.
func (w *Weights) TargetLogprobs(ctx context.Context, prompt []int32, targets []Target) ([]float32, error) {
	natives := make([]int32, len(targets))
	for i, target := range targets {
		native := w.base.vocabulary.Spell(target.Token)
		if len(native) != 1 {
			return nil, userErrorf("target %d is not a token of one byte, which the simulator can score", target.Token)
		}
		natives[i] = native[0]
	}
	out := make([]float32, len(targets))
	err := w.visitPrompt(ctx, prompt, func(s spelling, in window, logits func(position int) []float32) {
		for i, target := range targets {
			if last := s.ends[target.Position-1] - 1; windowOf(last) == in {
				out[i] = float32(score(logits(last), natives[i]))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// likeliestOf returns the k likeliest tokens by logits of native tokens, and their log-probabilities.
func likeliestOf(vocabulary Vocabulary, logits []float32, k int) (ids []int32, logprobs []float32) {
	norm := transformer.LogSumExp(logits)
	for _, native := range likeliest(logits, nil) {
		id, ok := vocabulary.Token(native)
		if !ok {
			continue
		}
		ids, logprobs = append(ids, id), append(logprobs, float32(float64(logits[native])-norm))
		if len(ids) == k {
			break
		}
	}
	return ids, logprobs
}

// visitPrompt calls visit for each window of the prompt, with the prompt in native tokens and the logits after each
// position of the window. It calls visit concurrently.
func (w *Weights) visitPrompt(ctx context.Context, prompt []int32,
	visit func(s spelling, in window, logits func(position int) []float32)) error {
	s, err := w.base.read(prompt)
	if err != nil {
		return userErrorf("the prompt cannot be read: %v", err)
	}
	return w.base.engine.Run(ctx, transformer.Job{
		Params:    w.params,
		Sequences: windowsOf(s.native),
		Visit: func(p *transformer.Pass, first, next int) {
			for i := first; i < next; i++ {
				rows, in := p.Rows(i-first), window(i)
				visit(s, in, func(position int) []float32 { return p.Logits(rows[position-in.start()]) })
			}
		},
	})
}
