// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracking defines the part of the run file that names the services that show a run's curves.
package tracking

import "github.com/tinker-operator/tinker-operator/internal/problem"

// Settings name the services; a nil service receives nothing.
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
	// Username for basic authentication, with the password in KeyFile; empty if KeyFile has a token.
	Username string `json:"username,omitempty"`
	// KeyFile is read before each connection; empty for a server without authentication.
	KeyFile string `json:"keyFile,omitempty"`
}

// TensorBoard makes the learner write event files to the artifacts.
type TensorBoard struct {
	// RunName is the folder of the files, and the name of the run in TensorBoard.
	RunName string `json:"runName"`
}

// WandB is Weights & Biases, or a server that speaks its HTTP interface.
type WandB struct {
	BaseURL string `json:"baseURL"`
	Project string `json:"project"`
	// Entity is the team or user that the project belongs to; empty for the default of the key's user.
	Entity  string   `json:"entity,omitempty"`
	RunName string   `json:"runName"`
	Tags    []string `json:"tags,omitempty"`
	// KeyFile has the API key, and is read before each connection. It does not exist while its Secret does not.
	KeyFile string `json:"keyFile"`
}

// Problem keeps a service from receiving the run's steps.
type Problem struct {
	// Service is the name of its field, such as wandb.
	Service string `json:"service"`
	// Reason is the code of the problem.
	Reason problem.Code `json:"reason"`
	// Message is for people and names the repair.
	Message string `json:"message"`
}
