// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
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
	lines := metricLines{}
	if err := lines.merge(row.Step-1, row.Metrics); err != nil {
		return summary{}, err
	}
	row.Manifest, row.Metrics = nil, nil
	return summary{Row: row, line: lines[row.Step-1]}, nil
}

// encode returns the line of rows.jsonl.
func (s summary) encode() ([]byte, error) {
	data, err := json.Marshal(s.Row)
	if err != nil {
		return nil, fmt.Errorf("encoding row %d: %w", s.Step, err)
	}
	return slices.Concat(data, []byte("\t"), s.line, []byte("\n")), nil
}

// summaries reads rows.jsonl. Lines that are damaged are left out, and so is the file if it cannot be read.
func (f *folder) summaries() map[rl.Version]summary {
	data, err := os.ReadFile(f.path(rowsName))
	if err != nil {
		return nil
	}
	return decodeSummaries(data)
}

func decodeSummaries(data []byte) map[rl.Version]summary {
	found := map[rl.Version]summary{}
	for text := range bytes.Lines(data) {
		text, whole := bytes.CutSuffix(text, []byte("\n"))
		row, line, ok := bytes.Cut(text, []byte("\t"))
		s := summary{line: line}
		if whole && ok && json.Valid(line) && json.Unmarshal(row, &s.Row) == nil {
			found[s.Version] = s
		}
	}
	return found
}
