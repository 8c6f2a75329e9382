// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/environment"
)

func arithmetic(t *testing.T, maxOperand int) *Arithmetic {
	t.Helper()
	d, err := NewArithmetic(maxOperand)
	if err != nil {
		t.Fatalf("NewArithmetic(%d): %v", maxOperand, err)
	}
	return d
}

func splits(t *testing.T, d *Arithmetic) []environment.Split {
	t.Helper()
	list, err := d.Splits(t.Context())
	if err != nil {
		t.Fatalf("Splits: %v", err)
	}
	return list
}

func TestArithmeticSplits(t *testing.T) {
	got, err := arithmetic(t, 99).Splits(t.Context())
	if err != nil {
		t.Fatalf("Splits: %v", err)
	}
	// A change of these numbers changes the tasks of runs and of their evaluations.
	want := []environment.Split{{Name: "test", Tasks: 2006}, {Name: "train", Tasks: 7994}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Splits (-want +got):\n%s", diff)
	}
}

func TestArithmeticRows(t *testing.T) {
	for _, maxOperand := range []int{1, 9, 99} {
		t.Run(fmt.Sprintf("operands to %d", maxOperand), func(t *testing.T) {
			d := arithmetic(t, maxOperand)
			where := map[string]string{}
			for _, split := range splits(t, d) {
				collect(t, d, split, where)
			}
			if len(where) != (maxOperand+1)*(maxOperand+1) {
				t.Errorf("the splits hold %d sums, there are %d", len(where), (maxOperand+1)*(maxOperand+1))
			}
			for a := range maxOperand + 1 {
				for b := range maxOperand + 1 {
					one, other := fmt.Sprintf("What is %d + %d?", a, b), fmt.Sprintf("What is %d + %d?", b, a)
					if where[one] != where[other] {
						t.Errorf("%q is in %s, %q in %s", one, where[one], other, where[other])
					}
				}
			}
		})
	}
}

// collect reads a whole split, and checks the order of the rows and their answers.
func collect(t *testing.T, d *Arithmetic, split environment.Split, where map[string]string) {
	t.Helper()
	last := -1
	for i := range split.Tasks {
		row, err := d.Row(t.Context(), split.Name, i)
		if err != nil {
			t.Fatalf("Row(%s, %d): %v", split.Name, i, err)
		}
		var a, b int
		if _, err := fmt.Sscanf(row.Prompt, "What is %d + %d?", &a, &b); err != nil || row.Answer != fmt.Sprint(a+b) {
			t.Fatalf("Row(%s, %d) = %+v, which is not a sum", split.Name, i, row)
		}
		if position := a*100000 + b; position <= last {
			t.Errorf("Row(%s, %d) = %q is out of order", split.Name, i, row.Prompt)
		} else {
			last = position
		}
		if _, twice := where[row.Prompt]; twice {
			t.Errorf("%q occurs twice", row.Prompt)
		}
		where[row.Prompt] = split.Name
	}
}

func TestArithmeticRow(t *testing.T) {
	d := arithmetic(t, 99)
	cases := map[string]struct {
		split string
		index int64
		want  Row
		ok    bool
	}{
		"the first of train":           {split: "train", index: 0, want: NewRow("What is 0 + 0?", "0"), ok: true},
		"the last of train":            {split: "train", index: 7993, want: NewRow("What is 99 + 99?", "198"), ok: true},
		"an index beyond the end":      {split: "train", index: 7994},
		"a negative index":             {split: "test", index: -1},
		"an unknown split":             {split: "validation", index: 0},
		"an index beyond the test end": {split: "test", index: 2006},
		"a very large index":           {split: "test", index: 1 << 62},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := d.Row(t.Context(), tc.split, tc.index)
			var rowError *RowError
			if (err == nil) != tc.ok || (err != nil && !errors.As(err, &rowError)) {
				t.Fatalf("Row: err = %v, want success %v", err, tc.ok)
			}
			if fault := environment.AsFault(err); !tc.ok && !fault.Permanent {
				t.Errorf("Row: err = %v, want a permanent fault", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Row (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewArithmeticBounds(t *testing.T) {
	for maxOperand, ok := range map[int]bool{-1: false, 0: false, 1: true, 10000: false} {
		if _, err := NewArithmetic(maxOperand); (err == nil) != ok {
			t.Errorf("NewArithmetic(%d): err = %v, want success %v", maxOperand, err, ok)
		}
	}
}

func TestArithmeticTestShare(t *testing.T) {
	for _, maxOperand := range []int{99, 999} {
		d := arithmetic(t, maxOperand)
		splits := splits(t, d)
		share := float64(splits[0].Tasks) / float64(splits[0].Tasks+splits[1].Tasks)
		if share < 0.19 || share > 0.21 {
			t.Errorf("with operands to %d the test split has %.3f of the sums", maxOperand, share)
		}
	}
}
