// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import "testing"

func TestCategoryOf(t *testing.T) {
	for status, want := range map[int]Category{
		400: CategoryUser, 422: CategoryUser, 413: CategoryTooLarge, 401: CategoryUnauthorized, 403: CategoryUnauthorized,
		402: CategoryPayment, 404: CategoryNotFound, 405: CategoryUnsupported, 501: CategoryUnsupported, 408: CategoryTimeout,
		409: CategoryConflict, 410: CategoryFutureLost, 429: CategoryThrottled, 500: CategoryServer, 503: CategoryServer,
		529: CategoryServer, 302: CategoryProtocol, 100: CategoryProtocol,
	} {
		if got := CategoryOf(status); got != want {
			t.Errorf("CategoryOf(%d) = %s, want %s", status, got, want)
		}
	}
}

func TestCategoryStatus(t *testing.T) {
	for category, want := range map[Category]int{
		CategoryUser: 400, CategoryTooLarge: 413, CategoryUnauthorized: 401, CategoryPayment: 402, CategoryNotFound: 404,
		CategoryUnsupported: 405,
		CategoryTimeout:     408, CategoryConflict: 409, CategoryExists: 409, CategoryFutureLost: 410, CategoryThrottled: 429,
		CategoryServer: 500, CategoryUnknown: 500, CategoryUnreachable: 500,
	} {
		if got := category.Status(); got != want {
			t.Errorf("%s.Status() = %d, want %d", category, got, want)
		}
	}
}
