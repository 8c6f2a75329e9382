// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// request is an HTTP request that can be sent any number of times.
type request struct {
	// op names the operation in errors and events.
	op     string
	method string
	// path is the unescaped path below /api/v1/.
	path        string
	query       url.Values
	body        []byte
	contentType string
	encoding    string
	accept      string
	header      map[string]string
	// timeout limits one exchange; 0 means a minute.
	timeout time.Duration
	// longPoll says that a server may hold the request for longer than timeout, which then counts as 408.
	longPoll bool
	// once says that errors of the server are final, so that the caller can try another encoding.
	once bool
	// unrepeatable says that the server would execute a repeat once more, so that an attempt whose outcome is not known
	// is final.
	unrepeatable bool
	// indivisible says that the body cannot be sent in parts: the call waits until the server accepts its size.
	indivisible bool
	// part says that the body is a part of one whose size was rejected.
	part bool
	// dispatches limits the bytes of the bodies that are sent at the same time; nil means no limit.
	dispatches *byteBudget
	// charge is the cost of the operation; nil for an operation without cost.
	charge *charge
	// accepted lists statuses, other than 2xx, that are not errors.
	accepted []int
	// check returns an error if a successful response is not an answer to the request; nil accepts every response.
	check func(response) error
}

// response is a complete HTTP response.
type response struct {
	status int
	header http.Header
	body   []byte
}

func (r response) isProtobuf() bool {
	return strings.Contains(r.header.Get("Content-Type"), tinker.ContentProtobuf)
}

func get(op, path string, query url.Values) request {
	return request{op: op, method: http.MethodGet, path: path, query: query}
}

func postJSON(op, path string, body any) (request, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return request{}, &Error{Category: tinker.CategoryUser, Op: op, Err: fmt.Errorf("encoding body: %w", err)}
	}
	return request{op: op, method: http.MethodPost, path: path, body: encoded}, nil
}

func decodeJSON[T any](op string, r response) (T, error) {
	var out T
	if err := json.Unmarshal(r.body, &out); err != nil {
		return out, protocolError(op, fmt.Errorf("decoding response: %w", err))
	}
	return out, nil
}
