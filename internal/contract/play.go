// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

// Play has the settings that a worker needs to play groups. The learner sends it in its reply to Hello, so that a
// worker survives a change of the evaluation and a new attempt. A worker reads the rest from the run file: the run,
// the address and the version of its learner, the digest of the spec, and the address of the endpoint.
type Play struct {
	// Version is RunFile.Version of the run.
	Version int `json:"version"`
	// Model is the model of the run with the digest of its tokenizer and the text of its template, as far as the learner
	// knows them. Workers do not read the model of the run file.
	Model        Model         `json:"model"`
	Environments []Environment `json:"environments"`
	// Evaluations are keyed by the digest of their plan.
	Evaluations map[string][]Environment `json:"evaluations,omitempty"`
	Concurrency int                      `json:"concurrency"`
	// StepRewards records the rewards of single replies, which the run's grouping compares.
	StepRewards bool `json:"stepRewards,omitempty"`
	// Reference is the model whose log-probabilities of training data are recorded; nil if there is no KL penalty.
	Reference *algorithm.Reference `json:"reference,omitempty"`
	// ShortSeeds makes the workers send seeds of 31 bits, for an endpoint that refuses others.
	ShortSeeds bool `json:"shortSeeds,omitempty"`
}

// EncodePlay returns the JSON of a Play, whose version this build has to know.
func EncodePlay(p Play) ([]byte, error) {
	if err := CheckVersion("what is played", p.Version, "this build"); err != nil {
		return nil, fmt.Errorf("encoding what is played: %w", err)
	}
	data, err := storePlay(p)
	if err != nil {
		return nil, fmt.Errorf("encoding what is played: %w", err)
	}
	return data, nil
}

// DecodePlay reads the output of EncodePlay. The error is a *VersionError if this build does not read the version. An
// unknown field is ignored, since a field that changes the episodes comes with a new version.
func DecodePlay(data []byte) (Play, error) {
	var p Play
	var stored storedPlay
	var version struct {
		Version int `json:"version"`
	}
	err := json.Unmarshal(data, &version)
	if err == nil {
		err = CheckVersion("what the learner asks to play", version.Version, "this worker")
	}
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err == nil {
		p, err = stored.play()
	}
	if err != nil {
		return Play{}, fmt.Errorf("decoding what is played: %w", err)
	}
	return p, nil
}
