// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Slot is one entry of a batch's manifest.
type Slot struct {
	Slot    int64  `json:"slot"`
	Outcome string `json:"outcome"`
	// Digest of the group, 64 hex digits.
	Digest string `json:"digest"`
}

// Row is the record of one step: the step that led from version Step-1 to version Step.
type Row struct {
	// Version is the version that the step led to. Its Step is at least 1.
	rl.Version

	Parent rl.Lineage `json:"parent"`
	// Cursor is the cursor after the slots that the step took.
	Cursor int64 `json:"cursor"`
	// State is the path of the state that the row goes with; empty when the step saves none.
	State   string `json:"state,omitempty"`
	Attempt int32  `json:"attempt"`
	// Time is the time at which the step was made, in Unix seconds; 0 in rows of earlier versions of the program.
	Time int64 `json:"time,omitempty"`
	// Manifest of the batch in slot order.
	Manifest []Slot             `json:"manifest"`
	Metrics  map[string]float64 `json:"metrics"`
	// Usage is the usage of the run when the step was made.
	Usage spending.Usage `json:"usage"`
	// USD is the cost of Usage without its unconfirmed tokens, each token at the price when it was counted; nil if a price
	// was not known, and in rows of earlier versions of the program.
	USD *float64 `json:"usd,omitempty"`
	// Trained is the number of tokens that were trained on in this step and all steps before it; nil in rows of earlier
	// versions of the program.
	Trained *int64 `json:"trained,omitempty"`
	// TrainingSeconds is the time for which the run had trained by then.
	TrainingSeconds float64 `json:"trainingSeconds"`
}

// Priced returns the usage of a row with its cost; nil if a price was not known.
func (r Row) Priced() *spending.Priced {
	if r.USD == nil {
		return nil
	}
	priced := spending.Priced{Usage: r.Usage, USD: *r.USD}
	priced.Usage.UnconfirmedTokens = 0
	return &priced
}

// Evaluation is the result of one evaluation of one version.
type Evaluation struct {
	rl.Version

	// Digest digests the settings of the evaluation.
	Digest  string             `json:"plan"`
	Attempt int32              `json:"attempt"`
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Usage is the usage of the evaluation itself, in results of earlier versions of the program.
	Usage spending.Usage `json:"usage,omitzero"`
	// Trained is the number of tokens of held-out rows that were passed through the model.
	Trained int64 `json:"trained,omitempty"`
	// Lost says why there is no result and will never be one.
	Lost string `json:"lost,omitempty"`
}

// changing is the number of newest rows that may have changed since they were copied or added to rows.jsonl.
const changing = 32

// WriteRow makes the row durable. Writing a row again replaces it.
func (s *Store) WriteRow(row Row) error {
	row.Metrics = finite.Only(row.Metrics)
	if err := s.files.writeJSON(rowName(row.Version), row); err != nil {
		return fmt.Errorf("writing row %d: %w", row.Step, err)
	}
	return nil
}

// WriteStep makes a step durable: its row, and its episodes unless they are nil.
func (s *Store) WriteStep(row Row, episodes []byte) error {
	var group errgroup.Group
	group.Go(func() error { return s.WriteRow(row) })
	if episodes != nil {
		group.Go(func() error {
			if err := s.files.publish(episodesName(row.Version), episodes); err != nil {
				return fmt.Errorf("writing episodes of step %d: %w", row.Step, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Row reads the row of a version; the error is fs.ErrNotExist when it does not exist.
func (s *Store) Row(v rl.Version) (Row, error) {
	var row Row
	err := s.files.readJSON(rowName(v), &row)
	if err == nil && row.Version != v {
		err = fmt.Errorf("it is that of step %d and lineage %s", row.Step, row.Lineage)
	}
	if err != nil {
		return Row{}, fmt.Errorf("reading row %d: %w", v.Step, err)
	}
	return row, nil
}

// RecentStates lists the paths of states that the rows of the highest steps name, at most limit paths.
func (s *Store) RecentStates(limit int) ([]string, error) {
	entries, err := os.ReadDir(s.files.path(rowsDir))
	if err != nil {
		return nil, fmt.Errorf("listing rows: %w", err)
	}
	var paths []string
	// Names sort by step, so the newest are read first.
	for _, entry := range slices.Backward(entries) {
		if len(paths) >= limit {
			break
		}
		var row Row
		if !strings.HasSuffix(entry.Name(), ".json") || s.files.readJSON(path.Join(rowsDir, entry.Name()), &row) != nil {
			continue
		}
		if row.State != "" {
			paths = append(paths, row.State)
		}
	}
	return paths, nil
}

// WriteEvaluation makes the result of an evaluation durable.
func (s *Store) WriteEvaluation(e Evaluation) error {
	e.Metrics = finite.Only(e.Metrics)
	if err := s.files.writeJSON(evaluationName(e.Version, e.Digest), e); err != nil {
		return fmt.Errorf("writing evaluation of step %d: %w", e.Step, err)
	}
	return nil
}

// Evaluation reads the result of an evaluation; the error is fs.ErrNotExist when it does not exist.
func (s *Store) Evaluation(v rl.Version, plan string) (Evaluation, error) {
	var e Evaluation
	if err := s.files.readJSON(evaluationName(v, plan), &e); err != nil {
		return Evaluation{}, fmt.Errorf("reading evaluation of step %d: %w", v.Step, err)
	}
	return e, nil
}

func rowName(v rl.Version) string {
	return path.Join(rowsDir, fmt.Sprintf("%09d-%s.json", v.Step, v.Lineage))
}

func episodesName(v rl.Version) string {
	return path.Join(episodesDir, EpisodesKey(v.Step, v.Lineage.String())+episodesExtension)
}

func evaluationName(v rl.Version, plan string) string {
	return path.Join(evaluationsDir, fmt.Sprintf("%09d-%s-%s.json", v.Step, v.Lineage, plan))
}
