// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package dialects

import (
	"context"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/serving"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// sums is a catalog with one model.
type sums struct{ served serving.Model }

func (sums) Names() []string { return []string{"sums"} }

func (s sums) Model(_ context.Context, name string) (serving.Model, error) {
	if name != "sums" {
		return serving.Model{}, &serving.UnknownModelError{Message: "The models are: sums."}
	}
	return s.served, nil
}

// TestOfficialClientsAskCheckpoints asks the simulator's base model at a server of checkpoints with two versions of the
// official clients, synchronously and asynchronously, with bodies and with streams.
func TestOfficialClientsAskCheckpoints(t *testing.T) {
	address := serveSums(t)
	for _, requirements := range []string{"dialects", "dialects-oldest"} {
		t.Run(requirements, func(t *testing.T) {
			venv, err := exec.CommandContext(t.Context(), "../conformance/venv", requirements).Output()
			if err != nil {
				t.Fatalf("making the virtual environment: %v", err)
			}
			python := strings.TrimSpace(string(venv)) + "/bin/python"
			out, err := exec.CommandContext(t.Context(), python, "serve.py", address).CombinedOutput()
			if err != nil {
				t.Errorf("serve.py: %v\n%s", err, out)
			}
		})
	}
}

// serveSums serves the simulator's base model until the test ends, and returns its address.
func serveSums(t *testing.T) string {
	t.Helper()
	_, url := simulatortest.Serve(t, tinkersim.Options{})
	endpoint, err := client.New(client.Config{BaseURL: url, APIKey: "tml-test", UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	format, err := load.ForModel(t.Context(), nil, contract.Model{Name: tinkersim.ModelName})
	if err != nil {
		t.Fatal(err)
	}
	sampler := serving.NewSampler(t.Context(), endpoint, "test")
	t.Cleanup(sampler.Close)
	server := httptest.NewServer(serving.NewServer(serving.Config{
		Defaults: serving.Defaults{Temperature: 1, TopP: 1, MaxTokens: 16},
		Catalog: sums{serving.Model{Format: format, Sampler: sampler,
			Weights: serving.Weights{Base: tinkersim.ModelName}, Pieces: serving.Pieces{First: 2, Most: 4}}},
	}))
	t.Cleanup(server.Close)
	return server.URL
}
