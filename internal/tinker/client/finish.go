// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// with returns the request with the values of every session as defaults.
func (r SessionRequest) with(every SessionRequest) SessionRequest {
	if r.ProjectID == "" {
		r.ProjectID = every.ProjectID
	}
	if r.DisplayName == "" {
		r.DisplayName = every.DisplayName
	}
	r.Tags = slices.Concat(every.Tags, r.Tags)
	metadata := maps.Clone(every.UserMetadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	maps.Copy(metadata, r.UserMetadata)
	r.UserMetadata = metadata
	return r
}

// finishReason says how a session ended.
type finishReason struct {
	Type string `json:"type"`
}

// FinishSession tells the server that a session has succeeded and is over. The request is sent only once, since the
// session expires even without it.
func (c *Client) FinishSession(ctx context.Context, session string) error {
	req, err := postJSON("finish_session", "sessions/"+url.PathEscape(session)+"/finish", struct {
		Reason finishReason `json:"reason"`
	}{finishReason{"success"}})
	if err != nil {
		return err
	}
	if _, err := c.connect(ctx); err != nil {
		return err
	}
	_, err = c.exchange(ctx, req)
	return err
}

// consoleURL is the address of the console of hosted Tinker, and hostedDomains are the domains of its endpoint.
const consoleURL = "https://tinker.thinkingmachines.ai"

var hostedDomains = []string{"thinkingmachines.ai", "thinkingmachines.dev"}

// IsHosted reports whether an endpoint is hosted Tinker.
func IsHosted(baseURL string) bool {
	endpoint, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	host := endpoint.Hostname()
	return slices.ContainsFunc(hostedDomains, func(domain string) bool {
		return host == domain || strings.HasSuffix(host, "."+domain)
	})
}

// Console returns the address at which hosted Tinker shows a session to people; "" for a session at another endpoint.
func Console(baseURL, session string) string {
	if session == "" || !IsHosted(baseURL) {
		return ""
	}
	return consoleURL + "/sessions/" + url.PathEscape(session)
}
