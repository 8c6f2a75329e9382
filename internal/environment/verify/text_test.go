// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNumbersIn(t *testing.T) {
	for text, want := range map[string][]string{
		"":                             nil,
		"none":                         nil,
		"12.":                          {"12"},
		"it is 1,234,567.89 or .5":     {"1234567.89", ".5"},
		"1,2,3":                        {"1", "2", "3"},
		"12,34":                        {"12", "34"},
		"-3, −4 and (-5)":              {"-3", "-4", "-5"},
		"9-4 and 2020-11-22":           {"9", "4", "2020", "11", "22"},
		"(9)-4":                        {"9", "4"},
		"0-1, a-2, z-3, A-4, Z-5":      {"0", "1", "2", "3", "4", "5"},
		"1e5 and 2.5E-3":               {"1e5", "2.5E-3"},
		"x2":                           {"2"},
		"$1,000, which is 1,000 cents": {"1000", "1000"},
		"1.2.3":                        {"1.2", ".3"},
	} {
		if diff := cmp.Diff(want, numbersIn(text)); diff != "" {
			t.Errorf("numbersIn(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func TestEqualNumbers(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"18", "18.00", true}, {"0.1", ".10", true}, {"18", "-18", false}, {"1e3", "1000", true},
		{"123456789012345678901", "123456789012345678902", false}, {"1e400", "1e500", true},
	} {
		if equalNumbers(tc.a, tc.b) != tc.want {
			t.Errorf("equalNumbers(%s, %s) = %v", tc.a, tc.b, !tc.want)
		}
	}
}
