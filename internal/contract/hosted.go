// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"net/url"
	"strings"
)

// HostedURL is the address of the service OpenReward, which hosts environments.
const HostedURL = "https://openreward.ai"

// Hosts are the two addresses of a service that hosts environments.
type Hosts struct {
	// API is the address of its REST interface, which takes uploads.
	API string
	// Sessions is the address of its environment servers.
	Sessions string
}

// HostsOf returns the addresses that belong to the base URL of a hosting service: the same with api. and sessions. in
// front of the host.
func HostsOf(baseURL string) (Hosts, error) {
	parsed, err := url.Parse(baseURL)
	if err != nil {
		return Hosts{}, fmt.Errorf("reading the address of the hosting service: %w", err)
	}
	if parsed.Host == "" {
		return Hosts{}, fmt.Errorf("reading the address of the hosting service: %q has no host; it must begin with "+
			"https:// or http://", baseURL)
	}
	return Hosts{API: withSubdomain(*parsed, "api"), Sessions: withSubdomain(*parsed, "sessions")}, nil
}

func withSubdomain(base url.URL, name string) string {
	base.Host = name + "." + base.Host
	return strings.TrimSuffix(base.String(), "/")
}

// Hosted is the name of an environment at the hosting service.
type Hosted struct {
	// Deployment is OWNER/NAME.
	Deployment string
	// Variant is one of the environments of the deployment; empty for its first.
	Variant string
}

// ParseHosted reads a name of the form OWNER/NAME or OWNER/NAME@VARIANT.
func ParseHosted(name string) (Hosted, error) {
	deployment, variant, varied := strings.Cut(name, "@")
	owner, environment, ok := strings.Cut(deployment, "/")
	if !ok || owner == "" || environment == "" || strings.Contains(environment, "/") || varied && variant == "" {
		return Hosted{}, fmt.Errorf("the name %q is not of the form OWNER/NAME or OWNER/NAME@VARIANT", name)
	}
	return Hosted{Deployment: deployment, Variant: variant}, nil
}
