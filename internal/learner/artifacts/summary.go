// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// rowsName is the file with a line for each committed row: the row without manifest and metrics, a tab, and the row's
// line of metrics.jsonl. A learner that resumes reads this file instead of a file for each step. It contains nothing
// that rows do not contain, so that any line of it may be missing.
const rowsName = "rows.jsonl"

// summary is a row without manifest and metrics, and the line that the row adds to metrics.jsonl.
type summary struct {
	Row
	line []byte
}

// newSummary returns the summary of a row that was read from its own file.
func newSummary(row Row) (summary, error) {
	line, err := metricsLine(row.Step-1, row.Metrics)
	if err != nil {
		return summary{}, err
	}
	row.Manifest, row.Metrics = nil, nil
	return summary{Row: row, line: line}, nil
}

// encode returns the line of rows.jsonl.
func (s summary) encode() ([]byte, error) {
	data, err := json.Marshal(s.Row)
	if err != nil {
		return nil, fmt.Errorf("encoding row %d: %w", s.Step, err)
	}
	return slices.Concat(data, []byte("\t"), s.line, []byte("\n")), nil
}

func decodeSummaries(data []byte) map[rl.Version]summary {
	found := map[rl.Version]summary{}
	for text := range bytes.Lines(data) {
		if text, whole := bytes.CutSuffix(text, []byte("\n")); whole {
			if s, ok := decodeSummary(text); ok {
				found[s.Version] = s
			}
		}
	}
	return found
}

// decodeSummary decodes a line of rows.jsonl without its newline.
func decodeSummary(text []byte) (s summary, ok bool) {
	row, line, ok := bytes.Cut(text, []byte("\t"))
	s.line = line
	return s, ok && json.Valid(line) && json.Unmarshal(row, &s.Row) == nil
}

// summaries reads rows.jsonl from its end, as far as it is needed. Lines that are damaged are left out, and so is the
// file if it cannot be read.
type summaries struct {
	lines *backward
	// found are the summaries that were read and not taken. reached is the step down to which the file was read.
	found   map[rl.Version]summary
	reached int64
}

func (f *folder) summaries() *summaries {
	return &summaries{lines: f.backwardLines(rowsName), found: map[rl.Version]summary{}, reached: math.MaxInt64}
}

// readTo reads the lines of a step and of all steps after it.
func (s *summaries) readTo(step int64) {
	for s.reached >= step {
		text, _, whole, ok := s.lines.next()
		if !ok {
			s.reached = -1
			return
		}
		row, ok := decodeSummary(text)
		if !whole || !ok {
			continue
		}
		s.reached = row.Step
		if _, newer := s.found[row.Version]; !newer {
			s.found[row.Version] = row
		}
	}
}

// take returns the summary of a version, and forgets it.
func (s *summaries) take(v rl.Version) (summary, bool) {
	s.readTo(v.Step)
	found, ok := s.found[v]
	delete(s.found, v)
	return found, ok
}
