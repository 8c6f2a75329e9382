// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"regexp"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// credentials match texts that a log must not show to the readers of a status: values of fields that are named after
// credentials, keys by the prefixes of well-known services, and passwords in URLs. The text that their groups match
// stays.
var credentials = []*regexp.Regexp{
	regexp.MustCompile(
		`(?i)((?:api[-_ ]?key|authorization|password|passwd|secret|token)["']?\s*[:=]\s*["']?(?:bearer\s+)?)[^\s"',;&]+`),
	regexp.MustCompile(`(?i)(\bbearer\s+)[^\s"',;&]+`),
	regexp.MustCompile(`(\b(?:tml|sk|hf|ghp)[-_])[A-Za-z0-9_-]{8,}`),
	regexp.MustCompile(`(://[^\s/:@]*:)[^\s/@]+(@)`),
}

// goFailure matches the line by which the Go runtime says why a program ended; a trace of the stack follows it.
var goFailure = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*$`)

// LogEnd returns the line that says why a program ended, of at most limit bytes and without credentials: the last line
// of its log, or the line that begins the report of a panic.
func LogEnd(log string, limit int) string {
	log = strings.TrimSpace(strings.ToValidUTF8(log, "?"))
	line := log[strings.LastIndexByte(log, '\n')+1:]
	if failure := goFailure.FindString(log); failure != "" {
		line = failure
	}
	for _, credential := range credentials {
		line = credential.ReplaceAllString(line, "${1}[redacted]${2}")
	}
	return contract.Truncate(strings.TrimSpace(line), limit)
}
