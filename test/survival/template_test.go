// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// byTemplate makes a run render by a template, which writes the same as the run's renderer.
func (w *fixture) byTemplate() *fixture {
	w.t.Helper()
	text, err := os.ReadFile("../../internal/renderer/templated/testdata/chatml.jinja")
	if err != nil {
		w.t.Fatal(err)
	}
	model := &w.file.Fixed.Model
	model.Renderer, model.Template = contract.RendererTemplate, &contract.Template{Text: string(text)}
	return w
}

// startTemplateWorker starts a real rollout worker that renders by the template that the learner sends.
func (w *fixture) startTemplateWorker(name string) {
	w.t.Helper()
	files := &fetch.Fetcher{Endpoint: w.url, Cache: w.t.TempDir()}
	w.startRolloutWorkerWith(name, func(c *rollout.Config) {
		c.Renderer = func(ctx context.Context, model contract.Model) (*load.Renderer, error) {
			return load.ForModel(ctx, files, model)
		}
	})
}

// episodes returns the recorded episodes of all steps.
func (w *fixture) episodes() (all [][]transcript.Line) {
	w.t.Helper()
	for _, row := range w.rows() {
		all = append(all, w.readEpisodes(row))
	}
	return all
}

// TestTemplateTrainsAsItsRenderer checks that a run that renders by a template trains on the same tokens as a run with
// the renderer that writes the same, and continues after its learner has died.
func TestTemplateTrainsAsItsRenderer(t *testing.T) {
	t.Parallel()
	built := newQwenFixture(t)
	built.startQwenWorker("w0")
	want := built.outcome(built.waitFor(built.startLearner(1, nil), contract.CauseCompleted))

	w := newQwenFixture(t).byTemplate()
	w.startTemplateWorker("w0")
	w.startTemplateWorker("w1")
	<-w.startLearner(1, w.dieAt("save.answered", 1)).done
	w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
	if diff := cmp.Diff(built.episodes(), w.episodes()); diff != "" {
		t.Errorf("episodes (-renderer +template):\n%s", diff)
	}
}
