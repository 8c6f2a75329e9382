// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"net/http"
	"strconv"
	"time"
)

// longest bounds the pause that a server may ask for, so that its number of seconds fits a time.Duration.
const longest = 24 * time.Hour

// RetryAfter returns how long the header Retry-After of a response asks to wait, up to a day: a number of seconds or
// a date, which counts from the date of the response, so that only the server's clock matters. If the headers cannot
// be read, ok is false.
func RetryAfter(header http.Header) (pause time.Duration, ok bool) {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if !(seconds >= 0) { // It is negative or not a number.
			return 0, false
		}
		return time.Duration(min(seconds, longest.Seconds()) * float64(time.Second)), true
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0, false
	}
	return min(max(0, until.Sub(now)), longest), true
}
