// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import "testing"

// inner and outer are settings; later is outer with more fields, in another order.
type inner struct {
	Number *float64 `json:"number,omitempty"`
	Count  int32    `json:"count,omitempty"`
}

type outer struct {
	inner
	Name  string            `json:"name"`
	Part  inner             `json:"part,omitzero"`
	Parts []inner           `json:"parts,omitempty"`
	Texts map[string]string `json:"texts,omitempty"`
}

type later struct {
	Texts map[string]string `json:"texts,omitempty"`
	Name  string            `json:"name"`
	Added *inner            `json:"added,omitempty"`
	Flag  bool              `json:"flag,omitempty"`
	Rate  float64           `json:"rate,omitempty"`
	List  []string          `json:"list,omitempty"`
	Part  inner             `json:"part,omitzero"`
	Parts []inner           `json:"parts,omitempty"`
	inner
}

func digestOf(t *testing.T, v any) string {
	t.Helper()
	got, err := digest("test", v)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestAFieldThatNobodySetsChangesNoDigest compares settings with the settings of a later version, which has more
// fields.
func TestAFieldThatNobodySetsChangesNoDigest(t *testing.T) {
	texts, parts := map[string]string{"b": "2", "a": "1"}, []inner{{Count: 1}, {}}
	now := outer{inner: inner{Count: 2}, Name: "n", Part: inner{Number: new(0.0)}, Parts: parts, Texts: texts}
	next := later{inner: inner{Count: 2}, Name: "n", Part: inner{Number: new(0.0)}, Parts: parts, Texts: texts,
		List: []string{}}
	if got, want := digestOf(t, next), digestOf(t, now); got != want {
		t.Errorf("digest with fields that are not set is %s, want %s", got, want)
	}
}

func TestEverySettingIsDigested(t *testing.T) {
	seen := map[string]string{}
	for name, settings := range map[string]later{
		"nothing":              {},
		"a text":               {Name: "1"},
		"a text elsewhere":     {Texts: map[string]string{"name": "1"}},
		"a map's key":          {Texts: map[string]string{"a": "1"}},
		"a map's value":        {Texts: map[string]string{"a": "2"}},
		"true":                 {Flag: true},
		"a number":             {Rate: 1},
		"another number":       {Rate: 1.5},
		"an integer":           {inner: inner{Count: 1}},
		"an integer in a part": {Part: inner{Count: 1}},
		"an empty object":      {Added: &inner{}},
		"an explicit 0":        {Added: &inner{Number: new(0.0)}},
		"a list":               {List: []string{"ab", "c"}},
		"a list cut elsewhere": {List: []string{"a", "bc"}},
		"an empty entry":       {List: []string{""}},
		"two empty entries":    {List: []string{"", ""}},
		"a list of objects":    {Parts: []inner{{Count: 1}, {}}},
		"the objects' order":   {Parts: []inner{{}, {Count: 1}}},
	} {
		got := digestOf(t, settings)
		if other, ok := seen[got]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[got] = name
	}
}

func TestKindsHaveDigestsOfTheirOwn(t *testing.T) {
	one, err := digest("settings", later{})
	if err != nil {
		t.Fatal(err)
	}
	if other := digestOf(t, later{}); other == one {
		t.Errorf("settings and another kind of object have one digest: got %v for both", other)
	}
	if _, err := digest("test", struct{ C chan int }{make(chan int)}); err == nil {
		t.Error("a channel was digested")
	}
}
