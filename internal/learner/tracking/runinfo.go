// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"encoding/json"
	"fmt"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/openreward"
)

// RunInfo returns the description of a file's run for services.
func RunInfo(file contract.RunFile) (Run, error) {
	config, err := configOf(file)
	return Run{
		UID: file.Run.UID, Namespace: file.Run.Namespace, Name: file.Run.Name, Attempt: file.Attempt, Config: config,
		Deployments: deploymentsOf(file),
	}, err
}

// deploymentsOf returns the environments that OpenReward hosts.
func deploymentsOf(file contract.RunFile) map[string]openreward.Deployment {
	deployments := map[string]openreward.Deployment{}
	for _, e := range file.Fixed.Environments {
		if server := e.Definition.ORS; server != nil && server.Deployment() != "" {
			deployments[e.Name] = openreward.Deployment{Name: server.Deployment(), Variant: server.Environment}
		}
	}
	return deployments
}

// configOf returns the run's configuration for services: the spec as it runs, with the digests of environments in place
// of their definitions.
func configOf(file contract.RunFile) (map[string]any, error) {
	type environment struct {
		Name       string                `json:"name"`
		Digest     string                `json:"digest"`
		Weight     float64               `json:"weight,omitempty"`
		GroupSize  int                   `json:"groupSize"`
		MinMembers int                   `json:"minMembers"`
		Sampling   playing.Sampling      `json:"sampling"`
		Limits     playing.Limits        `json:"limits"`
		Reward     playing.EpisodeReward `json:"reward"`
	}
	list := func(environments []contract.Environment) []environment {
		var entries []environment
		for _, e := range environments {
			entries = append(entries, environment{e.Name, e.Digest, e.Weight, e.GroupSize, e.MinMembers, e.Sampling, e.Limits,
				e.Reward})
		}
		return entries
	}
	tracked := map[string]any{
		"run": file.Run, "specDigest": file.SpecDigest, "model": file.Fixed.Model, "baseURL": file.Fixed.BaseURL,
		"environments": list(file.Fixed.Environments), "checkpoints": file.Checkpoints,
	}
	if file.Fixed.Algorithm != nil {
		tracked["algorithm"] = file.Fixed.Algorithm
	}
	if file.Fixed.InitFrom != nil {
		tracked["initFrom"] = file.Fixed.InitFrom
	}
	if e := file.Evaluation; e != nil {
		tracked["evaluation"] = map[string]any{
			"everySteps": e.EverySteps, "before": e.Before, "after": e.After, "samplingShare": e.SamplingShare,
			"environments": list(e.Environments),
		}
	}
	data, err := json.Marshal(tracked)
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("decoding the configuration: %w", err)
	}
	return config, nil
}
