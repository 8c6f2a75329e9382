// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transformer

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEngineGradientDoesNotDependOnCPUs(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	params := NewParams(randomFlat(rng))
	params.PrepareBackward()
	var sequences [][]int32
	for range 7 {
		sequences = append(sequences, family(rng)...)
	}
	want := engineGradient(t, new(Engine), params, sequences)
	engine := new(Engine)
	for _, cpus := range []int{1, 2, 5, 16} {
		before := runtime.GOMAXPROCS(cpus)
		got := engineGradient(t, engine, params, sequences)
		runtime.GOMAXPROCS(before)
		if !cmp.Equal(want, got) {
			t.Errorf("gradient differs with %d CPUs", cpus)
		}
	}
}

func engineGradient(t *testing.T, e *Engine, params *Params, sequences [][]int32) []float32 {
	t.Helper()
	grad := make([]float32, Size)
	err := e.Run(t.Context(), Job{
		Params:    params,
		Sequences: sequences,
		Gradient:  grad,
		Wanted:    Wanted{Embed: true, Attention: true, MLP: true, Unembed: true},
		Visit: func(p *Pass, _, _ int) {
			for row := range p.RowCount() {
				for j := range p.Logits(int32(row)) {
					p.Logits(int32(row))[j] *= float32(j%5) - 2
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return grad
}

func TestEngineVisitsEachSequenceOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 1))
	params := NewParams(randomFlat(rng))
	for _, n := range []int{1, 3, 16, 17, 50} {
		var mu sync.Mutex
		visits := make([]int, n)
		sequences := make([][]int32, n)
		for i := range sequences {
			sequences[i] = randomSequence(rng, 1+rng.IntN(9))
		}
		err := new(Engine).Run(t.Context(), Job{Params: params, Sequences: sequences, Visit: func(p *Pass, first, next int) {
			mu.Lock()
			defer mu.Unlock()
			for i := first; i < next; i++ {
				visits[i] += len(p.Rows(i-first)) - len(sequences[i]) + 1
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		want := make([]int, n)
		for i := range want {
			want[i] = 1
		}
		if diff := cmp.Diff(want, visits); diff != "" {
			t.Errorf("%d sequences (-want +got):\n%s", n, diff)
		}
	}
}

func TestEngineStopsWhenContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rng := rand.New(rand.NewPCG(11, 1))
	err := new(Engine).Run(ctx, Job{
		Params:    NewParams(randomFlat(rng)),
		Sequences: family(rng),
		Visit:     func(*Pass, int, int) { t.Error("visited after the context was done") },
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
