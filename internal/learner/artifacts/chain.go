// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Parent returns the lineage of the version before v, if something other than rows records it.
type Parent func(v rl.Version) (parent rl.Lineage, ok bool)

// Ancestor is a version of a chain.
type Ancestor struct {
	rl.Version

	// Row lacks its manifest, and its metrics, which Metrics returns. It is nil for version 0, and if the row is missing
	// or cannot be read.
	Row *Row
	// line is the row's line of metrics.jsonl.
	line []byte
}

// Metrics returns the metrics of the row, or nil if it has no metrics.
func (a Ancestor) Metrics() map[string]float64 {
	var metrics map[string]float64
	if json.Unmarshal(a.line, &metrics) != nil {
		return nil
	}
	delete(metrics, stepKey)
	return metrics
}

// Chain yields a version and its ancestors, the newest first. A missing or damaged row does not end the chain as long
// as the parent of its version is known from elsewhere: from parent, or because all rows of the step before have the
// same lineage.
func (s *Store) Chain(v rl.Version, parent Parent) iter.Seq[Ancestor] {
	return func(yield func(Ancestor) bool) {
		w := walk{store: s, summaries: s.files.summaries(), parent: parent}
		defer w.summaries.lines.close()
		for n, ok := 0, true; ok; n, v.Step = n+1, v.Step-1 {
			a := w.ancestor(v, n < changing)
			if !yield(a) || v.Step <= 0 {
				return
			}
			v.Lineage, ok = w.parentOf(a)
		}
	}
}

// walk reads the versions of a chain.
type walk struct {
	store     *Store
	summaries *summaries
	parent    Parent
}

// ancestor reads a version's row from its own file and from rows.jsonl, in this order if the row is recent.
func (w walk) ancestor(v rl.Version, recent bool) Ancestor {
	a := Ancestor{Version: v}
	if v.Step <= 0 {
		return a
	}
	sources := []func(rl.Version) (summary, bool){w.summaries.take, w.row}
	if recent {
		sources[0], sources[1] = sources[1], sources[0]
	}
	for _, source := range sources {
		if found, ok := source(v); ok {
			a.Row, a.line = &found.Row, found.line
			break
		}
	}
	return a
}

func (w walk) row(v rl.Version) (summary, bool) {
	row, err := w.store.Row(v)
	if err != nil {
		return summary{}, false
	}
	found, err := newSummary(row)
	return found, err == nil
}

func (w walk) parentOf(a Ancestor) (rl.Lineage, bool) {
	if a.Row != nil {
		return a.Row.Parent, !a.Row.Parent.IsZero()
	}
	if found, ok := w.parent(a.Version); ok {
		return found, true
	}
	return w.onlyLineage(a.Step - 1)
}

// onlyLineage returns the lineage of the rows of a step if all of them have the same.
func (w walk) onlyLineage(step int64) (rl.Lineage, bool) {
	entries, err := os.ReadDir(w.store.files.path(rowsDir))
	if err != nil {
		return rl.Lineage{}, false
	}
	found := map[rl.Lineage]bool{}
	for _, entry := range entries {
		text, ok := strings.CutPrefix(strings.TrimSuffix(entry.Name(), ".json"), fmt.Sprintf("%09d-", step))
		if lineage, err := rl.ParseLineage(text); ok && err == nil {
			found[lineage] = true
		}
	}
	w.summaries.readTo(step)
	for v := range w.summaries.found {
		if v.Step == step {
			found[v.Lineage] = true
		}
	}
	for lineage := range found {
		return lineage, len(found) == 1
	}
	return rl.Lineage{}, false
}
