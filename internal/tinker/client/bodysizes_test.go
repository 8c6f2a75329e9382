// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net/http"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// TestBodySizesKeepTheSmallestRejection records bodies, and asks whether a divisible body of 100 bytes is sent.
func TestBodySizesKeepTheSmallestRejection(t *testing.T) {
	tooLarge := &Error{Category: tinker.CategoryTooLarge, Status: http.StatusRequestEntityTooLarge}
	type record struct {
		size int
		err  error
	}
	for name, tc := range map[string]struct {
		records []record
		sent    bool
	}{
		"nothing is known":                             {nil, true},
		"its size is rejected":                         {[]record{{100, tooLarge}}, false},
		"a smaller one is rejected, then a larger":     {[]record{{90, tooLarge}, {200, tooLarge}}, false},
		"a larger one is rejected, then a smaller":     {[]record{{200, tooLarge}, {90, tooLarge}}, false},
		"a larger one is rejected":                     {[]record{{101, tooLarge}}, true},
		"its size is rejected, and accepted later":     {[]record{{100, tooLarge}, {100, nil}}, true},
		"its size is accepted, and rejected later":     {[]record{{100, nil}, {100, tooLarge}}, true},
		"its size is rejected, and a smaller accepted": {[]record{{100, tooLarge}, {90, nil}}, false},
	} {
		var sizes bodySizes
		for _, r := range tc.records {
			sizes.record(request{body: make([]byte, r.size)}, r.err)
		}
		_, err := sizes.check(request{body: make([]byte, 100)}, nil)
		if sent := err == nil; sent != tc.sent || !sent && !isTooLarge(err) {
			t.Errorf("%s: %v, want it to be sent: %v", name, err, tc.sent)
		}
	}
}
