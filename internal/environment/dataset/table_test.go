// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

// numbered is a number of rows. The prompt of each row is its index.
type numbered int64

func (n numbered) Count() int64 { return int64(n) }

func (n numbered) Columns(_ context.Context, index int64) (map[string]any, error) {
	return map[string]any{"prompt": fmt.Sprint(index)}, nil
}

// prompts joins the prompts of a split.
func prompts(t *testing.T, d Dataset, split string) string {
	t.Helper()
	splits, err := d.Splits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range splits {
		for i := int64(0); s.Name == split && i < s.Tasks; i++ {
			row, err := d.Row(t.Context(), split, i)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, row.Prompt)
		}
	}
	return strings.Join(all, " ")
}

func TestTable(t *testing.T) {
	cuts := []settings.DataSplit{
		{Name: "late", From: "shuffled", Skip: 2},
		{Name: "test", Source: "train", Take: new(int64(3))},
		{Name: "train", Source: "train", Skip: 3},
		{Name: "shuffled", Source: "train", ShuffleSeed: new(int64(42)), Skip: 1, Take: new(int64(6))},
		{Name: "shuffled-tail", From: "train", ShuffleSeed: new(int64(0))},
		{Name: "again", From: "shuffled", ShuffleSeed: new(int64(7)), Take: new(int64(100))},
		{Name: "other", Source: "other"},
	}
	table, err := NewTable(NewFormat(settings.Dataset{}), map[string]Rows{"train": numbered(10), "other": numbered(2)},
		cuts)
	if err != nil {
		t.Fatal(err)
	}
	// The permutation of seed 42 is 5 6 0 7 3 2 4 9 1 8, and the permutation of seed 0 of seven is 6 0 5 2 3 1 4.
	for split, want := range map[string]string{
		"test": "0 1 2", "train": "3 4 5 6 7 8 9", "shuffled": "6 0 7 3 2 4", "late": "7 3 2 4", "other": "0 1",
	} {
		if got := prompts(t, table, split); got != want {
			t.Errorf("split %s has rows %s, want %s", split, got, want)
		}
	}
	got := strings.Fields(prompts(t, table, "again"))
	for _, index := range strings.Fields("6 0 7 3 2 4") {
		if n := strings.Count(strings.Join(got, " "), index); n != 1 {
			t.Errorf("again has row %s %d times: %v", index, n, got)
		}
	}
	if tail := prompts(t, table, "shuffled-tail"); tail == prompts(t, table, "train") || len(strings.Fields(tail)) != 7 {
		t.Errorf("shuffled-tail has rows %s", tail)
	}
	_, err = table.Row(t.Context(), "test", 3)
	var missing *RowError
	if !errors.As(err, &missing) {
		t.Errorf("Row beyond the end = %v", err)
	}
}

func TestTableWithoutCuts(t *testing.T) {
	table, err := NewTable(NewFormat(settings.Dataset{}), map[string]Rows{"train": numbered(3), "test": numbered(1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := table.Splits(t.Context())
	if diff := cmp.Diff([]environment.Split{{Name: "test", Tasks: 1}, {Name: "train", Tasks: 3}}, got); diff != "" ||
		err != nil {
		t.Errorf("Splits (-want +got):\n%s, %v", diff, err)
	}
}

func TestTableErrors(t *testing.T) {
	cases := map[string]struct {
		cuts []settings.DataSplit
		want string
	}{
		"an unknown source": {[]settings.DataSplit{{Name: "a", Source: "validation"}},
			`dataset.splits[0] (a): the data has no split "validation"; it has test, train: correct source`},
		"nothing is left": {[]settings.DataSplit{{Name: "a", Source: "train"}, {Name: "b", From: "a", Skip: 10}},
			"dataset.splits[1] (b): skip is 10, but there are only 10 rows, so that none is left: lower skip"},
		"itself":           {[]settings.DataSplit{{Name: "a", From: "a"}}, "correct from"},
		"an unknown split": {[]settings.DataSplit{{Name: "a", From: "b"}}, "correct from"},
		"nothing in the first": {[]settings.DataSplit{{Name: "a", Source: "empty"}},
			"dataset.splits[0] (a): the data has no split"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewTable(NewFormat(settings.Dataset{}), map[string]Rows{"train": numbered(10), "test": numbered(1)},
				tc.cuts)
			var cut *CutError
			if !errors.As(err, &cut) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("NewTable = %v, want %s", err, tc.want)
			}
		})
	}
}

func TestTableOfGeneratedRows(t *testing.T) {
	sums := arithmetic(t, 9)
	table, err := NewTable(NewFormat(settings.Dataset{Prompt: "$(prompt) Be brief."}),
		map[string]Rows{"train": Generated{Dataset: sums, Split: environment.Split{Name: "train", Tasks: 79}}},
		[]settings.DataSplit{{Name: "few", Source: "train", Skip: 1, Take: new(int64(2))}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := sums.Row(t.Context(), "train", 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := table.Row(t.Context(), "few", 0)
	if err != nil || got.Prompt != want.Prompt+" Be brief." || got.Answer != want.Answer {
		t.Errorf("Row = %+v, %v, want the row of %+v", got, err, want)
	}
}
