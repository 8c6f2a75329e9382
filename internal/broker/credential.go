// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// outage is why the server does not answer.
type outage struct {
	// code is EndpointUnreachable, or the code of a server that is not the Tinker API or with which the broker does not
	// agree on TLS.
	code    problem.Code
	message string
}

func withoutURL(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return err.Error()
}

// unconnected answers for a request that was not sent, because the server gave no credential.
func (b *Broker) unconnected(err error) error {
	if client.CategoryFrom(err) == tinker.CategoryUnauthorized {
		return b.keyRefused(err.Error())
	}
	found := outage{code: problem.EndpointUnreachable, message: cmp.Or(client.EvidenceOf(err), err.Error())}
	if code := client.FailsOf(err); problem.IsKnown(code) {
		found.code = code
	}
	b.unreachable.Store(&found)
	return &refusal{status: http.StatusBadGateway, code: found.code, retryAfter: soonSeconds,
		detail: "the broker cannot connect to the Tinker endpoint: " + found.message}
}

// checkKey returns an error if the server refuses the API key. This is no fault of the run, which goes on once the
// key is repaired.
func (b *Broker) checkKey(resp *http.Response, credential string) error {
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		settle(&b.refused)
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return b.keyRefused(redact(string(text), credential, b.inForce.Load().APIKey))
}

// settle notes that a failure is over.
func settle[T any](failure *atomic.Pointer[T]) {
	if failure.Load() != nil {
		failure.Store(nil)
	}
}

func (b *Broker) keyRefused(message string) error {
	message = cmp.Or(strings.TrimSpace(message), "no message")
	if earlier := b.refused.Swap(&message); earlier == nil {
		b.config.Logger.Error("the endpoint refuses the API key", "endpoint", b.config.Endpoint, "message", message)
	}
	return &refusal{
		status: http.StatusServiceUnavailable, code: problem.EndpointKeyRefused, retryAfter: refusedSeconds,
		detail: "the Tinker endpoint refuses the API key of TinkerEndpoint " + b.config.Endpoint + ": " + message,
	}
}

// refusedSeconds is the Retry-After of a request for which the server refused the key.
const refusedSeconds = 10

func redact(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}
