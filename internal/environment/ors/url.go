// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"fmt"
	"net/url"
)

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
