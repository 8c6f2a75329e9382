// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tinker-operator/tinker-operator/internal/httpstatus"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	apiPrefix      = "/api/v1/"
	defaultTimeout = time.Minute
	// maxBody limits how much of a response is read.
	maxBody = 1 << 30
)

// caller sends the requests of a Client: it connects, authenticates and retries.
type caller struct {
	base        *url.URL
	userAgent   string
	http        *http.Client
	log         *slog.Logger
	observe     func(Event)
	spread      func() float64
	credentials *credentials
	meter       *Meter // nil if the cost is not counted
	// connecting is held while the configuration is fetched.
	connecting *semaphore.Weighted
	config     atomic.Pointer[serverConfig]
	// downloads limits the bytes of large results that are fetched at the same time.
	downloads byteBudget
	// dispatches limits the bytes of asample bodies that are sent at the same time, and samples the unfinished samples.
	dispatches, samples byteBudget
	// executesRepeats says that the server does not recognise the repeats of a submit.
	executesRepeats atomic.Bool
	// json says that training data are sent in JSON.
	json atomic.Bool
	// bodies knows which sizes of bodies the server accepts.
	bodies bodySizes
}

// fetch sends the request until it succeeds or fails permanently, and decodes the response.
func fetch[T any](ctx context.Context, c *caller, req request) (T, error) {
	return fetchValid(ctx, c, req, func(T) error { return nil })
}

// fetchValid is like fetch, but treats an invalid response as no response.
func fetchValid[T any](ctx context.Context, c *caller, req request, validate func(T) error) (T, error) {
	var value T
	req.check = func(resp response) error {
		var err error
		if value, err = decode[T](c, req, resp); err != nil {
			return err
		}
		if err := checkKeys[T](req.op, resp.body); err != nil {
			return err
		}
		if err := validate(value); err != nil {
			return protocolError(req.op, err)
		}
		return nil
	}
	if _, err := c.do(ctx, req); err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// decode decodes a response. Its error names the request, and quotes a response that is not JSON, such as a page of a
// proxy.
func decode[T any](c *caller, req request, resp response) (T, error) {
	value, err := decodeJSON[T](req.op, resp)
	if err == nil {
		return value, nil
	}
	return value, c.identify(quoted(asError(req.op, err), resp), req)
}

// quoted describes the response in the error of a response that is neither JSON nor protobuf.
func quoted(e *Error, resp response) *Error {
	if !resp.isProtobuf() && !json.Valid(resp.body) {
		e.Message = cmp.Or(truncate(strings.TrimSpace(string(resp.body))), "an empty body")
	}
	return e
}

// post calls fetchValid with a JSON body.
func post[T any](ctx context.Context, c *caller, op, path string, body any, validate func(T) error) (T, error) {
	req, err := postJSON(op, path, body)
	if err != nil {
		var zero T
		return zero, err
	}
	return fetchValid(ctx, c, req, validate)
}

// do sends the request until it succeeds, fails permanently or ctx ends.
func (c *caller) do(ctx context.Context, req request) (response, error) {
	if _, err := c.connect(ctx); err != nil {
		return response{}, err
	}
	return c.retry(ctx, req, c.exchange)
}

// mayRepeat reports whether the request may be sent again after an error, whatever its category.
func (r request) mayRepeat(err error) bool {
	if r.once && mayBeEncoding(err) {
		return false
	}
	return !r.unrepeatable || !mayBeExecuted(err)
}

// sender sends a request once, or until it has a response.
type sender func(context.Context, request) (response, error)

// retry repeats a request until its error is not temporary or ctx ends. The error it returns says whether any
// of the attempts may have reached the server.
func (c *caller) retry(ctx context.Context, req request, send sender) (response, error) {
	pause := newBackoff(maxDelay, c.spread)
	var doubted doubts
	var rejections int
	if ctx.Err() != nil {
		return response{}, canceled(req.op, context.Cause(ctx))
	}
	var told *Error // the problem that people were told of, and that is not over
	mayHaveRun := false
	for {
		resp, err := send(ctx, req)
		c.bodies.record(req, err)
		again, quiet := c.isRepeated(req, err, &doubted, &rejections)
		if told != nil && (!again || quiet || !isSameFailure(told, err)) {
			c.notify(ctx, Event{Op: req.op, Category: told.Category, Code: told.Code, Over: true})
			told = nil
		}
		if err == nil {
			return resp, nil
		}
		failed := asError(req.op, err)
		mayHaveRun = mayHaveRun || failed.MayHaveRun
		failed.MayHaveRun = mayHaveRun
		if !again {
			return response{}, failed
		}
		delay := pause.delayAfter(failed)
		if !quiet {
			c.report(ctx, failed, delay)
			told = failed
		}
		if err := wait.Sleep(ctx, delay); err != nil {
			return response{}, &Error{
				Category: tinker.CategoryCanceled, Op: req.op, Method: failed.Method, Path: failed.Path, Code: failed.Code,
				Status: failed.Status, Message: failed.Message, MayHaveRun: failed.MayHaveRun, Err: err,
			}
		}
	}
}

// isRepeated reports whether a request is sent again after an error, and whether this is kept quiet, because a body
// that can be divided is soon sent in parts. It counts the rejections for the size of the body.
func (c *caller) isRepeated(req request, err error, doubted *doubts, rejections *int) (again, quiet bool) {
	if err == nil {
		return false, false
	}
	if isTooLarge(err) {
		*rejections++
	}
	quiet = isDoubted(req, err, *rejections)
	again = quiet || doubted.isRepeated(req, asError(req.op, err)) || c.bodies.isAwaited(req, err)
	return again && req.mayRepeat(err), quiet
}

// isSameFailure reports whether an attempt failed with the same category and code as the attempt before.
func isSameFailure(last *Error, err error) bool {
	failed := asError(last.Op, err)
	return failed.Category == last.Category && failed.Code == last.Code
}

func (c *caller) report(ctx context.Context, failed *Error, delay time.Duration) {
	c.log.Debug("retrying a call", "op", failed.Op, "category", failed.Category, "status", failed.Status, "wait", delay)
	c.notify(ctx, Event{
		Op: failed.Op, Category: failed.Category, Code: failed.Code, Method: failed.Method, Path: failed.Path,
		Status: failed.Status, Reason: failed.reason(), Wait: delay,
		Unanswered: failed.Path != c.pathOf(pollRequest) && mayBeExecuted(failed),
	})
}

// send makes one exchange with the given credential. Its errors name the request.
func (c *caller) send(ctx context.Context, req request, credential string) (response, error) {
	resp, err := c.sendOnce(ctx, req, credential)
	if err == nil && req.check != nil {
		err = req.check(resp)
	}
	if err == nil {
		return resp, nil
	}
	failed := c.identify(asError(req.op, err), req)
	failed.Message = httpstatus.Redact(failed.Message, credential)
	return response{}, failed
}

// identify adds the failed request to an error, and removes secrets from the server's message.
func (c *caller) identify(failed *Error, req request) *Error {
	if failed.Method == "" && failed.Category != tinker.CategoryCanceled {
		failed.Method, failed.Path = req.method, c.pathOf(req)
	}
	failed.Message = c.redacted(failed.Message)
	return failed
}

// redacted removes secrets from a server's message: the key and the JWT, and texts that may be tokens or prompts.
func (c *caller) redacted(text string) string {
	secrets := []string{c.credentials.key}
	if token := c.credentials.token.Load(); token != nil {
		secrets = append(secrets, token.jwt)
	}
	return httpstatus.Redact(text, secrets...)
}

// pathOf returns the path of a request on the server, with the prefix of the base URL.
func (c *caller) pathOf(req request) string { return c.base.Path + apiPrefix + req.path }

func (c *caller) sendOnce(ctx context.Context, req request, credential string) (response, error) {
	if req.dispatches != nil {
		bytes := int64(len(req.body))
		if err := req.dispatches.Reserve(ctx, bytes); err != nil {
			return response{}, canceled(req.op, err)
		}
		defer req.dispatches.Add(bytes)
	}
	timeout := req.timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	httpRequest, err := c.httpRequest(limited, req, credential)
	if err != nil {
		return response{}, &Error{Category: tinker.CategoryUser, Op: req.op, Err: err}
	}
	httpResponse, err := c.http.Do(httpRequest)
	if err != nil && req.longPoll && limited.Err() != nil && ctx.Err() == nil {
		return response{status: http.StatusRequestTimeout}, nil
	}
	if err != nil {
		return response{}, unreachable(ctx, req.op, err)
	}
	defer httpResponse.Body.Close()
	body, err := io.ReadAll(io.LimitReader(httpResponse.Body, maxBody+1))
	if err != nil {
		return response{}, unreachable(ctx, req.op, err)
	}
	if len(body) > maxBody {
		return response{}, protocolError(req.op, fmt.Errorf("response is larger than %d bytes", maxBody))
	}
	resp := response{status: httpResponse.StatusCode, header: httpResponse.Header, body: body}
	if resp.status/100 == 2 || slices.Contains(req.accepted, resp.status) {
		return resp, nil
	}
	return response{}, statusError(req.op, resp)
}

func (c *caller) httpRequest(ctx context.Context, req request, credential string) (*http.Request, error) {
	out, err := http.NewRequestWithContext(ctx, req.method, "", bytes.NewReader(req.body))
	if err != nil {
		return nil, fmt.Errorf("making request: %w", err)
	}
	target := *c.base
	target.Path, target.RawPath, target.RawQuery = c.pathOf(req), "", req.query.Encode()
	out.URL, out.Host = &target, target.Host
	// An idempotency key must not be among the headers: with one, the transport repeats a POST or DELETE by itself.
	h := make(http.Header, 5+len(req.header))
	h.Set(tinker.HeaderAPIKey, credential)
	h.Set("User-Agent", c.userAgent)
	h.Set("Accept", cmp.Or(req.accept, tinker.ContentJSON))
	if req.method != http.MethodGet {
		h.Set("Content-Type", cmp.Or(req.contentType, tinker.ContentJSON))
	}
	if req.encoding != "" {
		h.Set("Content-Encoding", req.encoding)
	}
	for name, value := range req.header {
		h.Set(name, value)
	}
	out.Header = h
	return out, nil
}

// unreachable returns the error of an exchange that was interrupted by the caller's context, by the network or
// by the time limit of the exchange.
func unreachable(ctx context.Context, op string, err error) *Error {
	if ctx.Err() != nil {
		return &Error{Category: tinker.CategoryCanceled, Op: op, MayHaveRun: true, Err: context.Cause(ctx)}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return &Error{Category: tinker.CategoryUnreachable, Code: transport.CodeOf(err), Op: op, MayHaveRun: true, Err: err}
}
