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

// allPages yields the items of all pages, one for each key, each page as it comes. It fetches no page after the caller
// has stopped.
func allPages[T any](fetch func(offset int) (page[T], error), key func(T) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		seen, stopped := map[string]bool{}, false
		take := func(items []T) bool {
			for _, item := range items {
				if seen[key(item)] {
					continue
				}
				seen[key(item)] = true
				if stopped = !yield(item, nil); stopped {
					return false
				}
			}
			return true
		}
		for range maxListings {
			steady, err := listOnce(fetch, key, take)
			if err != nil && !stopped {
				var zero T
				yield(zero, err)
			}
			if err != nil || stopped || steady {
				return
			}
		}
	}
}

// listOnce reads the pages from the first to the last, unless take stops it, and reports whether the listing did not
// change. Each page begins with the last item of the page before it; another item there shows that the rest has moved,
// even if the total is the same because one item was removed and another added.
func listOnce[T any](fetch func(offset int) (page[T], error), key func(T) string,
	take func([]T) bool) (steady bool, err error) {
	read, last, total := 0, "", -1
	steady = true
	for {
		next, err := fetch(max(read-1, 0))
		if err != nil {
			return false, err
		}
		added := next.Items
		if read > 0 && len(added) > 0 {
			if key(added[0]) == last {
				added = added[1:]
			} else {
				steady = false
			}
		}
		if !take(added) {
			return false, nil
		}
		if len(added) > 0 {
			read, last = read+len(added), key(added[len(added)-1])
		}
		if next.Cursor == nil {
			return true, nil
		}
		steady = steady && (total < 0 || total == next.Cursor.TotalCount)
		total = next.Cursor.TotalCount
		if len(added) == 0 || read >= total {
			return steady, nil
		}
	}
}
