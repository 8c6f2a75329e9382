// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"strings"
	"testing"
)

func TestLogEnd(t *testing.T) {
	cases := map[string]struct{ log, want string }{
		"the last line": {"starting\nrollout: no space left\n\n", "rollout: no space left"},
		"no log":        {" \n", ""},
		"a panic": {"starting\npanic: index out of range\n\ngoroutine 1 " +
			"[running]:\nmain.main()\n\t/src/main.go:3 +0x1d\n", "panic: index out of range"},
		"a failed runtime": {"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1:\n",
			"fatal error: all goroutines are asleep - deadlock!"},
		"not UTF-8": {"a\xffb", "a?b"},
		"a key by its name": {`{"msg":"started","api_key":"k-1234","n":1}`,
			`{"msg":"started","api_key":"[redacted]","n":1}`},
		"a header": {"sent Authorization: Bearer abc.def and failed",
			"sent Authorization: Bearer [redacted] and failed"},
		"a bearer token":       {"header bearer abc.def failed", "header bearer [redacted] failed"},
		"a key by its prefix":  {"the key tml-abcdef0123456789 is refused", "the key tml-[redacted] is refused"},
		"a password in a URL":  {"GET http://proxy:hunter2@host/ failed", "GET http://proxy:[redacted]@host/ failed"},
		"a port in a URL":      {"GET http://host:8080/x failed", "GET http://host:8080/x failed"},
		"a word about a token": {"the token of the run is refused", "the token of the run is refused"},
		"too long":             {strings.Repeat("x", 300), strings.Repeat("x", 64)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := LogEnd(tc.log, 64); got != tc.want {
				t.Errorf("LogEnd = %q, want %q", got, tc.want)
			}
		})
	}
}
