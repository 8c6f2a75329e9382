// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"iter"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// maxListings limits how often a listing that keeps changing is read.
const maxListings = 5

// page is a part of a listing, or all of it if there is no cursor.
type page[T any] struct {
	Items  []T
	Cursor *tinker.Cursor
}

// allPages yields the items of all pages, one for each key.
func allPages[T any](fetch func(offset int) (page[T], error), key func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		seen := map[string]bool{}
		for range maxListings {
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
func listOnce[T any](fetch func(offset int) (page[T], error), key func(T) string) (items []T, steady bool, err error) {
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
