// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// metricsFile is metrics.jsonl: one line a step, in order. The line of step i has the metrics of batch i, from 0,
// and those of the evaluation of version i; so the line of the final version may have only metrics of its
// evaluation.
//
// The file that this process put together last is kept open and added to. When a later attempt puts it
// together anew, by renaming, that is another file, which a learner that was stopped and resumes does not
// change.
type metricsFile struct {
	mu    sync.Mutex
	files *folder
	file  *os.File
	// last step that has a line.
	last int64
}

const (
	stepKey         = "step"
	metricsName     = "metrics.jsonl"
	evaluationsName = "evaluations.jsonl"
)

// Rebuild puts metrics.jsonl together from the rows of the version's chain and the evaluations of its versions,
// whatever the file contained before, evaluations.jsonl from these evaluations, and rows.jsonl from these rows. A row
// that cannot be read costs its own metrics alone.
func (s *Store) Rebuild(at rl.Version, parent Parent) error {
	found := map[rl.Version][]Evaluation{}
	for _, e := range s.Evaluations() {
		found[e.Version] = append(found[e.Version], e)
	}
	lines := metricLines{}
	var evaluations []Evaluation
	var rows []summary
	for v := range s.Chain(at, parent) {
		if v.Row != nil {
			rows = append(rows, summary{*v.Row, v.line})
			if err := lines.mergeLine(v.Step-1, v.line); err != nil {
				return err
			}
		}
		for _, e := range found[v.Version] {
			if err := lines.merge(v.Step, e.Metrics); err != nil {
				return err
			}
			evaluations = append(evaluations, e)
		}
	}
	slices.Reverse(rows)
	return s.metrics.replace(lines, evaluations, rows)
}

// replace writes metrics.jsonl, evaluations.jsonl and rows.jsonl anew.
func (m *metricsFile) replace(lines metricLines, evaluations []Evaluation, rows []summary) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortStableFunc(evaluations, func(a, b Evaluation) int { return cmp.Compare(a.Step, b.Step) })
	if err := writeLines(m.files.path(evaluationsName), evaluations, Evaluation.encode); err != nil {
		return err
	}
	if err := writeLines(m.files.path(rowsName), rows, summary.encode); err != nil {
		return err
	}
	if err := m.write(lines); err != nil {
		return err
	}
	if m.files.remote == nil {
		return nil
	}
	return m.files.remote.uploadMetrics()
}

// writeLines replaces a file by a line for each element of a list.
func writeLines[T any](file string, list []T, encode func(T) ([]byte, error)) error {
	var lines []byte
	for _, element := range list {
		line, err := encode(element)
		if err != nil {
			return err
		}
		lines = append(lines, line...)
	}
	if err := atomicfile.WriteDurable(file, fileMode, lines); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(file), err)
	}
	return nil
}

// encode returns the line of evaluations.jsonl.
func (e Evaluation) encode() ([]byte, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding evaluation of step %d: %w", e.Step, err)
	}
	return append(data, '\n'), nil
}

// AppendStep adds the line of batch step-1 of a committed row, and the row to rows.jsonl. Rebuild comes first.
func (s *Store) AppendStep(row Row) error {
	row.Metrics = finite.Only(row.Metrics)
	if err := s.metrics.add(row.Step-1, row.Metrics); err != nil {
		return err
	}
	found, err := newSummary(row)
	if err != nil {
		return err
	}
	line, err := found.encode()
	if err != nil {
		return err
	}
	return s.metrics.appendTo(rowsName, line)
}

// AppendEvaluation adds to the line of the version, which may be there already, and a line to evaluations.jsonl.
func (s *Store) AppendEvaluation(e Evaluation) error {
	e.Metrics = finite.Only(e.Metrics)
	if err := s.metrics.add(e.Step, e.Metrics); err != nil {
		return err
	}
	line, err := e.encode()
	if err != nil {
		return err
	}
	return s.metrics.appendTo(evaluationsName, line)
}

// appendTo adds a line to a file beside metrics.jsonl, unless a later attempt has put them together anew.
func (m *metricsFile) appendTo(name string, line []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil || m.isReplaced() {
		return nil
	}
	file, err := os.OpenFile(m.files.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("adding to %s: %w", name, err)
	}
	_, err = file.Write(line)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("adding to %s: %w", name, err)
	}
	return nil
}

// add appends a line where its step is new, and otherwise rewrites the file with the line completed.
func (m *metricsFile) add(step int64, values map[string]float64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil || m.isReplaced() {
		return nil // whoever put it together anew has the rows to do it again
	}
	if m.files.remote != nil {
		defer m.files.remote.uploadMetricsInTurn()
	}
	if step > m.last {
		return m.append(step, values)
	}
	lines, err := m.read()
	if err != nil {
		return err
	}
	if err := lines.merge(step, values); err != nil {
		return err
	}
	return m.write(lines)
}

func (m *metricsFile) append(step int64, values map[string]float64) error {
	lines := metricLines{}
	if err := lines.merge(step, values); err != nil {
		return err
	}
	if _, err := m.file.Write(append(lines[step], '\n')); err != nil {
		return fmt.Errorf("appending metrics of step %d: %w", step, err)
	}
	m.last = step
	return nil
}

// isReplaced reports whether the file at the path is no longer the one that is open.
func (m *metricsFile) isReplaced() bool {
	ours, err := m.file.Stat()
	if err != nil {
		return true
	}
	there, err := os.Stat(m.files.path(metricsName))
	return err != nil || !os.SameFile(ours, there)
}

// read reads the file; a line that a crash cut short is left out, since the next Rebuild restores it.
func (m *metricsFile) read() (metricLines, error) {
	data, err := os.ReadFile(m.files.path(metricsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	lines := metricLines{}
	for text := range bytes.Lines(data) {
		var line struct {
			Step float64 `json:"step"`
		}
		if json.Unmarshal(text, &line) == nil {
			lines[int64(line.Step)] = bytes.TrimSuffix(text, []byte("\n"))
		}
	}
	return lines, nil
}

func (m *metricsFile) write(lines metricLines) error {
	var buffer bytes.Buffer
	last := int64(-1)
	for _, step := range slices.Sorted(maps.Keys(lines)) {
		buffer.Write(lines[step])
		buffer.WriteByte('\n')
		last = step
	}
	file, err := atomicfile.ReplaceDurable(m.files.path(metricsName), fileMode, buffer.Bytes())
	if err != nil {
		return fmt.Errorf("writing metrics: %w", err)
	}
	if m.file != nil {
		_ = m.file.Close()
	}
	m.file, m.last = file, last
	return nil
}

// metricLines are the lines of metrics.jsonl, encoded, by their steps.
type metricLines map[int64][]byte

// mergeLine adds an encoded line to that of its step.
func (l metricLines) mergeLine(step int64, line []byte) error {
	if l[step] == nil {
		l[step] = line
		return nil
	}
	var values map[string]float64
	if err := json.Unmarshal(line, &values); err != nil {
		return fmt.Errorf("decoding metrics of step %d: %w", step, err)
	}
	return l.merge(step, values)
}

// merge adds values to the line of a step.
func (l metricLines) merge(step int64, values map[string]float64) error {
	line := map[string]float64{}
	if old := l[step]; old != nil {
		if err := json.Unmarshal(old, &line); err != nil {
			return fmt.Errorf("decoding metrics of step %d: %w", step, err)
		}
	}
	maps.Copy(line, values)
	line[stepKey] = float64(step)
	encoded, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encoding metrics of step %d: %w", step, err)
	}
	l[step] = encoded
	return nil
}
