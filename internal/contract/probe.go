// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// DefinitionName is the key of the ConfigMap that a probe Job reads, and the name of the file in its pod.
const DefinitionName = "definition.json"

// MaxProbeBytes is the maximum size of a termination message.
const MaxProbeBytes = 4096

// ProbeResult is the result of `rollout probe`, which writes it as the probe container's termination message.
type ProbeResult struct {
	// OK says that the environment can be used.
	OK bool `json:"ok"`
	// Reason is the code of the problem if the environment cannot be used.
	Reason problem.Code `json:"reason,omitempty"`
	// Message is for people and names the repair. If the environment can be used, it is a warning.
	Message string `json:"message,omitempty"`
	// Splits are the splits that were found, sorted by name.
	Splits []ProbeSplit `json:"splits,omitempty"`
	// Contents is the data that was read; nil for tasks that are generated.
	Contents *DataContents `json:"contents,omitempty"`
	// CanaryReward is the reward of the episode that was played with the right answer.
	CanaryReward *float64 `json:"canaryReward,omitempty"`
	// Deterministic says whether the same reply earned the same reward twice; nil if no reply was played twice.
	Deterministic *bool `json:"deterministic,omitempty"`
	// DeclaresTools says that the model's format has to declare the tools of the episodes that were played.
	DeclaresTools bool `json:"declaresTools,omitempty"`
}

// ProbeSplit is a split with the number of its tasks.
type ProbeSplit struct {
	Name  string `json:"name"`
	Tasks int64  `json:"tasks"`
}

// EncodeProbeResult returns at most MaxProbeBytes of JSON; a message that is too long is cut.
func EncodeProbeResult(r ProbeResult) ([]byte, error) {
	if r.CanaryReward != nil && !finite.Is(*r.CanaryReward) {
		return nil, errors.New("encoding probe result: the canary's reward is not a number")
	}
	r.Message = Truncate(r.Message, 1024)
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding probe result: %w", err)
	}
	if len(data) > MaxProbeBytes {
		return nil, fmt.Errorf("encoding probe result: %d splits take %d bytes, %d fit", len(r.Splits), len(data),
			MaxProbeBytes)
	}
	return data, nil
}

// DecodeProbeResult reads a termination message. Anything else is an error.
func DecodeProbeResult(message string) (ProbeResult, error) {
	var r ProbeResult
	if err := decodeStrictly([]byte(message), &r); err != nil {
		return ProbeResult{}, fmt.Errorf("decoding probe result: %w", err)
	}
	return r, nil
}
