// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// luminance returns the relative luminance of a colour such as #1b1f26, as WCAG 2 defines it.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatalf("%q is no colour: %v", colour, err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}

// TestTextHasContrast checks that text has a contrast of at least 4.5 to 1 on each of its backgrounds, light and dark.
func TestTextHasContrast(t *testing.T) {
	data, err := files.ReadFile("app.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, found := strings.Cut(string(data), "prefers-color-scheme: dark")
	if !found {
		t.Fatal("the style sheet has no colours for the dark")
	}
	variable := regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`)
	for scheme, text := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]string{}
		for _, match := range variable.FindAllStringSubmatch(text, -1) {
			colours[match[1]] = match[2]
		}
		for fore, backs := range map[string][]string{
			"text": {"back", "raised", "calm-back", "warn-back", "bad-back", "good-back"}, "quiet": {"back", "raised"},
			"link": {"back", "raised", "good-back"}, "good": {"back", "good-back"}, "bad": {"back", "bad-back"},
			"warn": {"back", "warn-back"}, "active": {"active-back"}, "mark": {"back", "good-back"},
		} {
			for _, back := range backs {
				a, b := luminance(t, colours[fore]), luminance(t, colours[back])
				if ratio := (math.Max(a, b) + 0.05) / (math.Min(a, b) + 0.05); ratio < 4.5 {
					t.Errorf("%s: %s on %s has the contrast %.2f", scheme, fore, back, ratio)
				}
			}
		}
	}
}
