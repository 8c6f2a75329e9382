// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/shuffle"
)

// Rows are the rows of one source: a file, or a split that the data itself has.
type Rows interface {
	// Count returns the number of rows.
	Count() int64
	// Columns returns the columns of a row, which the caller may keep. Indexes begin at 0.
	Columns(ctx context.Context, index int64) (map[string]any, error)
}

// CutError reports that a split cannot be cut out.
type CutError struct {
	// Index is the position of the cut in the list.
	Index           int
	Name            string
	Problem, Repair string
}

// Error implements error.
func (e *CutError) Error() string {
	return fmt.Sprintf("dataset.splits[%d] (%s): %s: %s", e.Index, e.Name, e.Problem, e.Repair)
}

// Table is a Dataset of rows that exist already.
type Table struct {
	format *Format
	splits map[string]split
}

// split is the rows of a source in an order.
type split struct {
	rows Rows
	// order has the indexes of the rows. If it is nil, the split has count rows, beginning at the index first.
	order        []uint32
	first, count int64
}

// at returns the index of the row at a position.
func (s split) at(position int64) int64 {
	if s.order != nil {
		return int64(s.order[position])
	}
	return s.first + position
}

// NewTable returns the splits that the cuts describe, or one for each source if there are no cuts. An error is a
// *CutError.
func NewTable(format *Format, sources map[string]Rows, cuts []settings.DataSplit) (*Table, error) {
	table := &Table{format: format, splits: map[string]split{}}
	if len(cuts) == 0 {
		for name, rows := range sources {
			table.splits[name] = split{rows: rows, count: rows.Count()}
		}
		return table, nil
	}
	for _, ofOthers := range []bool{false, true} {
		for i, c := range cuts {
			if (c.From != "") != ofOthers {
				continue
			}
			base, err := table.base(sources, i, c)
			if err == nil {
				table.splits[c.Name], err = base.cut(i, c)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return table, nil
}

// base returns the rows that a split is cut out of.
func (t *Table) base(sources map[string]Rows, index int, c settings.DataSplit) (split, error) {
	if c.From != "" {
		base, ok := t.splits[c.From]
		if !ok || c.From == c.Name {
			return split{}, &CutError{index, c.Name, fmt.Sprintf(
				"no other split of the list has the name %q and no 'from' itself", c.From), "correct from, or use source"}
		}
		return base, nil
	}
	rows, ok := sources[c.Source]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(sources)), ", ")
		return split{}, &CutError{index, c.Name, fmt.Sprintf("the data has no split %q; it has %s", c.Source, known),
			"correct source"}
	}
	return split{rows: rows, count: rows.Count()}, nil
}

func (s split) cut(index int, c settings.DataSplit) (split, error) {
	left := s.count - c.Skip
	if left <= 0 {
		return split{}, &CutError{index, c.Name, fmt.Sprintf("skip is %d, but there are only %d rows, so that none is left",
			c.Skip, s.count), "lower skip"}
	}
	if c.Take != nil {
		left = min(left, *c.Take)
	}
	if c.ShuffleSeed == nil {
		if s.order != nil {
			s.order = s.order[c.Skip : c.Skip+left]
		}
		s.first, s.count = s.first+c.Skip, left
		return s, nil
	}
	if s.count > math.MaxUint32 {
		return split{}, &CutError{index, c.Name, fmt.Sprintf("%d rows are too many to be shuffled", s.count),
			"remove shuffleSeed"}
	}
	order := shuffle.Permutation(uint64(*c.ShuffleSeed), s.count)[c.Skip : c.Skip+left : c.Skip+left]
	for i, position := range order {
		order[i] = uint32(s.at(int64(position)))
	}
	return split{rows: s.rows, order: order, count: left}, nil
}

// Splits implements Dataset.
func (t *Table) Splits(context.Context) ([]environment.Split, error) {
	splits := make([]environment.Split, 0, len(t.splits))
	for name, s := range t.splits {
		splits = append(splits, environment.Split{Name: name, Tasks: s.count})
	}
	slices.SortFunc(splits, func(a, b environment.Split) int { return cmp.Compare(a.Name, b.Name) })
	return splits, nil
}

// Row implements Dataset.
func (t *Table) Row(ctx context.Context, name string, index int64) (Row, error) {
	s, ok := t.splits[name]
	if !ok || index < 0 || index >= s.count {
		return Row{}, noRow(name, index)
	}
	columns, err := s.rows.Columns(ctx, s.at(index))
	if err != nil {
		return Row{}, rowFault(ctx, name, index, err)
	}
	row, err := t.format.Row(columns)
	if err != nil {
		return Row{}, rowFault(ctx, name, index, err)
	}
	return row, nil
}

// rowFault turns an error into a fault, unless it is the context's.
func rowFault(ctx context.Context, name string, index int64, err error) error {
	if ctx.Err() != nil {
		return err
	}
	var column *ColumnError
	return &environment.Fault{Permanent: errors.As(err, &column), Err: fmt.Errorf("reading row %d of split %q: %w",
		index+1, name, err)}
}

// Generated is one split of a generated data set as a source of columns, so that its rows can be cut and formatted.
type Generated struct {
	Dataset Dataset
	Split   environment.Split
}

// Count implements Rows.
func (g Generated) Count() int64 { return g.Split.Tasks }

// Columns implements Rows.
func (g Generated) Columns(ctx context.Context, index int64) (map[string]any, error) {
	row, err := g.Dataset.Row(ctx, g.Split.Name, index)
	if err != nil {
		return nil, err
	}
	return row.AllFields(), nil
}

var (
	_ Dataset = (*Table)(nil)
	_ Rows    = Generated{}
)
