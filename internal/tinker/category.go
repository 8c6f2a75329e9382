// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import "net/http"

// Category says what kind of trouble an error is.
type Category string

// The categories. User, Server and Unknown are also what a failed result says.
const (
	// CategoryUser is a request that will fail again: 400, 422, or a result that failed by its input.
	CategoryUser Category = "user"
	// CategoryServer is the server's own trouble: 5xx, or a result that failed by it.
	CategoryServer Category = "server"
	// CategoryUnknown is a result that failed without saying why.
	CategoryUnknown Category = "unknown"
	// CategoryUnauthorized is a refused key: 401 or 403.
	CategoryUnauthorized Category = "unauthorized"
	// CategoryPayment is an account that must be paid first: 402.
	CategoryPayment Category = "payment"
	// CategoryNotFound is 404. For an operation of a model it means that the server has lost the model.
	CategoryNotFound Category = "not_found"
	// CategoryUnsupported is 405 and 501: the server has no such endpoint.
	CategoryUnsupported Category = "unsupported"
	// CategoryTimeout is 408: not done yet.
	CategoryTimeout Category = "timeout"
	// CategoryConflict is 409.
	CategoryConflict Category = "conflict"
	// CategoryExists is a save under a name that is taken. Whose save that was is to be looked up.
	CategoryExists Category = "exists"
	// CategoryFutureLost is 410: the result will never be given.
	CategoryFutureLost Category = "promise_lost"
	// CategoryThrottled is 429.
	CategoryThrottled Category = "throttled"
	// CategoryUnreachable is a call without an answer.
	CategoryUnreachable Category = "unreachable"
	// CategoryProtocol is an answer that is not what the API promises.
	CategoryProtocol Category = "protocol"
	// CategoryCanceled is a call whose context ended.
	CategoryCanceled Category = "canceled"
	// CategoryPaused is a result that waits in a paused queue. It is seen in events alone.
	CategoryPaused Category = "paused"
)

// statuses maps HTTP statuses and categories: the first line of a category is the status a server gives
// for it, and the first line of a status the category a client makes of it.
var statuses = []struct {
	category Category
	status   int
}{
	{CategoryUser, http.StatusBadRequest},
	{CategoryUser, http.StatusUnprocessableEntity},
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

// CategoryOf returns the category of an HTTP status. Other statuses from 500 up are the server's trouble,
// other ones from 400 up the caller's, and all else breaks the protocol.
func CategoryOf(status int) Category {
	for _, line := range statuses {
		if line.status == status {
			return line.category
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

// Status returns the HTTP status that a server gives for the category; 500 for those that have none.
func (c Category) Status() int {
	for _, line := range statuses {
		if line.category == c {
			return line.status
		}
	}
	return http.StatusInternalServerError
}

// Temporary says that the same call may well succeed later.
func (c Category) Temporary() bool {
	switch c {
	case CategoryServer, CategoryPayment, CategoryTimeout, CategoryThrottled, CategoryUnreachable, CategoryPaused:
		return true
	}
	return false
}
