// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
)

// Known returns the features of the endpoint that the run file records, if it is the same endpoint and model: features
// that the run's earlier attempts found, and features that another run or the broker found with this version of the
// client.
func (c *Checker) Known() capability.Report {
	file := c.File
	if !c.shares() {
		file.SharedCapabilities = nil
	}
	return known(file)
}

// shares reports whether the checker relies on the check of another run, or of a broker.
func (c *Checker) shares() bool {
	shared := c.File.SharedCapabilities
	return isOf(shared, c.File) && shared.ClientVersion == c.ClientVersion
}

// Capabilities returns a report as the manager receives it; nil when nothing is known. The result says when and by
// whom the features were found.
func (c *Checker) Capabilities(report capability.Report) *contract.Capabilities {
	if len(report.Findings) == 0 {
		return nil
	}
	found := &contract.Capabilities{
		BaseURL: report.BaseURL, Model: report.Model, Supported: report.List(capability.Supported),
		Ignored: report.List(capability.Ignored), Unsupported: report.List(capability.Unsupported),
	}
	own := &contract.Capabilities{}
	if isOf(c.File.Capabilities, c.File) {
		own = c.File.Capabilities
		if own.CheckedAt == "" && own.SharedFrom == nil {
			return found // An earlier version found them, at a time that it did not record.
		}
	}
	found.CheckedAt, found.SharedFrom = own.CheckedAt, own.SharedFrom
	found.ClientVersion = cmp.Or(own.ClientVersion, c.ClientVersion)
	found.Connection = cmp.Or(own.Connection, c.File.Connection)
	if found.CheckedAt == "" && !c.checkedAt.IsZero() {
		found.CheckedAt = c.checkedAt.UTC().Format(time.RFC3339)
	}
	if c.shares() {
		found.SharedFrom = c.File.SharedCapabilities.SharedFrom
	}
	if c.shared != nil {
		found.SharedFrom = c.shared
	}
	return found
}

// isOf reports whether capabilities belong to the endpoint and the model of a run.
func isOf(found *contract.Capabilities, file contract.RunFile) bool {
	return found != nil && found.BaseURL == file.Fixed.BaseURL && found.Model == file.Fixed.Model.Name
}

// known returns the features of the endpoint that a run file records, found by any version of the client.
func known(file contract.RunFile) capability.Report {
	report := capability.Report{
		BaseURL: file.Fixed.BaseURL, Model: file.Fixed.Model.Name, Findings: map[capability.Feature]capability.Finding{},
	}
	add := func(support capability.Support, names []string) {
		for _, name := range names {
			report.Findings[capability.Feature(name)] = capability.Finding{Support: support}
		}
	}
	if isOf(file.SharedCapabilities, file) {
		add(capability.Supported, file.SharedCapabilities.Supported)
		add(capability.Ignored, file.SharedCapabilities.Ignored)
		add(capability.Unsupported, file.SharedCapabilities.Unsupported)
	}
	if !isOf(file.Capabilities, file) {
		return report
	}
	add(capability.Supported, file.Capabilities.Supported)
	add(capability.Ignored, file.Capabilities.Ignored)
	add(capability.Unsupported, file.Capabilities.Unsupported)
	// Versions that record neither the encoding nor their own version made their checks in protobuf.
	if file.Capabilities.ClientVersion == "" && report.Of(capability.Protobuf) == capability.Unknown &&
		report.Of(capability.OptimizerRestore) != capability.Unknown {
		report.Findings[capability.Protobuf] = capability.Finding{Support: capability.Supported}
	}
	return report
}
