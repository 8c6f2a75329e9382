// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
)

// mostIDs bounds the rows of a split that are compared: their digests take 32 MiB.
const mostIDs = 2 << 20

// Duplicates are rows of a split that have the id of an earlier row.
type Duplicates struct {
	Split string
	Count int64
	// ID is an id that two rows have. First and Second are the indexes of these rows, from 0.
	ID            string
	First, Second int64
}

// String says how many rows there are, and names two of them, numbered from 1 as lines of files are.
func (d Duplicates) String() string {
	return fmt.Sprintf("%d rows of split %q have the id of an earlier row, such as row %d, which has the id %q of row %d",
		d.Count, d.Split, d.Second+1, d.ID, d.First+1)
}

// FindDuplicates returns the first split with rows whose ids are not unique, or nil. If the first row of a split has
// no id, FindDuplicates reads no other row of it. An error comes from a method of rows.
func FindDuplicates(ctx context.Context, rows Dataset) (*Duplicates, error) {
	splits, err := rows.Splits(ctx)
	if err != nil {
		return nil, err
	}
	for _, split := range splits {
		found, err := duplicatesOf(ctx, rows, split.Name, min(split.Tasks, mostIDs))
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

type digestOfID struct {
	digest uint64
	index  int64
}

func duplicatesOf(ctx context.Context, rows Dataset, split string, count int64) (*Duplicates, error) {
	seed := maphash.MakeSeed()
	var all []digestOfID
	for index := range count {
		row, err := rows.Row(ctx, split, index)
		if err != nil {
			return nil, err
		}
		if row.ID != "" {
			all = append(all, digestOfID{maphash.String(seed, row.ID), index})
		} else if index == 0 {
			return nil, nil
		}
	}
	slices.SortFunc(all, func(a, b digestOfID) int {
		return cmp.Or(cmp.Compare(a.digest, b.digest), cmp.Compare(a.index, b.index))
	})
	var found *Duplicates
	for i := 1; i < len(all); i++ {
		if all[i].digest != all[i-1].digest {
			continue
		}
		if found == nil || all[i].index < found.Second {
			count := int64(0)
			if found != nil {
				count = found.Count
			}
			found = &Duplicates{Split: split, Count: count, First: all[i-1].index, Second: all[i].index}
		}
		found.Count++
	}
	if found == nil {
		return nil, nil
	}
	row, err := rows.Row(ctx, split, found.Second)
	found.ID = row.ID
	return found, err
}
