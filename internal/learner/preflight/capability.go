// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// CheckFeatures finds out whether the endpoint honours what the run sets. What an earlier attempt or another run found
// is kept, unless the run was refused for it; only what is not known is checked. Package capability says what that
// costs. The error says why the endpoint cannot serve the run; the report is complete even then.
func (c *Checker) CheckFeatures(ctx context.Context) (capability.Report, error) {
	needs := needsOf(c.File)
	features := featuresOf(c.File, needs)
	report := withoutRefusals(c.Known(), c.File, needs)
	// What cannot be decided after so many rounds is left open.
	const rounds = 2
	for round := 0; round < rounds && len(report.Missing(features)) > 0; round++ {
		found, err := c.insist(ctx, report.Missing(features))
		if err != nil {
			return capability.Report{}, err
		}
		report = report.With(found)
		c.checkedAt = c.Now()
	}
	if err := gradientsUnknown(c.File, report); err != nil {
		return report, err
	}
	return report, refusal(c.File, needs, Assumed(report))
}

// withoutRefusals returns what is known, except what the run needs and the endpoint lacked: a run that was refused
// makes another attempt only when somebody asks for it, who may have repaired the endpoint.
func withoutRefusals(known capability.Report, file contract.RunFile, needs []need) capability.Report {
	for _, n := range needs {
		if known.Lacks(n.feature) {
			delete(known.Findings, n.feature)
		}
	}
	if file.RequireOptimizer && known.Lacks(capability.OptimizerRestore) {
		delete(known.Findings, capability.OptimizerRestore)
	}
	if len(gradientRefusal(file, known)) > 0 {
		delete(known.Findings, capability.GradientSum)
	}
	return known
}

// Assumed returns what a run relies on. Of an endpoint that reads JSON only or averages gradients, as versions of SkyRL
// do, it does not rely on what could not be checked and would go wrong unnoticed: that repeated submits are recognised,
// and that sampler weights stay as they were saved.
func Assumed(report capability.Report) capability.Report {
	assumed := capability.Report{BaseURL: report.BaseURL, Model: report.Model,
		Findings: map[capability.Feature]capability.Finding{}}
	differs := report.Lacks(capability.Protobuf) || report.Lacks(capability.GradientSum)
	for _, f := range []capability.Feature{capability.Repeats, capability.SamplerSnapshot} {
		if differs && report.Of(f) == capability.Unknown {
			assumed.Findings[f] = capability.Finding{Support: capability.Unsupported, Note: "it could not be checked: " +
				report.Findings[f].Note}
		}
	}
	return report.With(assumed)
}

// insist waits for an endpoint that fails, however long it takes.
func (c *Checker) insist(ctx context.Context, features []capability.Feature) (capability.Report, error) {
	for failures := 1; ; failures++ {
		began := c.Now()
		report, err := c.FeatureChecker.Check(ctx, features)
		if err == nil {
			c.Logger.Info("endpoint is checked", "seconds", c.Now().Sub(began).Seconds(),
				"ignored", report.List(capability.Ignored), "unsupported", report.List(capability.Unsupported),
				"unknown", report.List(capability.Unknown))
			return report, nil
		}
		if ctx.Err() != nil || c.IsFinal(err) {
			return report, err
		}
		c.Logger.Warn("endpoint is not checked", "err", err)
		if err := c.Pause(ctx, failures); err != nil {
			return report, err
		}
	}
}
