// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// lineFiles are the files with a line for each committed step, and for each evaluation. Each line is written once.
type lineFiles struct {
	mu sync.Mutex
	// metrics has the metrics of batch i, from 0, on the line of step i.
	metrics, rows, evaluations lineFile
	// at is the version whose step was added last.
	at rl.Version
}

const (
	stepKey         = "step"
	metricsName     = "metrics.jsonl"
	evaluationsName = "evaluations.jsonl"
)

func newLineFiles(files *folder) lineFiles {
	file := func(name string) lineFile { return lineFile{files: files, name: name} }
	return lineFiles{metrics: file(metricsName), rows: file(rowsName), evaluations: file(evaluationsName)}
}

func (l *lineFiles) all() []*lineFile { return []*lineFile{&l.metrics, &l.rows, &l.evaluations} }

// areAt reports whether this process has added all steps up to a version, and nothing is missing or follows them.
func (l *lineFiles) areAt(v rl.Version) bool {
	for _, file := range l.all() {
		if file.lacks || !file.isOpen() {
			return false
		}
	}
	return l.at == v
}

// AppendStep adds the metrics of a committed row to metrics.jsonl, as the line of batch Step-1, and the row to
// rows.jsonl. Rebuild has to be called before.
func (s *Store) AppendStep(row Row) error {
	row.Metrics = finite.Only(row.Metrics)
	added, err := newSummary(row)
	if err != nil {
		return err
	}
	line, err := added.encode()
	if err != nil {
		return err
	}
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	err = errors.Join(s.lines.metrics.add(append(added.line, '\n')), s.lines.rows.add(line))
	s.lines.at = row.Version
	s.uploadInTurn()
	return err
}

// AppendEvaluation adds the line of an evaluation. Rebuild has to be called before.
func (s *Store) AppendEvaluation(e Evaluation) error {
	e.Metrics = finite.Only(e.Metrics)
	line, err := e.encode()
	if err != nil {
		return err
	}
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	err = s.lines.evaluations.add(line)
	s.uploadInTurn()
	return err
}

// encode returns the line of evaluations.jsonl.
func (e Evaluation) encode() ([]byte, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding evaluation of step %d: %w", e.Step, err)
	}
	return append(data, '\n'), nil
}

// metricsLine returns the line of a step in metrics.jsonl, without its newline.
func metricsLine(step int64, values map[string]float64) ([]byte, error) {
	line := map[string]float64{}
	maps.Copy(line, values)
	line[stepKey] = float64(step)
	encoded, err := json.Marshal(line)
	if err != nil {
		return nil, fmt.Errorf("encoding metrics of step %d: %w", step, err)
	}
	return encoded, nil
}
