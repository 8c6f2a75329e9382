// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages reads listings of the Tinker API, which come in pages and may change while they are read.
package pages

import (
	"iter"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// MaxPasses limits how often a listing that keeps changing is read.
const MaxPasses = 5

// Page is a part of a listing, or all of it if there is no cursor.
type Page[T any] struct {
	Items  []T
	Cursor *tinker.Cursor
}

// All yields the items of all pages, one for each key.
func All[T any](fetch func(offset int) (Page[T], error), key func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		seen := map[string]bool{}
		for range MaxPasses {
			items, steady, err := listOnce(fetch, key)
			for _, item := range items {
				if seen[key(item)] {
					continue
				}
				seen[key(item)] = true
				if !yield(item, nil) {
					return
				}
			}
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			if steady {
				return
			}
		}
	}
}

// listOnce reads the pages from the first to the last, and reports whether the listing did not change. Each page begins
// with the last item of the page before it; another item there shows that the rest has moved, even if the total is
// the same because one item was removed and another added.
func listOnce[T any](fetch func(offset int) (Page[T], error), key func(T) string) (items []T, steady bool, err error) {
	total := -1
	steady = true
	for {
		next, err := fetch(max(len(items)-1, 0))
		if err != nil {
			return items, false, err
		}
		added := next.Items
		if len(items) > 0 && len(added) > 0 {
			if key(added[0]) == key(items[len(items)-1]) {
				added = added[1:]
			} else {
				steady = false
			}
		}
		items = append(items, added...)
		if next.Cursor == nil {
			return items, true, nil
		}
		steady = steady && (total < 0 || total == next.Cursor.TotalCount)
		total = next.Cursor.TotalCount
		if len(added) == 0 || len(items) >= total {
			return items, steady, nil
		}
	}
}
