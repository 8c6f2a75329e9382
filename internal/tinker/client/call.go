// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

const (
	apiPrefix      = "/api/v1/"
	defaultTimeout = time.Minute
	// maxBody bounds what is read of an answer.
	maxBody = 1 << 30
)

// call is a request that can be sent any number of times.
type call struct {
	// op names the operation in errors and events.
	op     string
	method string
	// path below /api/v1/, unescaped.
	path        string
	query       url.Values
	body        []byte
	contentType string
	encoding    string
	accept      string
	header      map[string]string
	// timeout of one exchange; 0 is a minute.
	timeout time.Duration
	// answers are statuses, other than 2xx, that are no errors.
	answers []int
	// idempotency is the same for all repeats.
	idempotency string
}

// reply is a complete answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) protobuf() bool {
	return strings.Contains(r.header.Get("Content-Type"), tinker.ContentProtobuf)
}

func get(op, path string, query url.Values) call {
	return call{op: op, method: http.MethodGet, path: path, query: query}
}

func postJSON(op, path string, body any) (call, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return call{}, &Error{Category: tinker.CategoryUser, Op: op, Err: fmt.Errorf("encoding body: %w", err)}
	}
	return call{op: op, method: http.MethodPost, path: path, body: encoded}, nil
}

func decodeJSON[T any](op string, r reply) (T, error) {
	var out T
	if err := json.Unmarshal(r.body, &out); err != nil {
		return out, protocolError(op, fmt.Errorf("decoding answer: %w", err))
	}
	return out, nil
}

// fetch sends the call until it is answered for good, and decodes the answer.
func fetch[T any](ctx context.Context, c *Client, ask call) (T, error) {
	reply, err := c.do(ctx, ask)
	if err != nil {
		var zero T
		return zero, err
	}
	return decodeJSON[T](ask.op, reply)
}

// post is fetch for a JSON body.
func post[T any](ctx context.Context, c *Client, op, path string, body any) (T, error) {
	ask, err := postJSON(op, path, body)
	if err != nil {
		var zero T
		return zero, err
	}
	return fetch[T](ctx, c, ask)
}

// do sends the call until it is answered for good or ctx ends.
func (c *Client) do(ctx context.Context, ask call) (reply, error) {
	if _, err := c.connect(ctx); err != nil {
		return reply{}, err
	}
	return c.persist(ctx, ask, c.exchange)
}

// persist repeats a call for as long as its errors are temporary and ctx lives. The error says whether any
// of the repeats may have reached the server.
func (c *Client) persist(ctx context.Context, ask call, send func(context.Context, call) (reply, error)) (reply, error) {
	ask.idempotency = rand.Text()
	wait := backoff{limit: maxDelay}
	if ctx.Err() != nil {
		return reply{}, canceled(ask.op, context.Cause(ctx))
	}
	var last *Error
	for {
		answer, err := send(ctx, ask)
		if last != nil && (err == nil || CategoryFrom(err) != last.Category) {
			c.observe(Event{Op: ask.op, Category: last.Category, Over: true})
		}
		if err == nil {
			return answer, nil
		}
		failed := asError(ask.op, err)
		failed.MayHaveRun = failed.MayHaveRun || (last != nil && last.MayHaveRun)
		if !failed.Temporary() {
			return reply{}, failed
		}
		delay := wait.delayFor(failed)
		c.report(failed, delay)
		if err := sleep(ctx, delay); err != nil {
			return reply{}, &Error{
				Category: tinker.CategoryCanceled, Op: ask.op, Status: failed.Status, Message: failed.Message,
				MayHaveRun: failed.MayHaveRun, Err: err,
			}
		}
		last = failed
	}
}

func (c *Client) report(failed *Error, delay time.Duration) {
	c.log.Debug("call is repeated", "op", failed.Op, "category", failed.Category, "status", failed.Status, "wait", delay)
	c.observe(Event{
		Op: failed.Op, Category: failed.Category, Status: failed.Status, Reason: failed.Message, Wait: delay,
	})
}

// send makes one exchange with the given credential.
func (c *Client) send(ctx context.Context, ask call, credential string) (reply, error) {
	timeout := ask.timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := c.request(limited, ask, credential)
	if err != nil {
		return reply{}, &Error{Category: tinker.CategoryUser, Op: ask.op, Err: err}
	}
	response, err := c.api.Do(request)
	if err != nil {
		return reply{}, unanswered(ctx, ask.op, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return reply{}, unanswered(ctx, ask.op, err)
	}
	if len(body) > maxBody {
		return reply{}, protocolError(ask.op, fmt.Errorf("answer is larger than %d bytes", maxBody))
	}
	answer := reply{status: response.StatusCode, header: response.Header, body: body}
	if answer.status/100 == 2 || slices.Contains(ask.answers, answer.status) {
		return answer, nil
	}
	return reply{}, refused(ask.op, answer)
}

func (c *Client) request(ctx context.Context, ask call, credential string) (*http.Request, error) {
	target := *c.base
	target.Path += apiPrefix + ask.path
	target.RawPath = ""
	target.RawQuery = ask.query.Encode()
	request, err := http.NewRequestWithContext(ctx, ask.method, target.String(), bytes.NewReader(ask.body))
	if err != nil {
		return nil, fmt.Errorf("making request: %w", err)
	}
	h := request.Header
	h.Set(tinker.HeaderAPIKey, credential)
	h.Set("User-Agent", c.userAgent)
	h.Set("Accept", orDefault(ask.accept, tinker.ContentJSON))
	if ask.method != http.MethodGet {
		h.Set("Content-Type", orDefault(ask.contentType, tinker.ContentJSON))
		h.Set("X-Idempotency-Key", "tinker-operator-"+ask.idempotency)
	}
	if ask.encoding != "" {
		h.Set("Content-Encoding", ask.encoding)
	}
	for name, value := range ask.header {
		h.Set(name, value)
	}
	return request, nil
}

func orDefault(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// unanswered is the error of an exchange that broke off: by the caller's context, or by the network or the
// exchange's own time limit.
func unanswered(ctx context.Context, op string, err error) *Error {
	if ctx.Err() != nil {
		return &Error{Category: tinker.CategoryCanceled, Op: op, MayHaveRun: true, Err: context.Cause(ctx)}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return &Error{Category: tinker.CategoryUnreachable, Op: op, MayHaveRun: true, Err: err}
}
