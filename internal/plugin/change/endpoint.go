// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// endpointCheck is what the endpoint of a run would say of its settings, as far as it is known.
type endpointCheck struct {
	// KnownFrom is the run whose learner has checked the endpoint with the model; empty if no run of the namespace has.
	KnownFrom string `json:"knownFrom,omitempty"`
	// Refusal is the message with which the run would be refused.
	Refusal string `json:"refusal,omitempty"`
	// Unchecked are the features that the first attempt checks before it trains.
	Unchecked []string `json:"unchecked,omitempty"`
}

// findCapabilities gives a planned run the capabilities that another run of its namespace has found at the same endpoint with the same
// model, and returns the name of that run; "" if there is no such run. Of several it takes the newest.
func findCapabilities(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun) (string, error) {
	runs := &v1alpha1.TrainingRunList{}
	if err := connection.List(ctx, runs, client.InNamespace(run.Namespace)); err != nil {
		return "", fmt.Errorf("listing runs: %w", err)
	}
	from := newestKnowing(runs.Items, run)
	if from == nil {
		return "", nil
	}
	run.Status.Capabilities = from.Status.Capabilities
	return from.Name, nil
}

// newestKnowing returns the newest run that has found the capabilities of the endpoint and the model of another; nil without one.
func newestKnowing(runs []v1alpha1.TrainingRun, run *v1alpha1.TrainingRun) *v1alpha1.TrainingRun {
	var newest *v1alpha1.TrainingRun
	for i := range runs {
		found := runs[i].Status.Capabilities
		if found == nil || found.Model != run.Spec.Model.Name {
			continue
		}
		// Runs without an address use the manager's.
		isSame := runs[i].Spec.Tinker.BaseURL == run.Spec.Tinker.BaseURL || found.BaseURL == run.Spec.Tinker.BaseURL
		if isSame && (newest == nil || newest.CreationTimestamp.Before(&runs[i].CreationTimestamp)) {
			newest = &runs[i]
		}
	}
	return newest
}

// checkOf returns what is known of a run at its endpoint by the capabilities in its file.
func checkOf(file contract.RunFile, from string) endpointCheck {
	check := endpointCheck{KnownFrom: from}
	unchecked, refused := preflight.Expect(file)
	if refused != nil {
		check.Refusal = refused.Error()
	}
	for _, feature := range unchecked {
		check.Unchecked = append(check.Unchecked, string(feature))
	}
	return check
}

// text says in a line what the endpoint will refuse.
func (c endpointCheck) text() string {
	switch {
	case c.Refusal != "":
		return c.Refusal + " (as run " + c.KnownFrom + " found)"
	case c.KnownFrom == "":
		return "not known: no run of the namespace has checked this endpoint with this model; the first attempt does before it trains"
	case len(c.Unchecked) > 0:
		return "nothing that run " + c.KnownFrom + " has checked; the first attempt checks " + strings.Join(c.Unchecked, ", ")
	}
	return "nothing, as run " + c.KnownFrom + " found"
}
