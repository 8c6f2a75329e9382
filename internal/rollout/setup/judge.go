// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// newJudges returns the judges that sample at the endpoint.
func newJudges(hub *fetch.Fetcher, endpoint *client.Client) *rollout.Judges {
	return &rollout.Judges{
		Renderer: func(ctx context.Context, model, name string) (renderer.Renderer, error) {
			return load.ForModel(ctx, hub, judgeModel(model, name))
		},
		BaseModel: func(ctx context.Context, checkpoint string) (string, error) {
			info, err := endpoint.WeightsInfo(ctx, checkpoint)
			return info.BaseModel, err
		},
	}
}

// judgeDate is the day that formats with a date give the judge. It is fixed, so that a request is the same every day.
const judgeDate = "2025-01-01"

// judgeModel returns the format of a judge: the tokenizer that its name implies, and the renderer of the definition or
// else of the name.
func judgeModel(name, rendererName string) contract.Model {
	// An unknown model has no tokenizer, which the renderer's error reports.
	known, _ := models.Lookup(name)
	model := contract.Model{Name: name, Renderer: rendererName, Date: judgeDate}
	if t := known.Tokenizer; t.Repository != "" {
		model.Tokenizer = &contract.Tokenizer{Repository: t.Repository, File: t.File, Ranks: t.Ranks, SHA256: t.SHA256}
	}
	return model
}
