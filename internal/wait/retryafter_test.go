// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	const date = "Sun, 22 Nov 2026 12:00:00 GMT"
	cases := map[string]struct {
		value, date string
		want        time.Duration
		ok          bool
	}{
		"none":                       {},
		"seconds":                    {value: "7", want: 7 * time.Second, ok: true},
		"no seconds":                 {value: "0", ok: true},
		"a fraction":                 {value: "0.5", want: 500 * time.Millisecond, ok: true},
		"too many seconds":           {value: "1e300", want: 24 * time.Hour, ok: true},
		"a negative number":          {value: "-1"},
		"NaN":                        {value: "NaN"},
		"words":                      {value: "soon"},
		"a date":                     {value: "Sun, 22 Nov 2026 12:00:20 GMT", date: date, want: 20 * time.Second, ok: true},
		"a date that has passed":     {value: "Sun, 22 Nov 2026 11:59:00 GMT", date: date, ok: true},
		"a far date":                 {value: "Sun, 22 Nov 2027 12:00:00 GMT", date: date, want: 24 * time.Hour, ok: true},
		"a date of an unknown clock": {value: "Sun, 22 Nov 2026 12:00:20 GMT"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			for key, value := range map[string]string{"Retry-After": tc.value, "Date": tc.date} {
				if value != "" {
					header.Set(key, value)
				}
			}
			if got, ok := RetryAfter(header); got != tc.want || ok != tc.ok {
				t.Errorf("RetryAfter = %v, %v, want %v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}
