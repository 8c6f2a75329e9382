// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracking is the part of the run file that names the services which show a run's curves.
package tracking

import (
	"fmt"
	"strings"
)

// Settings name the services; those that are nil receive nothing.
type Settings struct {
	WandB *WandB `json:"wandb,omitempty"`
}

// WandB is Weights & Biases, or a server that speaks its HTTP interface.
type WandB struct {
	BaseURL string `json:"baseURL"`
	Project string `json:"project"`
	// Entity is the team or user that the project is of; empty for the default of the key's user.
	Entity  string   `json:"entity,omitempty"`
	RunName string   `json:"runName"`
	Tags    []string `json:"tags,omitempty"`
	// KeyFile has the API key, and is read before each connection. It does not exist while its Secret does not.
	KeyFile string `json:"keyFile"`
}

// Problem is why a service does not receive the run's steps.
type Problem struct {
	// Service is the name of its field: wandb.
	Service string `json:"service"`
	// Reason is CamelCase and stable.
	Reason string `json:"reason"`
	// Message is for people and says what to do.
	Message string `json:"message"`
}

// Validate calls invalid for each value that is not valid, with its path and what it must be.
func (s *Settings) Validate(invalid func(path, problem string)) {
	if s == nil || s.WandB == nil {
		return
	}
	w := s.WandB
	if !strings.HasPrefix(w.BaseURL, "http://") && !strings.HasPrefix(w.BaseURL, "https://") {
		invalid("tracking.wandb.baseURL", fmt.Sprintf("is %q, and must be an http or https URL", w.BaseURL))
	}
	for path, value := range map[string]string{"project": w.Project, "runName": w.RunName, "keyFile": w.KeyFile} {
		if value == "" {
			invalid("tracking.wandb."+path, "is needed")
		}
	}
}
