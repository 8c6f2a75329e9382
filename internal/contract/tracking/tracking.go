// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracking is the part of the run file that names the services which show a run's curves.
package tracking

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Settings name the services; those that are nil receive nothing.
type Settings struct {
	WandB       *WandB       `json:"wandb,omitempty"`
	TensorBoard *TensorBoard `json:"tensorboard,omitempty"`
	MLflow      *MLflow      `json:"mlflow,omitempty"`
	OpenReward  *OpenReward  `json:"openReward,omitempty"`
}

// OpenReward shows the rollouts of committed steps.
type OpenReward struct {
	// BaseURL is the address of the service's REST interface.
	BaseURL string `json:"baseURL"`
	RunName string `json:"runName"`
	// KeyFile has the API key, and is read before each connection. It does not exist while its Secret does not.
	KeyFile string `json:"keyFile"`
}

// MLflow is a tracking server of MLflow.
type MLflow struct {
	BaseURL    string            `json:"baseURL"`
	Experiment string            `json:"experiment"`
	RunName    string            `json:"runName"`
	Tags       map[string]string `json:"tags,omitempty"`
	// Username is that of basic authentication, whose password is in KeyFile; empty where KeyFile has a token.
	Username string `json:"username,omitempty"`
	// KeyFile is read before each connection; empty for a server without authentication.
	KeyFile string `json:"keyFile,omitempty"`
}

// TensorBoard has event files written among the artifacts.
type TensorBoard struct {
	// RunName is the folder of the files, and the name of the run in TensorBoard.
	RunName string `json:"runName"`
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
	// Service is the name of its field, such as wandb.
	Service string `json:"service"`
	// Reason is the code of the problem.
	Reason problem.Code `json:"reason"`
	// Message is for people and says what to do.
	Message string `json:"message"`
}

// Validate calls invalid for each value that is not valid, with its path and what it must be.
func (s *Settings) Validate(invalid func(path, problem string)) {
	if s == nil {
		return
	}
	if t := s.TensorBoard; t != nil && (t.RunName == "" || strings.Trim(t.RunName, ".") == "" ||
		strings.ContainsAny(t.RunName, `/\`)) {
		invalid("tracking.tensorboard.runName", fmt.Sprintf("is %q, and must be the name of a folder", t.RunName))
	}
	if s.WandB != nil {
		s.WandB.validate(invalid)
	}
	if s.MLflow != nil {
		s.MLflow.validate(invalid)
	}
	if s.OpenReward != nil {
		s.OpenReward.validate(invalid)
	}
}

func (o *OpenReward) validate(invalid func(path, problem string)) {
	checkURL("tracking.openreward.baseURL", o.BaseURL, invalid)
	checkGiven("tracking.openreward.", map[string]string{"runName": o.RunName, "keyFile": o.KeyFile}, invalid)
}

func (m *MLflow) validate(invalid func(path, problem string)) {
	checkURL("tracking.mlflow.baseURL", m.BaseURL, invalid)
	checkGiven("tracking.mlflow.", map[string]string{"experiment": m.Experiment, "runName": m.RunName}, invalid)
	if m.Username != "" && m.KeyFile == "" {
		invalid("tracking.mlflow.keyFile", "is needed for the password of username")
	}
}

func checkGiven(prefix string, fields map[string]string, invalid func(path, problem string)) {
	for path, value := range fields {
		if value == "" {
			invalid(prefix+path, "is needed")
		}
	}
}

func checkURL(path, value string, invalid func(path, problem string)) {
	if !strings.HasPrefix(value, "http://") && !strings.HasPrefix(value, "https://") {
		invalid(path, fmt.Sprintf("is %q, and must be an http or https URL", value))
	}
}

func (w *WandB) validate(invalid func(path, problem string)) {
	checkURL("tracking.wandb.baseURL", w.BaseURL, invalid)
	checkGiven("tracking.wandb.", map[string]string{"project": w.Project, "runName": w.RunName, "keyFile": w.KeyFile},
		invalid)
}
