// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

// endpointCheck is the expected check of a run's settings by its endpoint, as far as the endpoint is known.
type endpointCheck struct {
	// KnownFrom is the run or the TinkerEndpoint whose learner or broker has checked the endpoint with the model; empty
	// if none has.
	KnownFrom string `json:"knownFrom,omitempty"`
	// Brokered reports whether the run names a TinkerEndpoint.
	Brokered bool `json:"brokered,omitempty"`
	// Refusal is the message with which the run would be refused.
	Refusal string `json:"refusal,omitempty"`
	// Unchecked are the features that the first attempt checks before it trains.
	Unchecked []string `json:"unchecked,omitempty"`
}

// knowledge has the findings of the namespace's runs at the endpoint and with the model of a planned run.
type knowledge struct {
	// from is the run that has found capabilities last, or the TinkerEndpoint whose broker has; empty if none has.
	from string
	// brokered reports whether the planned run names a TinkerEndpoint.
	brokered bool
	// shared are the capabilities that the planned run would rely on, which may be of another run.
	shared *contract.Capabilities
}

// findCapabilities sets the capabilities of a planned run to the capabilities that another run of its namespace has
// found at the same endpoint with the same model, or that the broker of its TinkerEndpoint has. It takes the newest
// capabilities.
func findCapabilities(ctx context.Context, connection *cli.Connection, run *v1alpha1.TrainingRun,
	now time.Time) (knowledge, error) {
	if run.Spec.Tinker.EndpointRef != nil {
		return brokerCapabilities(ctx, connection, run, now)
	}
	runs := &v1alpha1.TrainingRunList{}
	if err := connection.List(ctx, runs, client.InNamespace(run.Namespace)); err != nil {
		return knowledge{}, fmt.Errorf("listing runs: %w", err)
	}
	baseURL, model := run.Spec.Tinker.BaseURL, run.Spec.Model.Name
	var known knowledge
	known.shared = endpoint.Share(endpoint.LastChecked(runs.Items, baseURL, model, endpoint.Connection(run)), now)
	if from := endpoint.LastChecked(runs.Items, baseURL, model, ""); from != nil {
		known.from, run.Status.Capabilities = from.Name, from.Status.Capabilities
	}
	return known, nil
}

// brokerCapabilities sets the capabilities of a planned run to the findings of its TinkerEndpoint's broker. Nothing is
// known to a person who may not read the TinkerEndpoint.
func brokerCapabilities(ctx context.Context, reader client.Reader, run *v1alpha1.TrainingRun,
	now time.Time) (knowledge, error) {
	known, name := knowledge{brokered: true}, run.Spec.Tinker.EndpointRef.Name
	of := &v1alpha1.TinkerEndpoint{}
	switch err := reader.Get(ctx, client.ObjectKey{Name: name}, of); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return known, nil
	case err != nil:
		return known, fmt.Errorf("reading TinkerEndpoint %q: %w", name, err)
	}
	baseURL := desired.Settings{Namespace: of.Status.Namespace}.BaseURL(run)
	if found := endpoint.CheckOf(of, run.Spec.Model, now); found != nil {
		known.from, known.shared = name, endpoint.ShareCheck(found, name, baseURL)
		run.Status.Capabilities = &v1alpha1.Capabilities{BaseURL: baseURL, Model: found.Model, Supported: found.Supported,
			Ignored: found.Ignored, Unsupported: found.Unsupported}
	}
	return known, nil
}

// checkOf returns the expected check of a run at its endpoint. The capabilities in its file decide the refused
// settings; the capabilities that other runs share decide the features that are left to check.
func checkOf(file contract.RunFile, known knowledge) endpointCheck {
	check := endpointCheck{KnownFrom: known.from, Brokered: known.brokered}
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
	from := "run " + c.KnownFrom
	if c.Brokered {
		from = "the broker of TinkerEndpoint " + c.KnownFrom
	}
	switch {
	case c.Refusal != "":
		return c.Refusal + " (as " + from + " found)"
	case c.KnownFrom == "" && c.Brokered:
		return "not known: the broker of the TinkerEndpoint has not checked its server with this model; it does for the " +
			"first attempt, before the run trains"
	case c.KnownFrom == "":
		return "not known: no run of the namespace has checked this endpoint with this model; the first attempt does " +
			"before it trains"
	case len(c.Unchecked) > 0:
		return "nothing that " + from + " has checked; the first attempt checks " + strings.Join(c.Unchecked, ", ")
	}
	return "nothing, as " + from + " found"
}
