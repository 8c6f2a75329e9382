// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"fmt"
	"net/url"
	"strings"
)

// HostedURL is the address of the hosted service.
const HostedURL = "https://openreward.ai"

// Hosts are the two addresses of a hosted service.
type Hosts struct {
	// API is the address of its REST interface, which takes uploads.
	API string
	// Sessions is the address of its environment servers.
	Sessions string
}

// HostsOf returns the addresses that belong to the base URL of a hosted service: the same with api. and sessions. in
// front of the host.
func HostsOf(baseURL string) (Hosts, error) {
	if err := checkURL(baseURL); err != nil {
		return Hosts{}, err
	}
	parsed, err := url.Parse(baseURL)
	if err != nil {
		return Hosts{}, err
	}
	return Hosts{API: withSubdomain(*parsed, "api"), Sessions: withSubdomain(*parsed, "sessions")}, nil
}

func withSubdomain(base url.URL, name string) string {
	base.Host = name + "." + base.Host
	return strings.TrimSuffix(base.String(), "/")
}

// Hosted is a name of the hosted service.
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

// checkURL fails if a base URL cannot be used.
func checkURL(text string) error {
	parsed, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("reading the server's URL: %w", err)
	case parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "":
		return fmt.Errorf("the server's URL %q must begin with http:// or https://, followed by a host", text)
	case parsed.RawQuery != "" || parsed.Fragment != "" || parsed.User != nil:
		return fmt.Errorf("the server's URL must have neither a user nor a query nor a fragment")
	}
	return nil
}
