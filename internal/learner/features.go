// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"context"
	"slices"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/learner/trainee"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// featureChecker checks features of the endpoint with models like the run's. Models that it may leave behind are
// unloaded with the models of earlier attempts.
type featureChecker struct {
	file    contract.RunFile
	client  *client.Client
	book    *checkpoints.Book
	journal *artifacts.Journal
	// known is the result of this attempt's check.
	known capability.Report
}

func (p *featureChecker) checker(features []capability.Feature) capability.Checker {
	m := p.file.Fixed.Model
	return capability.Checker{
		API: p.client, BaseURL: p.file.Fixed.BaseURL, Model: m.Name, Features: features,
		Lora: tinker.LoraConfig{Rank: m.LoraRank, TrainAttn: m.TrainAttention, TrainMLP: m.TrainMLP,
			TrainUnembed: m.TrainUnembed},
		UserMetadata: tinker.Metadata{
			trainee.MetadataRun: p.file.Run.UID, trainee.MetadataAttempt: strconv.Itoa(int(p.file.Attempt)), "purpose": "probe",
		},
	}
}

// Check checks features. It fails if the endpoint refuses the base model or the settings of the check.
func (p *featureChecker) Check(ctx context.Context, features []capability.Feature) (capability.Report, error) {
	report, err := p.checker(features).Run(ctx)
	return report, failure.Operation{Refused: problem.UnsupportedByEndpoint}.Failed(err, "checking the endpoint")
}

// Ask asks the broker of the run's TinkerEndpoint for its findings about features.
func (p *featureChecker) Ask(ctx context.Context, features []capability.Feature) (tinker.CheckResponse, error) {
	checker := p.checker(features)
	request := tinker.CheckRequest{BaseModel: checker.Model, Lora: checker.Lora}
	for _, f := range features {
		request.Features = append(request.Features, string(f))
	}
	found, err := p.client.CheckAtBroker(ctx, request)
	if slices.Contains(found.Unsupported, string(capability.Protobuf)) {
		p.client.UseJSON()
	}
	return found, failure.Operation{Refused: problem.UnsupportedByEndpoint}.Failed(err, "asking the broker for its check")
}

// checkOptimizer reports whether a model that was loaded from a state to train on has the optimizer's state: an
// endpoint may restore it from most states and lose it from one. Before the first optimizer step the optimizer has no
// state, so it checks only states that are known to be the result of one. It does not check states that this process
// saved at an endpoint that is known to restore optimizers, because a check makes models of its own.
func (p *featureChecker) checkOptimizer(ctx context.Context, state checkpoints.Entry,
	model *client.Model) (bool, error) {
	if p.known.Of(capability.OptimizerReset) == capability.Ignored {
		return true, nil // every load restores the optimizer, so that nothing shows the difference
	}
	if p.book.HasSaved(state.Path) && p.known.Of(capability.OptimizerRestore) == capability.Supported {
		return true, nil
	}
	if state.Name.Step == 0 || p.known.Lacks(capability.OptimizerRestore) || !p.isTrained(state) {
		return true, nil
	}
	return p.checker(nil).Restored(ctx, model)
}

// isTrained reports whether optimizer steps are known to have led to a state: all batches may have been empty.
func (p *featureChecker) isTrained(state checkpoints.Entry) bool {
	if !p.journal.HasStore() {
		return p.file.Fixed.InitFrom == nil
	}
	for version := range p.journal.Chain(state.Name.Version()) {
		if version.Row != nil {
			return *trainedIn(*version.Row) > 0
		}
	}
	return false
}
