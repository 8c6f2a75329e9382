// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"time"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
)

// defaultParseErrors is the number of consecutive replies that may break the model's format if the definition does
// not set it.
const defaultParseErrors = 2

// newORS builds an environment that a server runs. A missing Secret is a fault, and not a defect of the definition,
// since it may still be created.
func (b Builder) newORS(definition contract.ORS, interaction *settings.Interaction) (environment.Environment, error) {
	options := ors.Options{
		BaseURL: definition.URLFor(b.SharedServers), Environment: definition.Environment, Deployment: definition.Deployment(),
		Toolset: definition.Toolset, Delivery: definition.SecretDelivery, MaxSessions: int(definition.MaxSessions),
		CreateTimeout: time.Duration(definition.Timeouts.CreateSeconds) * time.Second,
		CallTimeout:   time.Duration(definition.Timeouts.CallSeconds) * time.Second,
		AnswerTool:    definition.AnswerTool,
		Logger:        b.Logger,
	}
	var err error
	if definition.APIKeySecretKeyRef != nil {
		if options.APIKey, err = b.secret(*definition.APIKeySecretKeyRef); err != nil {
			return nil, err
		}
	}
	for _, s := range definition.Secrets {
		secret := ors.Secret{Name: s.Name, AllowedHosts: s.AllowedHosts}
		if secret.Value, err = b.secret(s.SecretKeyRef); err != nil {
			return nil, err
		}
		options.Secrets = append(options.Secrets, secret)
	}
	backend, err := ors.New(options)
	if err != nil {
		return nil, err
	}
	use := tooluse.Options{MaxParseErrors: defaultParseErrors}
	if interaction != nil && interaction.ToolUse != nil {
		use = toolUseOptions(*interaction.ToolUse)
	}
	return tooluse.New(backend, use)
}

// secret returns the value of a Secret's key.
func (b Builder) secret(key ref.SecretKey) (string, error) {
	if b.Secret == nil {
		return "", errors.New("this program can read no Secrets")
	}
	value, err := b.Secret(key)
	if err != nil {
		return "", &environment.Fault{Err: fmt.Errorf("reading key %q of Secret %q: %w", key.Key, key.Name, err)}
	}
	return value, nil
}
