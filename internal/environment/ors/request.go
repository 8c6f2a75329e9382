// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package ors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// maxTries bounds how often a request is sent if it fails in the network or at a proxy. A server that is being
// started, or that has no capacity, is asked until the context ends.
const maxTries = 4

// request is a request of the protocol.
type request struct {
	method, path string
	// session is the ID of the session, or empty.
	session string
	// body is encoded as JSON unless it is nil.
	body any
	// secrets sends the header with the secrets.
	secrets bool
	// stream asks for a stream of events.
	stream bool
}

// startingError is the answer of a server that is still being started, so that nothing has run.
type startingError struct{ error }

// Unwrap returns the answer.
func (e *startingError) Unwrap() error { return e.error }

// repairOf returns the repair for an answer with a status, or an empty text.
func (o *Options) repairOf(status int) string {
	const key = "the key that ors.apiKeySecretKeyRef names"
	switch refused := status == http.StatusUnauthorized || status == http.StatusForbidden; {
	case refused && o.APIKey == "":
		return "ors.apiKeySecretKeyRef is not set: give the Secret with the server's key"
	case status == http.StatusForbidden && o.Deployment != "":
		return fmt.Sprintf("%s may not use %q: give the key of an account that may, or change ors.name", key, o.Deployment)
	case refused:
		return "check " + key
	case status == http.StatusTooManyRequests:
		return "the server has no capacity; lower ors.maxSessions or rollouts.concurrency, or add capacity"
	}
	return ""
}

// newHTTPClient returns a client for thousands of sessions.
func newHTTPClient(options Options) *http.Client {
	client := &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 4096,
		IdleConnTimeout:     50 * time.Second, // The Python servers close idle connections after a minute.
		TLSHandshakeTimeout: 10 * time.Second,
	}}
	if options.HTTP != nil {
		copied := *options.HTTP
		client = &copied
	}
	client.CheckRedirect = options.checkRedirect
	client.Timeout = cmp.Or(client.Timeout, max(options.CreateTimeout, options.CallTimeout)+requestGrace)
	return client
}

// checkRedirect follows redirects that keep the request, to the same host only, and not from https to http, since the
// headers of a request carry keys and secrets.
func (o *Options) checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	isSafe := next.URL.Host == first.URL.Host && (next.URL.Scheme == first.URL.Scheme || next.URL.Scheme == "https")
	if isSafe && next.Method == first.Method && len(via) <= 3 {
		return nil
	}
	field := "ors.url"
	if o.Deployment != "" {
		field = "ors.baseURL"
	}
	const reason = "redirects are followed only to the same host, without loss of method, body or encryption"
	return &replyError{fmt.Errorf("the server redirects to %s, which is not followed (%s; check %s)", next.URL.Redacted(),
		reason, field)}
}

// send sends a request once. The caller closes the body of the response. A status other than success is an
// *httpstatus.Error.
func (b *Backend) send(ctx context.Context, r request) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", r.method, r.path, err)
		}
		body = bytes.NewReader(encoded)
	}
	httpRequest, err := http.NewRequestWithContext(ctx, r.method, strings.TrimSuffix(b.options.BaseURL, "/")+r.path, body)
	if err != nil {
		return nil, fmt.Errorf("making %s %s: %w", r.method, r.path, err)
	}
	b.setHeaders(httpRequest.Header, r)
	response, err := b.http.Do(httpRequest)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, withoutURL(err))
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, b.refusalOf(httpRequest, response)
}

func (b *Backend) setHeaders(header http.Header, r request) {
	if r.body != nil {
		header.Set("Content-Type", "application/json")
	}
	if r.stream {
		header.Set("Accept", "text/event-stream")
	}
	for name, value := range map[string]string{
		headerAPIKey: b.options.APIKey, headerDeployment: b.options.Deployment, headerSession: r.session,
	} {
		if value != "" {
			header.Set(name, value)
		}
	}
	if r.secrets && b.secrets.header != "" {
		header.Set(headerSecrets, b.secrets.header)
	}
}

// withoutURL drops the method and the URL that net/http puts before an error.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// refusalOf reads the answer with which a server refuses a request.
func (b *Backend) refusalOf(request *http.Request, response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4096)) // An incomplete answer says enough.
	credentials := []string{b.options.APIKey, b.secrets.header}
	for _, secret := range b.options.Secrets {
		credentials = append(credentials, secret.Value)
	}
	refused := httpstatus.New(request, response, detailOf(text), credentials...)
	refused.Advice = b.options.repairOf(response.StatusCode)
	if refused.Status == http.StatusServiceUnavailable && response.Header.Get(headerState) == "starting" {
		return &startingError{refused}
	}
	return refused
}

// detailOf returns the description of the error in an answer, in the forms of FastAPI and of other servers.
func detailOf(text []byte) string {
	var reply struct {
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(text, &reply) != nil || len(reply.Detail) == 0 {
		return string(text)
	}
	var detail string
	if json.Unmarshal(reply.Detail, &detail) == nil {
		return detail
	}
	return string(reply.Detail)
}

// do sends a request, repeats it after transient failures, and decodes the JSON of the reply into out unless out is
// nil. It is for requests that may reach the server twice.
func (b *Backend) do(ctx context.Context, r request, out any) error {
	return b.repeat(ctx, isTransient, func() error {
		response, err := b.send(ctx, r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		return decode(r, response.Body, out)
	})
}

// decode reads the JSON of a reply.
func decode(r request, body io.Reader, out any) error {
	text, err := io.ReadAll(io.LimitReader(body, maxReply+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading the reply to %s %s: %w", r.method, r.path, err)
	case len(text) > maxReply:
		return fmt.Errorf("reading the reply to %s %s: %w", r.method, r.path, errTooLarge)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return &replyError{fmt.Errorf("decoding the reply to %s %s: %w", r.method, r.path, err)}
	}
	return nil
}

// errTooLarge is the error of a reply that is longer than maxReply.
var errTooLarge = fmt.Errorf("the reply is longer than %d bytes", maxReply)

// replyError is a reply that arrived completely but cannot be used.
type replyError struct{ err error }

// Error implements error.
func (e *replyError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *replyError) Unwrap() error { return e.err }

// repeat calls try until it succeeds, fails permanently, or has failed maxTries times. Tries that found no capacity, or
// a server that is being started, do not count: they continue until the context ends.
func (b *Backend) repeat(ctx context.Context, mayRepeat func(error) bool, try func() error) error {
	pauses, failures := wait.Pauses{Backoff: b.pace.retry}, 0
	var last error
	for {
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && last == nil:
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w; the last answer was: %w", context.Cause(ctx), last)
		}
		last = err
		waits, after := isWaiting(err)
		if !waits {
			if failures++; failures == maxTries || !mayRepeat(err) {
				return err
			}
		}
		if wait.Sleep(ctx, max(after, pauses.Next())) != nil {
			return fmt.Errorf("%w; the last answer was: %w", context.Cause(ctx), err)
		}
	}
}

// isWaiting reports whether the server did nothing, because it has no capacity or is being started, and how long it
// asks to wait.
func isWaiting(err error) (waits bool, after time.Duration) {
	refused, ok := errors.AsType[*httpstatus.Error](err)
	if !ok {
		return false, 0
	}
	asked, _ := wait.RetryAfter(refused.Header)
	_, starting := errors.AsType[*startingError](err)
	return refused.Status == http.StatusTooManyRequests || starting, min(asked, 30*time.Second)
}

// isTransient reports whether a request may succeed when it is sent again: the connection failed, or a proxy could not
// reach the server.
func isTransient(err error) bool {
	if status, ok := errors.AsType[*httpstatus.Error](err); ok {
		return status.Status == http.StatusBadGateway || status.Status == http.StatusServiceUnavailable ||
			status.Status == http.StatusGatewayTimeout
	}
	var reply *replyError
	return !errors.As(err, &reply) && !errors.Is(err, errTooLarge)
}
