// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Rebuild makes metrics.jsonl and rows.jsonl end with a version, and evaluations.jsonl contain the evaluations of the
// versions that it descends from. The files are read from their end until enough lines in a row agree with the rows;
// the lines after these are written again. An unreadable row costs only its own line.
func (s *Store) Rebuild(at rl.Version, parent Parent) error {
	if r := s.files.remote; r != nil {
		r.upload.Lock()
		defer r.upload.Unlock()
	}
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	if !s.lines.areAt(at) {
		if err := s.rebuild(at, parent); err != nil {
			return err
		}
	}
	if s.files.remote == nil {
		return nil
	}
	return s.uploadLines(s.lines.sizes())
}

func (s *Store) rebuild(at rl.Version, parent Parent) error {
	rows, metrics := newJoin(s.files, rowsName, rowLine), newJoin(s.files, metricsName, stepLine)
	defer rows.lines.close()
	defer metrics.lines.close()
	next, stop := iter.Pull(s.Chain(at, parent))
	defer stop()
	chain := descent{next: next, lineages: map[int64]rl.Lineage{}, lowest: math.MaxInt64}
	for !rows.isDone() || !metrics.isDone() {
		v, ok := chain.step()
		if !ok {
			break
		}
		if v.Row == nil {
			continue
		}
		row, err := summary{*v.Row, v.line}.encode()
		if err != nil {
			return err
		}
		rows.take(expected{v.Version, row})
		metrics.take(expected{v.Version, append(bytes.Clone(v.line), '\n')})
	}
	kept, fresh, err := s.evaluationLines(&chain)
	if err != nil {
		return err
	}
	if err := s.lines.evaluations.proceed(kept, fresh); err != nil {
		return err
	}
	if err := s.lines.rows.proceed(rows.result()); err != nil {
		return err
	}
	if err := s.lines.metrics.proceed(metrics.result()); err != nil {
		return err
	}
	s.lines.at = at
	return nil
}

// descent walks from a version down to its ancestors.
type descent struct {
	next     func() (Ancestor, bool)
	lineages map[int64]rl.Lineage
	// lowest is the step that the walk has reached.
	lowest int64
}

func (d *descent) step() (Ancestor, bool) {
	v, ok := d.next()
	if ok {
		d.lineages[v.Step], d.lowest = v.Lineage, v.Step
	}
	return v, ok
}

// contains reports whether the walk leads to a version.
func (d *descent) contains(v rl.Version) bool {
	for d.lowest > v.Step {
		if _, ok := d.step(); !ok {
			break
		}
	}
	lineage, ok := d.lineages[v.Step]
	return ok && lineage == v.Lineage
}

// evaluationLines returns how many bytes of evaluations.jsonl stay, and the lines that follow them. A line of a step
// that the walk did not reach stays.
func (s *Store) evaluationLines(chain *descent) (kept int64, fresh []byte, err error) {
	var evaluations []Evaluation
	listed := map[string]bool{}
	whole := true
	reached := chain.lowest
	data, _ := os.ReadFile(s.files.path(evaluationsName))
	for text := range bytes.Lines(data) {
		e, ok := decodeEvaluation(text)
		if !ok || e.Step >= reached && !chain.contains(e.Version) {
			whole = false
			continue
		}
		evaluations = append(evaluations, e)
		listed[evaluationName(e.Version, e.Digest)] = true
	}
	old := len(evaluations)
	for _, e := range s.unlisted(listed) {
		if chain.contains(e.Version) {
			evaluations = append(evaluations, e)
		}
	}
	if kept = int64(len(data)); !whole {
		kept, old = 0, 0
	}
	added := evaluations[old:]
	slices.SortStableFunc(added, func(a, b Evaluation) int { return cmp.Compare(a.Step, b.Step) })
	for _, e := range added {
		line, err := e.encode()
		if err != nil {
			return 0, nil, err
		}
		fresh = append(fresh, line...)
	}
	return kept, fresh, nil
}

func decodeEvaluation(text []byte) (e Evaluation, ok bool) {
	line, whole := bytes.CutSuffix(text, []byte("\n"))
	return e, whole && json.Unmarshal(line, &e) == nil
}

// Evaluations reads the results of all evaluations: from evaluations.jsonl or, if a result is not in this file, from
// its own file. Results that cannot be read are left out.
func (s *Store) Evaluations() []Evaluation {
	var list []Evaluation
	listed := map[string]bool{}
	data, _ := os.ReadFile(s.files.path(evaluationsName))
	for text := range bytes.Lines(data) {
		if e, ok := decodeEvaluation(text); ok {
			list = append(list, e)
			listed[evaluationName(e.Version, e.Digest)] = true
		}
	}
	return append(list, s.unlisted(listed)...)
}

// unlisted reads the results whose files are not listed.
func (s *Store) unlisted(listed map[string]bool) []Evaluation {
	entries, _ := os.ReadDir(s.files.path(evaluationsDir))
	var list []Evaluation
	for _, entry := range entries {
		name := path.Join(evaluationsDir, entry.Name())
		var e Evaluation
		if !listed[name] && strings.HasSuffix(name, ".json") && s.files.readJSON(name, &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

// expected is the line that a file should have for a version, with its newline.
type expected struct {
	version rl.Version
	line    []byte
}

// join finds how much of a file with a line for each step agrees with the steps, the newest first.
type join struct {
	lines *backward
	// step returns the step of a line, and whether the line agrees with the expected one.
	step func(line []byte, e expected) (step int64, agrees bool)
	// line is the next line, which ends at end. read says that there is one.
	line        []byte
	end         int64
	whole, read bool
	// fresh are the lines of the steps so far. agreed is the number of the last of these lines that the file has in a
	// row. The first of the agreeing lines is fresh[mark]; in the file it ends at kept.
	fresh  [][]byte
	agreed int
	mark   int
	kept   int64
}

func newJoin(files *folder, name string, step func([]byte, expected) (int64, bool)) *join {
	j := &join{lines: files.backwardLines(name), step: step}
	j.advance()
	return j
}

func (j *join) advance() { j.line, j.end, j.whole, j.read = j.lines.next() }

// isDone reports whether enough lines in a row agree.
func (j *join) isDone() bool { return j.agreed >= changing }

// take compares the line of a step with the file. Each call has an older step than the call before.
func (j *join) take(e expected) {
	agrees := false
	for j.read {
		var step int64
		if step, agrees = j.step(j.line, e); j.whole && (agrees || step < e.version.Step) {
			break
		}
		j.agreed, agrees = 0, false
		j.advance()
	}
	switch {
	case !agrees:
		j.agreed = 0
	case j.agreed == 0:
		j.mark, j.kept, j.agreed = len(j.fresh), j.end, 1
	default:
		j.agreed++
	}
	j.fresh = append(j.fresh, e.line)
	if agrees {
		j.advance()
	}
}

// result returns how many bytes of the file stay, and the lines that follow them.
func (j *join) result() (kept int64, fresh []byte) {
	if j.isDone() || j.agreed > 0 && !j.read {
		kept, j.fresh = j.kept, j.fresh[:j.mark]
	}
	slices.Reverse(j.fresh)
	return kept, bytes.Join(j.fresh, nil)
}

// rowLine compares lines of rows.jsonl. The line in the file has the completed row, which the row's own file may lack.
func rowLine(line []byte, e expected) (int64, bool) {
	row, ok := decodeSummary(line)
	if !ok {
		return math.MaxInt64, false
	}
	return row.Step, row.Version == e.version
}

// stepLine compares lines of metrics.jsonl, whose steps are numbers of batches.
func stepLine(line []byte, e expected) (int64, bool) {
	if bytes.Equal(line, bytes.TrimSuffix(e.line, []byte("\n"))) {
		return e.version.Step, true
	}
	var found struct {
		Step float64 `json:"step"`
	}
	if json.Unmarshal(line, &found) != nil {
		return math.MaxInt64, false
	}
	return int64(found.Step) + 1, false
}
