// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"iter"
	"os"
	"path"
	"strings"
)

// Parent returns the lineage of the version before one, if something other than rows records it.
type Parent func(step int64, lineage string) (parent string, ok bool)

// Ancestor is a version of a chain.
type Ancestor struct {
	Step    int64
	Lineage string
	// Row is nil for version 0, and where the row is missing or cannot be read.
	Row *Row
}

// Chain yields a version and those that it descends from, the newest first. A row that is missing or damaged ends
// nothing as long as the parent of its version is known from elsewhere: from parent, or because the rows of the step
// before have one lineage only.
func (s *Store) Chain(step int64, lineage string, parent Parent) iter.Seq[Ancestor] {
	return func(yield func(Ancestor) bool) {
		for ok := true; ok; step-- {
			a := Ancestor{Step: step, Lineage: lineage}
			if row, err := s.Row(step, lineage); err == nil {
				a.Row = &row
			}
			if !yield(a) || step <= 0 {
				return
			}
			lineage, ok = s.parentOf(a, parent)
		}
	}
}

func (s *Store) parentOf(a Ancestor, parent Parent) (string, bool) {
	if a.Row != nil {
		return a.Row.Parent, a.Row.Parent != ""
	}
	if found, ok := parent(a.Step, a.Lineage); ok {
		return found, true
	}
	return s.onlyLineage(a.Step - 1)
}

// onlyLineage returns the lineage of the rows of a step if all of them have the same.
func (s *Store) onlyLineage(step int64) (string, bool) {
	entries, err := os.ReadDir(s.files.path(rowsDir))
	if err != nil {
		return "", false
	}
	prefix, _ := strings.CutSuffix(path.Base(rowName(step, "")), ".json")
	found := ""
	for _, entry := range entries {
		name, ok := strings.CutPrefix(strings.TrimSuffix(entry.Name(), ".json"), prefix)
		if !ok {
			continue
		}
		if found != "" {
			return "", false
		}
		found = name
	}
	return found, found != ""
}
