// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Add adds the row of a step and its episodes, which may be nil. They become durable with WriteRows.
func (j *Journal) Add(row Row, episodes []byte) {
	j.rows = append(j.rows, stepRow{row, episodes})
}

// Discard drops the rows and lines that wait: their steps are made again.
func (j *Journal) Discard() { j.rows, j.lines = nil, nil }

// WriteRows makes the rows durable, in order, and waits for the store.
func (j *Journal) WriteRows(ctx context.Context) error {
	for len(j.rows) > 0 {
		row := j.rows[0]
		if j.store != nil {
			if err := j.insist(ctx, "writing row", func() error {
				return j.store.WriteStep(row.Row, row.episodes)
			}); err != nil {
				return err
			}
		}
		j.lines, j.rows = append(j.lines, line{Row: row.Row}), j.rows[1:]
	}
	return nil
}

// WriteRowsOf makes durable the rows that belong to a state. The newest row names the path of the state.
func (j *Journal) WriteRowsOf(ctx context.Context, path string) error {
	if n := len(j.rows); n > 0 {
		j.rows[n-1].State = path
	} else if n := len(j.lines); n > 0 {
		// A drained learner saves a version whose row is written: it is written again.
		j.rows, j.lines = []stepRow{{Row: j.lines[n-1].Row}}, j.lines[:n-1]
		j.rows[0].State = path
	}
	return j.WriteRows(ctx)
}

// Complete adds to the newest durable row the values that are known only once its state is saved. AppendLines writes
// the row again; until then the store has the row without these values.
func (j *Journal) Complete(change func(*Row)) {
	if n := len(j.lines); n > 0 {
		change(&j.lines[n-1].Row)
		j.lines[n-1].completed = true
	}
}

// AppendLines adds the committed steps to metrics.jsonl, and writes completed rows again. Lines that fail are restored
// when the file is rebuilt, without the values that completed a row.
func (j *Journal) AppendLines(ctx context.Context) {
	for _, line := range j.lines {
		if err := j.call(ctx, "writing metrics", func() error { return appendLine(j.store, line) }); err != nil {
			j.config.Logger.Warn("metrics are not written", "step", line.Step, "err", err)
		}
		if j.config.Committed != nil {
			j.config.Committed(line.Row)
		}
	}
	j.lines = nil
}

// appendLine adds a line to the metrics of a store, which may be nil, and completes its row.
func appendLine(s *Store, line line) error {
	if s == nil {
		return nil
	}
	err := s.AppendStep(line.Row)
	if line.completed {
		err = errors.Join(err, s.WriteRow(line.Row))
	}
	return err
}

// Rebuild rewrites the files with a line for each step so that they end with a version that was loaded.
func (j *Journal) Rebuild(v rl.Version) {
	if j.store == nil {
		return
	}
	if err := j.store.Rebuild(v, j.config.Parent); err != nil {
		j.config.Logger.Warn("metrics are not rebuilt", "err", err)
	}
}

// AwaitRebuild is like Rebuild, but it also publishes the files if they are at a URL, and waits for the store.
func (j *Journal) AwaitRebuild(ctx context.Context, v rl.Version) error {
	if j.store == nil {
		return nil
	}
	return j.insist(ctx, "putting metrics together", func() error {
		if err := j.store.Rebuild(v, j.config.Parent); err != nil {
			return err
		}
		return j.store.Publish()
	})
}

// Row returns the row of a version; the error is fs.ErrNotExist when it does not exist.
func (j *Journal) Row(v rl.Version) (Row, error) {
	if j.store == nil {
		return Row{}, fs.ErrNotExist
	}
	return j.store.Row(v)
}

// Chain yields a version and its ancestors, the newest first, with their rows.
func (j *Journal) Chain(v rl.Version) iter.Seq[Ancestor] {
	if j.store == nil {
		return func(func(Ancestor) bool) {}
	}
	return j.store.Chain(v, j.config.Parent)
}

// RecentStates lists the paths of states that the rows of the highest steps name.
func (j *Journal) RecentStates() []string {
	const recent = 16
	if j.store == nil {
		return nil
	}
	paths, err := j.store.RecentStates(recent)
	if err != nil {
		j.config.Logger.Warn("rows are not read", "err", err)
	}
	return paths
}

// Evaluation returns the result of an evaluation, if there is one.
func (j *Journal) Evaluation(v rl.Version, digest string) (Evaluation, bool) {
	if j.store == nil {
		return Evaluation{}, false
	}
	result, err := j.store.Evaluation(v, digest)
	return result, err == nil
}

// ask returns the store's answer to a question, or the zero value if there is no store or the attempt is not claimed
// yet.
func ask[T any](s *Store, question func(*Store) T) (answer T) {
	if s != nil {
		answer = question(s)
	}
	return answer
}

// Evaluations returns the results of all evaluations.
func (j *Journal) Evaluations() []Evaluation { return ask(j.store, (*Store).Evaluations) }

// WriteEvaluation makes a result durable with its episodes, which may be nil, and adds it to evaluations.jsonl.
func (j *Journal) WriteEvaluation(ctx context.Context, result Evaluation, episodes []byte) error {
	if j.store == nil {
		return nil
	}
	return j.insist(ctx, "writing evaluation", func() error {
		if err := j.store.WriteEvaluatedEpisodes(result, episodes); err != nil {
			return err
		}
		if err := j.store.WriteEvaluation(result); err != nil {
			return err
		}
		return j.store.AppendEvaluation(result)
	})
}

// EventFilesOf returns the event files of a journal's store; nil if there is no store or the attempt is not claimed
// yet.
func EventFilesOf(j *Journal) *EventFiles {
	return ask(j.store, func(s *Store) *EventFiles { return s.EventFiles(j.config.Attempt) })
}

// UploadFilesOf returns the files with rollouts of a journal's store; nil if there is no store or the attempt is not
// claimed yet.
func UploadFilesOf(j *Journal) *UploadFiles {
	return ask(j.store, func(s *Store) *UploadFiles { return s.UploadFiles(j.config.Attempt) })
}

// Session returns the session that the attempt before sampled in; empty if there is none.
func (j *Journal) Session() string { return ask(j.store, (*Store).Session) }

// SetSession records the session for the attempt after this one.
func (j *Journal) SetSession(session string) {
	if j.store == nil {
		return
	}
	if err := j.store.SetSession(session); err != nil {
		j.config.Logger.Warn("session is not recorded", "err", err)
	}
}

// Workers returns the workers of the attempt before; nil if they are not known.
func (j *Journal) Workers() []string { return ask(j.store, (*Store).Workers) }

// SetWorkers records the workers for the attempt after this one, and reports whether that succeeded.
func (j *Journal) SetWorkers(names []string) bool {
	return j.store != nil && j.store.SetWorkers(names) == nil
}
