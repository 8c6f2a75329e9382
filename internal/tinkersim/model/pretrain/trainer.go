// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

const (
	warmup       = 200
	beta1, beta2 = 0.9, 0.98
	epsilon      = 1e-8
	decay        = 0.02
)

type settings struct {
	steps, batch int
	rate         float64
	seed         uint64
	// texts draws a text, given the part of the training that is done.
	texts func(rng *rand.Rand, progress float64) text
}

// trainer trains all parameters with Adam.
type trainer struct {
	settings
	rng      *rand.Rand
	engine   transformer.Engine
	params   []float32
	gradient []float32
	first    []float64
	second   []float64
}

func newTrainer(s settings) *trainer {
	t := &trainer{
		settings: s,
		rng:      rand.New(rand.NewPCG(s.seed, 0)),
		params:   make([]float32, transformer.Size),
		gradient: make([]float32, transformer.Size),
		first:    make([]float64, transformer.Size),
		second:   make([]float64, transformer.Size),
	}
	blocks := append(transformer.AttentionBlocks(), transformer.MLPBlocks()...)
	for _, b := range append(blocks, transformer.UnembedBlock()) {
		t.fill(b, 1/math.Sqrt(float64(b.Rows)))
	}
	t.fill(transformer.EmbedBlock(), 0.5)
	return t
}

// fill draws a matrix from a normal distribution.
func (t *trainer) fill(b transformer.Block, deviation float64) {
	for i := range b.Rows {
		for j := range b.Cols {
			t.params[b.Offset+i*b.Stride+j] = float32(t.rng.NormFloat64() * deviation)
		}
	}
}

func (t *trainer) run(ctx context.Context) error {
	mean := 0.0
	for step := range t.steps {
		loss, err := t.step(ctx, step)
		if err != nil {
			return fmt.Errorf("computing step %d: %w", step, err)
		}
		mean += loss / 100
		if step%100 == 99 {
			slog.Info("trained", "step", step+1, "replyLoss", mean)
			mean = 0
		}
	}
	return nil
}

// step draws a batch, makes one optimizer step and returns the mean loss of a reply.
func (t *trainer) step(ctx context.Context, step int) (float64, error) {
	texts := make([]text, t.batch)
	inputs := make([][]int32, t.batch)
	for i := range texts {
		texts[i] = t.texts(t.rng, float64(step)/float64(t.steps))
		inputs[i] = texts[i].tokens[:len(texts[i].tokens)-1]
	}
	params := transformer.NewParams(t.params)
	params.PrepareBackward()
	losses := make([]float64, t.batch)
	err := t.engine.Run(ctx, transformer.Job{
		Params:    params,
		Sequences: inputs,
		Gradient:  t.gradient,
		Wanted:    transformer.Wanted{Embed: true, Attention: true, MLP: true, Unembed: true},
		Visit: func(p *transformer.Pass, first, next int) {
			visit(p, texts[first:next], losses[first:next])
		},
	})
	if err != nil {
		return 0, err
	}
	t.adam(step)
	total := 0.0
	for _, loss := range losses {
		total += loss
	}
	return total / float64(t.batch), nil
}

// visit replaces logits by the gradient of the weighted cross-entropy.
func visit(p *transformer.Pass, texts []text, losses []float64) {
	type use struct {
		row, target int32
		weight      float32
	}
	var uses []use
	weights := make([]float32, p.RowCount())
	for i, t := range texts {
		for at, row := range p.Rows(i) {
			weight := float32(1)
			if at+1 < t.prompt {
				weight = t.promptWeight
			}
			target := t.tokens[at+1]
			uses = append(uses, use{row: row, target: target, weight: weight})
			weights[row] += weight
			if weight == 1 {
				logits := p.Logits(row)
				losses[i] -= float64(logits[target]) - transformer.LogSumExp(logits)
			}
		}
	}
	for row, weight := range weights {
		logits := p.Logits(int32(row))
		if weight == 0 {
			clear(logits)
			continue
		}
		norm := float32(transformer.LogSumExp(logits))
		for j, v := range logits {
			logits[j] = weight * transformer.Exp32(v-norm)
		}
	}
	for _, u := range uses {
		p.Logits(u.row)[u.target] -= u.weight
	}
}

// adam makes one AdamW step with the batch's mean gradient; the rate warms up and then falls along a cosine.
func (t *trainer) adam(step int) {
	rate := t.rate * min(1, float64(step+1)/warmup) * (1 + math.Cos(math.Pi*float64(step)/float64(t.steps))) / 2
	fix1, fix2 := 1-math.Pow(beta1, float64(step+1)), 1-math.Pow(beta2, float64(step+1))
	scale := t.clip() / float64(t.batch)
	for i, g := range t.gradient {
		g := float64(g) * scale
		t.first[i] = beta1*t.first[i] + (1-beta1)*g
		t.second[i] = beta2*t.second[i] + (1-beta2)*g*g
		p := float64(t.params[i]) * (1 - rate*decay)
		t.params[i] = float32(p - rate*(t.first[i]/fix1)/(math.Sqrt(t.second[i]/fix2)+epsilon))
	}
}

// clip returns the factor that brings the mean gradient's norm down to 1.
func (t *trainer) clip() float64 {
	sum := 0.0
	for _, g := range t.gradient {
		sum += float64(g) * float64(g)
	}
	return min(1, float64(t.batch)/math.Sqrt(sum))
}

func (t *trainer) save(name string) error {
	return os.WriteFile(name, transformer.Encode(t.params), 0o644)
}
