// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	// requestTimeout bounds one request.
	requestTimeout = time.Minute
	// maxAnswerBytes bounds the bytes that are read of an answer.
	maxAnswerBytes = 8 << 20
	// maxQuotedBytes bounds the quotation of an answer in a problem.
	maxQuotedBytes = 160
)

// service sends JSON to a service.
type service struct {
	// field is the path of the service in the spec, and keyField the path of its key.
	field, keyField string
	baseURL         string
	client          *http.Client
	// authorize adds the key to a request.
	authorize func(*http.Request)
}

func newService(field, baseURL string) service {
	return service{
		field: field, keyField: field + ".apiKeySecretKeyRef", baseURL: strings.TrimRight(baseURL, "/"),
		client: &http.Client{
			Timeout:       requestTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// readKey reads a key from a file, which Kubernetes replaces when the Secret changes.
func (s *service) readKey(file string) (string, error) {
	data, err := os.ReadFile(file)
	key := strings.TrimSpace(string(data))
	if err != nil || key == "" {
		return "", &serviceError{code: problem.KeyMissing, message: "The Secret or the key in it that " + s.keyField +
			" names does not exist or is empty: create it"}
	}
	return key, nil
}

// call posts a request, and decodes the answer into answer unless that is nil. A failure of the service is a
// *serviceError.
func (s *service) call(ctx context.Context, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding request: %w", err)
	}
	return s.send(ctx, http.MethodPost, path, bytes.NewReader(body), answer)
}

// get is like call, but for a request that only reads.
func (s *service) get(ctx context.Context, path string, query url.Values, answer any) error {
	return s.send(ctx, http.MethodGet, path+"?"+query.Encode(), nil, answer)
}

func (s *service) send(ctx context.Context, method, path string, body io.Reader, answer any) error {
	r, err := http.NewRequestWithContext(ctx, method, s.baseURL+path, body)
	if err != nil {
		return &serviceError{code: problem.ServiceNotFound, message: s.field + ".baseURL is invalid: correct it"}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	s.authorize(r)
	response, err := s.client.Do(r)
	if err != nil {
		return &serviceError{code: problem.ServiceUnreachable, unknown: !wait.IsDialError(err), message: fmt.Sprintf(
			"%s cannot be reached (%v): check %s.baseURL and the network",
			r.URL.Host, cause(err), s.field)}
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return &serviceError{code: problem.ServiceUnreachable, unknown: true,
			message: fmt.Sprintf("%s breaks off its answer (%v): it is tried again", r.URL.Host, cause(err))}
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		p := refusal(s.field, s.keyField, r.URL.Host, response.StatusCode, quote(data))
		p.retryAfter, _ = wait.RetryAfter(response.Header)
		p.status = response.StatusCode
		p.unknown = p.status >= http.StatusInternalServerError && p.status != http.StatusServiceUnavailable
		return p
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return &serviceError{code: problem.ServiceNotFound,
			message: fmt.Sprintf("%s does not answer with JSON (%s): correct %s.baseURL",
				r.URL.Host, quote(data), s.field)}
	}
	return nil
}

// cause returns an error of net/http without the URL, which the message names already.
func cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// quote returns the beginning of an answer in one line.
func quote(data []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(data), "")), " ")
	if len(text) > maxQuotedBytes {
		text = strings.ToValidUTF8(text[:maxQuotedBytes], "") + "…"
	}
	return text
}
