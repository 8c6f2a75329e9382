// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
)

func TestEmbeddedPrices(t *testing.T) {
	if _, err := time.Parse(time.DateOnly, Date()); err != nil {
		t.Errorf("the date of the table: %v", err)
	}
	want := spending.Price{Prompt: 0.195, CachedPrompt: 0.039, Sampled: 0.6, Trained: 0.44}
	if got, ok := Of("Qwen/Qwen3-8B"); !ok || got != want {
		t.Errorf("got %+v, %t; want %+v", got, ok, want)
	}
	if got, ok := Of("Qwen/Qwen3-8B:peft:131072"); ok {
		t.Errorf("a variant costs %+v, want no price: the service lists variants apart", got)
	}
	t0, err := parse(embedded)
	if rows := strings.Count(string(embedded), "tinker_id"); err != nil || rows != len(t0.prices) {
		t.Errorf("%d of %d embedded rows are complete, %v", len(t0.prices), rows, err)
	}
}

func TestExtend(t *testing.T) {
	before := current.Load()
	t.Cleanup(func() { current.Store(before) })
	published := `[{"tinker_id": "me/new", "context": "32K", "prefill": "$1,000.5", "cached_prefill": "$0.2", "sample": "$3",
		"train": "$4.00", "note": "x"},
		{"tinker_id": "me/uncached", "prefill": "$1", "cached_prefill": "—", "sample": "$3", "train": "$4"},
		{"tinker_id": "me/untrained", "prefill": "$1", "sample": "$3", "train": "—"},
		{"tinker_id": "Qwen/Qwen3-8B", "prefill": 9, "cached_prefill": 1, "sample": 9, "train": 9}]`
	if err := Extend([]byte(published)); err != nil {
		t.Fatal(err)
	}
	want := map[string]spending.Price{
		"me/new":          {Prompt: 1000.5, CachedPrompt: 0.2, Sampled: 3, Trained: 4},
		"me/uncached":     {Prompt: 1, Sampled: 3, Trained: 4},
		"Qwen/Qwen3-8B":   {Prompt: 9, CachedPrompt: 1, Sampled: 9, Trained: 9},
		"Qwen/Qwen3.5-4B": {Prompt: 0.33, CachedPrompt: 0.066, Sampled: 1.005, Trained: 0.737},
	}
	for model, price := range want {
		if got, ok := Of(model); !ok || cmp.Diff(price, got) != "" {
			t.Errorf("%s costs %+v, %t; want %+v", model, got, ok, price)
		}
	}
	if got, ok := Of("me/untrained"); ok {
		t.Errorf("a row without a price of training costs %+v, want no price", got)
	}
	if Date() != before.date {
		t.Errorf("a list without a date changes the date to %s", Date())
	}
	if err := Extend([]byte(`{"date": "2027-01-02", "models": ` + published + `}`)); err != nil || Date() != "2027-01-02" {
		t.Errorf("a table of its date: %v, date %s", err, Date())
	}
	for name, data := range map[string]string{"no JSON": "x", "no rows": "[]", "no name": `[{"prefill": "$1"}]`,
		"no price": `[{"tinker_id": "x"}]`, "another object": `{"a": 1}`} {
		if err := Extend([]byte(data)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestParse reads a table without extending the embedded one.
func TestParse(t *testing.T) {
	got, err := Parse([]byte(`[{"tinker_id":"own/only-parsed","prefill":"$1","sample":"$2","train":"$3"}]`))
	if err != nil || got["own/only-parsed"] != (spending.Price{Prompt: 1, Sampled: 2, Trained: 3}) {
		t.Errorf("Parse = %v, %v", got, err)
	}
	if _, known := Of("own/only-parsed"); known {
		t.Error("the table that was parsed extends the embedded one")
	}
	for _, bad := range []string{`{`, `[{"prefill":"$1"}]`, `[]`} {
		if got, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%s: got %v, want an error", bad, got)
		}
	}
	All()["own/only-parsed"] = spending.Price{}
	if _, known := Of("own/only-parsed"); known {
		t.Error("All returns the table itself, and no copy")
	}
}
