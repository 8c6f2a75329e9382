// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/gateway"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// TestNetworkOfAgents checks that an agent is confined to the gateway, with at least the environment's minimum of
// isolation, unless its network is open. It is confined by default.
func TestNetworkOfAgents(t *testing.T) {
	server := gateway.New("http://127.0.0.1:4321", gateway.Config{Logger: slog.New(slog.DiscardHandler)})
	b := Builder{Gateway: func() (*gateway.Server, error) { return server, nil }}
	process := contract.Definition{Execution: &contract.Execution{FunctionImage: settings.FunctionImage{
		Isolation: &settings.Isolation{Minimum: settings.IsolationProcess}}}}
	inPods := func(pods string) contract.Definition {
		return contract.Definition{Execution: &contract.Execution{Pods: []byte(pods),
			FunctionImage: settings.FunctionImage{Placement: settings.PlacementPods}}}
	}
	for name, tc := range map[string]struct {
		definition contract.Definition
		network    settings.AgentNetwork
		inPods     bool
		want       *protocol.Network
	}{
		"by default": {contract.Definition{}, "", false,
			&protocol.Network{Connect: []string{"127.0.0.1:4321"}, Minimum: isolation.Landlock}},
		"what there is": {process, settings.NetworkGateway, false,
			&protocol.Network{Connect: []string{"127.0.0.1:4321"}, Minimum: isolation.Process}},
		"open": {process, settings.NetworkOpen, false, nil},
		"pods": {inPods(`{"replicas":2,"network":"None"}`), "", true,
			&protocol.Network{Gateway: true, Closed: true, Minimum: isolation.Landlock}},
		"pods with a network": {inPods(`{"network":"Open"}`), "", true,
			&protocol.Network{Gateway: true, Minimum: isolation.Landlock}},
		"pods without settings": {inPods(""), "", true,
			&protocol.Network{Gateway: true, Closed: true, Minimum: isolation.Landlock}},
		"pods of a warm pool, whose template may open their network": {
			inPods(`{"network":"None","warmPoolRef":{"name":"python"}}`), "", true,
			&protocol.Network{Gateway: true, Minimum: isolation.Landlock}},
		"the probe of pods": {inPods(`{"network":"None"}`), "", false,
			&protocol.Network{Connect: []string{"127.0.0.1:4321"}, Closed: true, Minimum: isolation.Landlock}},
		"pods, and open": {inPods(`{"network":"Open"}`), settings.NetworkOpen, true, nil},
	} {
		got, err := b.networkOf(tc.definition, settings.Agent{Network: tc.network}, tc.inPods)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, (-want +got)\n%s", name, err, diff)
		}
	}
	b.Gateway = func() (*gateway.Server, error) { return nil, errors.New("no port") }
	var fault *environment.Fault
	if _, err := b.networkOf(process, settings.Agent{}, false); !errors.As(err, &fault) || !fault.Unavailable {
		t.Errorf("got %v without a gateway, want an environment that is unavailable", err)
	}
}
