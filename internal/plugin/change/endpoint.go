// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// endpointCheck is the expected check of a run's settings by its endpoint, as far as the endpoint is known.
type endpointCheck struct {
	// KnownFrom is the run whose learner has checked the endpoint with the model; empty if no run of the namespace has.
	KnownFrom string `json:"knownFrom,omitempty"`
	// Refusal is the message with which the run would be refused.
	Refusal string `json:"refusal,omitempty"`
	// Unchecked are the features that the first attempt checks before it trains.
	Unchecked []string `json:"unchecked,omitempty"`
}

// knowledge has the findings of the namespace's runs at the endpoint and with the model of a planned run.
type knowledge struct {
	// from is the run that has found capabilities last; nil if no run has.
	from *v1alpha1.TrainingRun
	// shared are the capabilities that the planned run would rely on, which may be of another run.
	shared *contract.Capabilities
}

// findCapabilities gives a planned run the capabilities that another run of its namespace has found at the same
// endpoint with the same model. It takes the newest of several.
func findCapabilities(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun,
	now time.Time) (knowledge, error) {
	runs := &v1alpha1.TrainingRunList{}
	if err := connection.List(ctx, runs, client.InNamespace(run.Namespace)); err != nil {
		return knowledge{}, fmt.Errorf("listing runs: %w", err)
	}
	baseURL, model := run.Spec.Tinker.BaseURL, run.Spec.Model.Name
	known := knowledge{from: endpoint.LastChecked(runs.Items, baseURL, model, "")}
	known.shared = endpoint.Share(endpoint.LastChecked(runs.Items, baseURL, model, endpoint.Connection(run)), now)
	if known.from != nil {
		run.Status.Capabilities = known.from.Status.Capabilities
	}
	return known, nil
}

// checkOf returns the expected check of a run at its endpoint. The capabilities in its file decide the refused
// settings; the capabilities that other runs share decide the features that are left to check.
func checkOf(file contract.RunFile, known knowledge) endpointCheck {
	var check endpointCheck
	if known.from != nil {
		check.KnownFrom = known.from.Name
	}
	_, refused := preflight.Expect(file)
	if refused != nil {
		check.Refusal = refused.Error()
	}
	file.Capabilities, file.SharedCapabilities = nil, known.shared
	unchecked, _ := preflight.Expect(file)
	for _, feature := range unchecked {
		check.Unchecked = append(check.Unchecked, string(feature))
	}
	return check
}

// text lists in a line the settings that the endpoint will refuse.
func (c endpointCheck) text() string {
	switch {
	case c.Refusal != "":
		return c.Refusal + " (as run " + c.KnownFrom + " found)"
	case c.KnownFrom == "":
		return "not known: no run of the namespace has checked this endpoint with this model; the first attempt does " +
			"before it trains"
	case len(c.Unchecked) > 0:
		return "nothing that run " + c.KnownFrom + " has checked; the first attempt checks " + strings.Join(c.Unchecked, ", ")
	}
	return "nothing, as run " + c.KnownFrom + " found"
}
