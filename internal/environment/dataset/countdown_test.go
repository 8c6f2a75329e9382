// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment"
)

func countdown(t *testing.T, o settings.CountdownData) *Countdown {
	t.Helper()
	d, err := NewCountdown(o)
	if err != nil {
		t.Fatalf("NewCountdown(%+v): %v", o, err)
	}
	return d
}

// evaluate computes an expression with Go's own rules for constants; a division is exact.
func evaluate(t *testing.T, expression string) string {
	t.Helper()
	expression = regexp.MustCompile(`\d+`).ReplaceAllString(expression, "$0.0")
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return constant.ToInt(value.Value).ExactString()
}

func TestCountdown(t *testing.T) {
	d := countdown(t, settings.CountdownData{MinNumbers: 2, MaxNumbers: 4, MaxNumber: 20, Tasks: 1000})
	splits, err := d.Splits(t.Context())
	if diff := cmp.Diff([]environment.Split{{Name: "test", Tasks: 200}, {Name: "train", Tasks: 1000}},
		splits); diff != "" || err != nil {
		t.Fatalf("Splits (-want +got):\n%s, %v", diff, err)
	}
	where, lengths := map[string]string{}, map[int]bool{}
	for _, split := range splits {
		for i := range split.Tasks {
			row, err := d.Row(t.Context(), split.Name, i)
			if err != nil {
				t.Fatal(err)
			}
			numbers := strings.Split(textOf(row.Fields["nums"]), ", ")
			used := strings.FieldsFunc(row.Answer, func(r rune) bool { return r < '0' || r > '9' })
			slices.Sort(numbers)
			slices.Sort(used)
			lengths[len(numbers)] = true
			if target := textOf(row.Fields["target"]); evaluate(t, row.Answer) != target || !slices.Equal(numbers, used) {
				t.Fatalf("row %d of %s: %s of %v is not %s", i, split.Name, row.Answer, numbers, target)
			}
			key := strings.Join(numbers, " ") + " " + textOf(row.Fields["target"])
			if other, ok := where[key]; ok && other != split.Name {
				t.Errorf("%s is in both splits", key)
			}
			where[key] = split.Name
		}
	}
	if !lengths[2] || !lengths[3] || !lengths[4] || len(lengths) != 3 {
		t.Errorf("tasks have %v numbers, want 2 to 4", lengths)
	}
	if len(where) < 1000 {
		t.Errorf("there are only %d different tasks", len(where))
	}
}

// TestCountdownRows compares the first rows of each split: a change of them would change the tasks of runs.
func TestCountdownRows(t *testing.T) {
	d := countdown(t, settings.CountdownData{MinNumbers: 3, MaxNumbers: 4, MaxNumber: 99, Tasks: 1000})
	var got []string
	for _, split := range []string{"train", "test"} {
		for i := range int64(2) {
			row, err := d.Row(t.Context(), split, i)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row.Answer+" = "+textOf(row.Fields["target"]))
		}
	}
	if diff := cmp.Diff([]string{
		"((59 + 41) - 72) * 35 = 980", "(29 + 96) + 11 = 136", "((92 + 74) * 48) - 69 = 7899", "((76 * 34) - 39) + 70 = 2615",
	}, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for split, index := range map[string]int64{"train": 1000, "test": 200, "other": 0} {
		if _, err := d.Row(t.Context(), split, index); err == nil {
			t.Errorf("split %s has row %s", split, strconv.FormatInt(index, 10))
		}
	}
}

func TestCountdownBounds(t *testing.T) {
	for _, o := range []settings.CountdownData{
		{MinNumbers: 1, MaxNumbers: 3, MaxNumber: 20, Tasks: 10}, {MinNumbers: 3, MaxNumbers: 7, MaxNumber: 20, Tasks: 10},
		{MinNumbers: 4, MaxNumbers: 3, MaxNumber: 20, Tasks: 10}, {MinNumbers: 3, MaxNumbers: 4, MaxNumber: 4, Tasks: 10},
		{MinNumbers: 3, MaxNumbers: 4, MaxNumber: 1000, Tasks: 10}, {MinNumbers: 3, MaxNumbers: 4, MaxNumber: 20, Tasks: 4},
	} {
		if _, err := NewCountdown(o); err == nil {
			t.Errorf("NewCountdown(%+v) succeeds", o)
		}
	}
}
