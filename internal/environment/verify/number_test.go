// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"strings"
	"testing"
)

// TestJSONSchemaExtremeNumbers grades numbers with which a reply could end or delay a worker.
func TestJSONSchemaExtremeNumbers(t *testing.T) {
	schemas := map[string]string{
		"minimum":          `{"properties": {"n": {"minimum": 0}}}`,
		"maximum":          `{"properties": {"n": {"maximum": 5}}}`,
		"exclusiveMinimum": `{"properties": {"n": {"exclusiveMinimum": 0}}}`,
		"exclusiveMaximum": `{"properties": {"n": {"exclusiveMaximum": 5}}}`,
		"multipleOf":       `{"properties": {"n": {"multipleOf": 2}}}`,
		"number":           `{"properties": {"n": {"type": "number", "minimum": 0}}}`,
		"integer":          `{"properties": {"n": {"type": "integer", "minimum": 0}}}`,
		"enum":             `{"properties": {"n": {"enum": [1, 2]}}}`,
		"const":            `{"properties": {"n": {"const": 1}}}`,
		"uniqueItems":      `{"properties": {"n": {"uniqueItems": true}}}`,
		"any":              `{}`,
	}
	numbers := map[string]string{
		"a large exponent":      "1e9999999",
		"a small exponent":      "1e-9999999",
		"an endless exponent":   "1E+99999999999999999999",
		"many digits":           strings.Repeat("9", 2_000_000),
		"many decimals":         "0." + strings.Repeat("9", 2_000_000),
		"numbers in a list":     "[1e9999999, 1e9999999, 1e99999999]",
		"a number in an object": `{"m": 1e9999999}`,
	}
	for keyword, schema := range schemas {
		for name, number := range numbers {
			t.Run(keyword+"/"+name, func(t *testing.T) {
				grader := must(NewJSONSchema([]byte(schema)))
				score, err := grader.Grade(t.Context(), answer(""), says(`{"n": `+number+`}`))
				if err != nil {
					t.Fatalf("error is %v, want none", err)
				}
				if score.Reward != 0 || score.Metrics[MetricInvalid] != 1 {
					t.Errorf("reward is %v with metrics %v, want 0 and %s", score.Reward, score.Metrics, MetricInvalid)
				}
			})
		}
	}
}

func TestJSONSchemaOrdinaryNumbers(t *testing.T) {
	grader := must(NewJSONSchema([]byte(`{"type": "number", "minimum": 0, "maximum": 1e400}`)))
	for text, want := range map[string]float64{
		"12": 1, "-1": 0, "1.5e3": 1, "1e-300": 1, "1E+400": 1, "1e401": 0, "1e1000": 0, strings.Repeat("9", 300): 1,
	} {
		score, err := grader.Grade(t.Context(), answer(""), says(text))
		if err != nil || score.Reward != want {
			t.Errorf("reward of %.20s is %v (error %v), want %v", text, score.Reward, err, want)
		}
	}
}

func TestJSONSchemaRefusesExtremeBounds(t *testing.T) {
	for _, schema := range []string{`{"minimum": 1e9999999}`, `{"const": 1e-9999999}`,
		`{"maximum": ` + strings.Repeat("9", 2000) + `}`} {
		if _, err := NewJSONSchema([]byte(schema)); err == nil || !strings.Contains(err.Error(), "exponent beyond") {
			t.Errorf("error of schema %.30s is %v, want one about its number", schema, err)
		}
	}
}
