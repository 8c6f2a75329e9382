// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import "net/http"

// Category is the kind of an error.
type Category string

// The categories. User, Server and Unknown are also the categories of failed results.
const (
	// CategoryUser means that the request will fail again: 400, 422, or a result that failed because of its input.
	CategoryUser Category = "user"
	// CategoryTooLarge is 413: the request is larger than the server, or a proxy in front of it, accepts.
	CategoryTooLarge Category = "too_large"
	// CategoryServer means that the server failed: 5xx, or a result that failed because of the server.
	CategoryServer Category = "server"
	// CategoryUnknown is a result that failed without a reason.
	CategoryUnknown Category = "unknown"
	// CategoryUnauthorized means that the server rejected the key: 401 or 403.
	CategoryUnauthorized Category = "unauthorized"
	// CategoryPayment means that the account has no credit: 402.
	CategoryPayment Category = "payment"
	// CategoryNotFound is 404. For an operation of a model it means that the server has lost the model.
	CategoryNotFound Category = "not_found"
	// CategoryUnsupported is 405 and 501: the server does not have the endpoint.
	CategoryUnsupported Category = "unsupported"
	// CategoryTimeout is 408: the result is not available yet.
	CategoryTimeout Category = "timeout"
	// CategoryConflict is 409.
	CategoryConflict Category = "conflict"
	// CategoryExists is a save under a name that is in use. The caller must look up whose save that was.
	CategoryExists Category = "exists"
	// CategoryFutureLost is 410: the result is lost.
	CategoryFutureLost Category = "promise_lost"
	// CategoryThrottled is 429.
	CategoryThrottled Category = "throttled"
	// CategoryUnreachable is a call without a response.
	CategoryUnreachable Category = "unreachable"
	// CategoryProtocol is a response that violates the API.
	CategoryProtocol Category = "protocol"
	// CategoryNotTinker means that the server does not speak the Tinker API, or that its certificate is not accepted.
	// Only the first request of a client fails with it.
	CategoryNotTinker Category = "not_tinker"
	// CategoryCanceled is a call whose context ended.
	CategoryCanceled Category = "canceled"
	// CategoryPaused is a result that waits in a paused queue. Only events have it.
	CategoryPaused Category = "paused"
)

// statuses maps HTTP statuses and categories. A server uses the first status of a category, and a client the first
// category of a status.
var statuses = []struct {
	category Category
	status   int
}{
	{CategoryUser, http.StatusBadRequest},
	{CategoryUser, http.StatusUnprocessableEntity},
	{CategoryTooLarge, http.StatusRequestEntityTooLarge},
	{CategoryUnauthorized, http.StatusUnauthorized},
	{CategoryUnauthorized, http.StatusForbidden},
	{CategoryPayment, http.StatusPaymentRequired},
	{CategoryNotFound, http.StatusNotFound},
	{CategoryUnsupported, http.StatusMethodNotAllowed},
	{CategoryTimeout, http.StatusRequestTimeout},
	{CategoryConflict, http.StatusConflict},
	{CategoryExists, http.StatusConflict},
	{CategoryFutureLost, http.StatusGone},
	{CategoryThrottled, http.StatusTooManyRequests},
	{CategoryServer, http.StatusInternalServerError},
	{CategoryUnsupported, http.StatusNotImplemented},
}

// CategoryOf returns the category of an HTTP status. Other statuses from 500 up are CategoryServer, others from 400 up
// CategoryUser, and all else is CategoryProtocol.
func CategoryOf(status int) Category {
	for _, row := range statuses {
		if row.status == status {
			return row.category
		}
	}
	switch {
	case status >= http.StatusInternalServerError:
		return CategoryServer
	case status >= http.StatusBadRequest:
		return CategoryUser
	}
	return CategoryProtocol
}

// Status returns the HTTP status that a server uses for the category, or 500.
func (c Category) Status() int {
	for _, row := range statuses {
		if row.category == c {
			return row.status
		}
	}
	return http.StatusInternalServerError
}

// Temporary reports whether the same call may succeed later.
func (c Category) Temporary() bool {
	switch c {
	case CategoryServer, CategoryPayment, CategoryTimeout, CategoryThrottled, CategoryUnreachable, CategoryPaused:
		return true
	}
	return false
}
