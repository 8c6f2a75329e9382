// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

// Secret is a value that an environment needs, such as the key of a judge.
type Secret struct {
	Name, Value string
	// AllowedHosts are the hosts that the hosted service lets the value reach.
	AllowedHosts []string
}

// deliveredSecrets are secrets as requests carry them.
type deliveredSecrets struct {
	// header is the value of X-Secrets, or empty.
	header string
	// body is the member secrets of create, or nil.
	body map[string]string
	// optional says that the body may be left out.
	optional bool
}

// deliver encodes the secrets. Servers of the package openreward read them from a header, and servers of ors-sdk from
// the body of create. Where both are sent, the body is left out once the server refuses it. If no delivery is set,
// the secrets go into the header.
func deliver(secrets []Secret, delivery settings.SecretDelivery) (deliveredSecrets, error) {
	if len(secrets) == 0 {
		return deliveredSecrets{}, nil
	}
	switch delivery {
	case "", settings.DeliverHeader:
		header, err := secretsHeader(secrets)
		return deliveredSecrets{header: header}, err
	case settings.DeliverBody:
		return deliveredSecrets{body: secretsBody(secrets)}, nil
	case settings.DeliverBoth:
		header, err := secretsHeader(secrets)
		return deliveredSecrets{header: header, body: secretsBody(secrets), optional: true}, err
	default:
		return deliveredSecrets{}, fmt.Errorf("secretDelivery is %q, it must be Header, Body or Both", delivery)
	}
}

// secretsHeader is base64 of {NAME: {value, allowed_domains}}.
func secretsHeader(secrets []Secret) (string, error) {
	type value struct {
		Value          string   `json:"value"`
		AllowedDomains []string `json:"allowed_domains,omitempty"`
	}
	values := make(map[string]value, len(secrets))
	for _, secret := range secrets {
		values[secret.Name] = value{Value: secret.Value, AllowedDomains: secret.AllowedHosts}
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("encoding secrets: %w", err)
	}
	return base64.StdEncoding.EncodeToString(encoded), nil
}

func secretsBody(secrets []Secret) map[string]string {
	values := make(map[string]string, len(secrets))
	for _, secret := range secrets {
		values[secret.Name] = secret.Value
	}
	return values
}
