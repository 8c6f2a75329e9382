// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package mathtext

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// readLines decodes a file of JSON lines.
func readLines[T any](t *testing.T, name string) []T {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for line := range strings.Lines(string(data)) {
		var element T
		if err := json.Unmarshal([]byte(line), &element); err != nil {
			t.Fatal(err)
		}
		all = append(all, element)
	}
	return all
}

// TestEqualOnCases compares answers of each class. The file also has the verdicts of Math-Verify 0.9.0.
func TestEqualOnCases(t *testing.T) {
	type answers struct {
		Class      string `json:"class"`
		Gold       string `json:"gold"`
		Reply      string `json:"reply"`
		Want       bool   `json:"want"`
		MathVerify bool   `json:"mathVerify"`
	}
	classes := map[string][]answers{}
	for _, c := range readLines[answers](t, "cases.jsonl") {
		classes[c.Class] = append(classes[c.Class], c)
	}
	for class, cases := range classes {
		t.Run(class, func(t *testing.T) {
			for _, c := range cases {
				if got := Equal(c.Gold, c.Reply); got != c.Want {
					t.Errorf("Equal(%q, %q) = %v, want %v", c.Gold, c.Reply, got, c.Want)
				}
				if got := Equal(c.Reply, c.Gold); got != c.Want {
					t.Errorf("Equal(%q, %q) = %v, want %v: the order must not matter", c.Reply, c.Gold, got, c.Want)
				}
			}
		})
	}
}

// TestGoldAnswersThatDiffer compares pairs of gold answers of published data sets that Math-Verify tells apart. They
// may be equal here only by a convention that docs/rewards.md lists.
func TestGoldAnswersThatDiffer(t *testing.T) {
	const (
		name    = "the name of what was asked for is left out"
		percent = "the percent sign is left out"
		unit    = "a unit that only one of the answers has is left out"
		words   = "words are compared in any case, without the point at their end"
	)
	conventions := map[[2]string]string{
		{"7.2", `7.2\%`}: percent,
		{`8\sqrt{3}`, `8\sqrt{3} \text { square inches}`}: unit,
		{"a=9", "x=9"}:                  name,
		{"b=4", "x = 4"}:                name,
		{"$N=10$", "$k=10$"}:            name,
		{"$N=10$", "$x=10$"}:            name,
		{"$N=5$", `$\mathrm{r}=5$`}:     name,
		{"$N=5$", "$x=5$"}:              name,
		{`$\mathrm{r}=5$`, "$x=5$"}:     name,
		{"$h=4$", "$x=4$"}:              name,
		{"$h=4$.", "$x=4$"}:             name,
		{"$k=10$", "$x=10$"}:            name,
		{"$w_{0}=1$", "$x=1$"}:          name,
		{"$N=n$", "$f(n)=n$"}:           name,
		{"$f(x)=1$", "$k=1$"}:           name,
		{"No", "No."}:                   words,
		{"No Solution", "No solution."}: words,
		{"No solution", "No solution."}: words,
		{"No solution.", "no solution"}: words,
		{"Yes", "Yes."}:                 words,
		{"Yes.", "yes"}:                 words,
	}
	pairs := readLines[struct{ A, B string }](t, "gold_pairs.jsonl")
	for _, pair := range pairs {
		convention := conventions[[2]string{pair.A, pair.B}]
		if got := Equal(pair.A, pair.B); got != (convention != "") {
			t.Errorf("Equal(%q, %q) = %v, want %v (convention: %q)", pair.A, pair.B, got, convention != "", convention)
		}
	}
	if len(pairs) < 55 {
		t.Errorf("the file has %d pairs, want 55", len(pairs))
	}
}
