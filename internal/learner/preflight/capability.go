// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// CheckFeatures finds out whether the endpoint honours the run's settings. It keeps the results of an earlier attempt,
// of another run or of the broker, unless the run was refused because of them, and checks only unknown features.
// Package capability describes the cost. The error says why the endpoint cannot serve the run; the report is complete
// even then.
func (c *Checker) CheckFeatures(ctx context.Context) (capability.Report, error) {
	needs := needsOf(c.File)
	features := featuresOf(c.File, needs)
	report := withoutRefusals(c.Known(), c.File, needs)
	if missing := report.Missing(features); c.Broker != nil && len(missing) > 0 {
		found, err := c.ask(ctx, missing)
		if err != nil {
			return capability.Report{}, err
		}
		report = withoutRefusals(report.With(found), c.File, needs)
	}
	// A feature that is undecided after this number of rounds stays unknown.
	const rounds = 2
	for round := 0; round < rounds && len(report.Missing(features)) > 0; round++ {
		missing := report.Missing(features)
		found, err := c.insist(ctx, func(ctx context.Context) (capability.Report, error) {
			return c.FeatureChecker.Check(ctx, missing)
		})
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

// withoutRefusals returns the known features without the ones that the run needs and the endpoint lacked. A refused run
// makes another attempt only when a user asks for it, and the user may have repaired the endpoint.
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

// Assumed returns the features that a run relies on. If an endpoint only reads JSON or averages gradients, as versions
// of SkyRL do, a run does not rely on unchecked features whose failure would go unnoticed: that repeated submits are
// recognised, and that sampler weights stay as they were saved.
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

// ask returns the broker's findings about features. Findings of another version of the client are checked again.
func (c *Checker) ask(ctx context.Context, features []capability.Feature) (capability.Report, error) {
	var found tinker.CheckResponse
	report, err := c.insist(ctx, func(ctx context.Context) (report capability.Report, err error) {
		found, err = c.Broker.Ask(ctx, features)
		return c.reportOf(found), err
	})
	if err == nil && len(report.Findings) > 0 {
		c.shared = &contract.SharedCheck{Name: found.Endpoint, CheckedAt: found.CheckedAt}
	}
	return report, err
}

// reportOf returns the report of a broker's findings.
func (c *Checker) reportOf(found tinker.CheckResponse) capability.Report {
	file := c.File
	file.Capabilities, file.SharedCapabilities = nil, &contract.Capabilities{BaseURL: file.Fixed.BaseURL,
		Model: file.Fixed.Model.Name, Supported: found.Supported, Ignored: found.Ignored, Unsupported: found.Unsupported}
	if found.ClientVersion != c.ClientVersion {
		file.SharedCapabilities = nil
	}
	return known(file)
}

// insist waits for an endpoint that fails, however long it takes.
func (c *Checker) insist(ctx context.Context,
	check func(context.Context) (capability.Report, error)) (capability.Report, error) {
	for failures := 1; ; failures++ {
		began := c.Now()
		report, err := check(ctx)
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
