// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
)

// metricsFile is metrics.jsonl: one line a step, in order. The line of step i holds what batch i, from 0,
// came to and how version i did when evaluated; so the final version may have a line of its evaluation
// alone.
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

// Rebuild puts metrics.jsonl together from the rows of the version's chain and the evaluations of its versions, whatever the
// file contained before, and evaluations.jsonl from these evaluations. A row that cannot be read costs its own metrics alone.
func (s *Store) Rebuild(step int64, lineage string, parent Parent) error {
	type version struct {
		step    int64
		lineage string
	}
	found := map[version][]Evaluation{}
	for _, e := range s.Evaluations() {
		found[version{e.Step, e.Lineage}] = append(found[version{e.Step, e.Lineage}], e)
	}
	lines := map[int64]map[string]float64{}
	var evaluations []Evaluation
	for v := range s.Chain(step, lineage, parent) {
		if v.Row != nil {
			merge(lines, v.Step-1, v.Row.Metrics)
		}
		for _, e := range found[version{v.Step, v.Lineage}] {
			merge(lines, v.Step, e.Metrics)
			evaluations = append(evaluations, e)
		}
	}
	return s.metrics.replace(lines, evaluations)
}

// replace writes metrics.jsonl and evaluations.jsonl anew.
func (m *metricsFile) replace(lines map[int64]map[string]float64, evaluations []Evaluation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.writeEvaluations(evaluations); err != nil {
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

// writeEvaluations replaces evaluations.jsonl.
func (m *metricsFile) writeEvaluations(list []Evaluation) error {
	slices.SortStableFunc(list, func(a, b Evaluation) int { return cmp.Compare(a.Step, b.Step) })
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	for _, e := range list {
		if err := encoder.Encode(e); err != nil {
			return fmt.Errorf("encoding evaluation of step %d: %w", e.Step, err)
		}
	}
	if err := atomicfile.WriteDurable(m.files.path(evaluationsName), fileMode, buffer.Bytes()); err != nil {
		return fmt.Errorf("writing evaluations: %w", err)
	}
	return nil
}

// AppendStep adds the line of batch step-1 of a committed row. Rebuild comes first.
func (s *Store) AppendStep(row Row) error {
	return s.metrics.add(row.Step-1, finite(row.Metrics))
}

// AppendEvaluation adds to the line of the version, which may be there already, and a line to evaluations.jsonl.
func (s *Store) AppendEvaluation(e Evaluation) error {
	e.Metrics = finite(e.Metrics)
	if err := s.metrics.add(e.Step, e.Metrics); err != nil {
		return err
	}
	return s.metrics.addEvaluation(e)
}

func (m *metricsFile) addEvaluation(e Evaluation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil || m.isReplaced() {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding evaluation of step %d: %w", e.Step, err)
	}
	file, err := os.OpenFile(m.files.path(evaluationsName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("appending evaluation: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("appending evaluation: %w", err)
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
	merge(lines, step, values)
	return m.write(lines)
}

func (m *metricsFile) append(step int64, values map[string]float64) error {
	lines := map[int64]map[string]float64{}
	merge(lines, step, values)
	line, err := json.Marshal(lines[step])
	if err != nil {
		return fmt.Errorf("encoding metrics of step %d: %w", step, err)
	}
	if _, err := m.file.Write(append(line, '\n')); err != nil {
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

// read parses the file; a line that a crash cut short is left out, since the next Rebuild restores it.
func (m *metricsFile) read() (map[int64]map[string]float64, error) {
	data, err := os.ReadFile(m.files.path(metricsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	lines := map[int64]map[string]float64{}
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line map[string]float64
		if json.Unmarshal(scanner.Bytes(), &line) == nil {
			merge(lines, int64(line[stepKey]), line)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return lines, nil
}

func (m *metricsFile) write(lines map[int64]map[string]float64) error {
	var buffer bytes.Buffer
	last := int64(-1)
	encoder := json.NewEncoder(&buffer)
	for _, step := range slices.Sorted(maps.Keys(lines)) {
		if err := encoder.Encode(lines[step]); err != nil {
			return fmt.Errorf("encoding metrics of step %d: %w", step, err)
		}
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

func merge(lines map[int64]map[string]float64, step int64, values map[string]float64) {
	if lines[step] == nil {
		lines[step] = map[string]float64{stepKey: float64(step)}
	}
	for name, value := range values {
		if name != stepKey {
			lines[step][name] = value
		}
	}
}
