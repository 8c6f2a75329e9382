// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

func TestTrainSaveLoadSample(t *testing.T) {
	b := start(t, tinkersim.Options{})
	c := b.client()
	session := b.session(c)
	m := b.model(c, session, 0)
	first := step(t, m, datum("Q: 1+1 A: 2"), datum("Q: 2+2 A: 4"))
	step(t, m, datum("Q: 1+1 A: 2"), datum("Q: 2+2 A: 4"))
	saving, err := m.SaveState(t.Context(), client.SaveRequest{Name: "two"})
	state := done(t, saving, err)
	if want := "tinker://" + m.ID() + "/weights/two"; state.Path != want {
		t.Errorf("saved at %s, want %s", state.Path, want)
	}
	third := step(t, m, datum("Q: 3+3 A: 6"))
	fourth := step(t, m, datum("Q: 3+3 A: 6"))
	if !(fourth < third) || first <= 0 {
		t.Errorf("loss %v, then %v, %v: the loss does not fall", first, third, fourth)
	}

	warm := b.model(c, session, 1)
	loading, err := warm.LoadState(t.Context(), state.Path, true)
	done(t, loading, err)
	if got := []float64{step(t, warm, datum("Q: 3+3 A: 6")), step(t, warm, datum("Q: 3+3 A: 6"))}; !cmp.Equal(got,
		[]float64{third, fourth}) {
		t.Errorf("resumed with the optimizer: losses %v, want exactly %v, %v", got, third, fourth)
	}
	cold := b.model(c, session, 2)
	loading, err = cold.LoadState(t.Context(), state.Path, false)
	done(t, loading, err)
	if got := step(t, cold, datum("Q: 3+3 A: 6")); got != third {
		t.Errorf("loaded weights alone: loss %v, want exactly %v", got, third)
	}
	if got := step(t, cold, datum("Q: 3+3 A: 6")); got == fourth {
		t.Errorf("a fresh optimizer gave the very loss %v of the saved one", got)
	}

	saving, err = m.SaveSampler(t.Context(), client.SaveRequest{Name: "s"})
	sampler := done(t, saving, err)
	sampling, err := c.CreateSamplingSession(t.Context(), session, 7, sampler.Path, "")
	if err != nil {
		t.Fatal(err)
	}
	req := tinker.SampleRequest{NumSamples: 3, Prompt: tinker.Text(text("Q: 3+3 A:")), SamplingSession: sampling,
		SeqID: new(int64(1) << 62)}
	req.SamplingParams = tinker.DefaultSampling()
	req.SamplingParams.MaxTokens, req.SamplingParams.Seed = new(12), new(int64(5))
	samples, err := c.Sample(t.Context(), req)
	if err != nil || len(samples.Sequences) != 3 {
		t.Fatalf("%d samples, %v", len(samples.Sequences), err)
	}
	t.Logf("samples %v", samples)
}
