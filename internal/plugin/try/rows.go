// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/learner/examples"
	"github.com/tinker-operator/tinker-operator/internal/learner/preflight"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rollout/setup"
	"github.com/tinker-operator/tinker-operator/internal/supervised"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// trainRows trains the steps of a supervised run with a learner, and prints the data of each step. Data that cannot
// be used is an error: the command does not wait for a repair.
func (t *trial) trainRows(ctx context.Context, file contract.RunFile) error {
	file.ArtifactsDir, file.Checkpoints.RollingEverySteps = filepath.Join(t.dir, "artifacts"), 1
	credentials, listener, err := listen(ctx, file.Run.UID)
	if err != nil {
		return err
	}
	rows := t.sourceConfig()
	rows.AnyRows = true
	loader := setup.NewLoader(rows, version.UserAgent(userAgent), t.logger)
	if err := t.checkRows(ctx, file, loader); err != nil {
		return err
	}
	verdict := learner.Run(ctx, learner.Config{
		File: file, Credentials: credentials, APIKey: t.key, UserAgent: version.UserAgent(userAgent), Identity: "try",
		Exchange: listener, Logger: t.logger, HTTP: t.http, Hub: t.hub, Data: loader,
		Timing: learner.Timing{KeyPatience: time.Second}, Unattended: true,
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if verdict.Cause != contract.CauseCompleted {
		return fmt.Errorf("the learner ended with %s (%s): %s", verdict.Cause, verdict.Reason, verdict.Message)
	}
	steps, err := readMetrics(file)
	if err != nil {
		return err
	}
	return t.printRows(steps)
}

// readMetrics reads the metrics of the steps of a run. It returns nothing before the first step, and skips a line
// that is still being written.
func readMetrics(file contract.RunFile) (steps []map[string]float64, err error) {
	data, err := os.ReadFile(filepath.Join(file.ArtifactsDir, file.Run.UID, "metrics.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		step := map[string]float64{}
		if err := json.Unmarshal(line, &step); err != nil {
			return nil, fmt.Errorf("reading metrics: %w", err)
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// checkRows fails unless one of the rows can be trained on, and prints why the steps of the trial leave rows out.
func (t *trial) checkRows(ctx context.Context, file contract.RunFile, loader *source.Loader) error {
	endpoint, err := t.endpoint(t.outage.observe)
	if err != nil {
		return err
	}
	length, err := preflight.ContextOf(ctx, endpoint, file.Fixed.Model.Name)
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler) // it logs only the error
	var blocked error
	reader, err := examples.Open(ctx, examples.Config{
		File: file, Data: loader, Hub: t.hub, Logger: quiet, Blocked: func(err error) { blocked = cmp.Or(err, blocked) },
		Pause: func(context.Context, int) error {
			return fmt.Errorf("the run would wait: %w%s", blocked, t.advice("", problem.DataInvalid, contract.Definition{
				Dataset: &file.Fixed.Supervised.Dataset}))
		},
	}, "", length)
	if err != nil {
		return err
	}
	known, cursor := map[supervised.Reason]bool{}, int64(0)
	for range t.steps {
		batch, err := reader.Batch(ctx, cursor)
		if err != nil {
			return err
		}
		for _, left := range batch.Tombstones {
			if reason := left.Unusable.Reason; !known[reason] {
				known[reason] = true
				t.progress("row %d of split %s is left out, and others for the same reason: %v", left.Task.Index+1,
					left.Task.Split, left.Unusable.Err)
			}
		}
		cursor = batch.Next
	}
	return nil
}

// printRows prints the rows and tokens of steps, and their negative log-likelihood.
func (t *trial) printRows(steps []map[string]float64) error {
	columns := []string{"batch/rows", "batch/rows_left_out", "batch/tokens", "batch/weighted_tokens", contract.MetricNLL}
	result := output.Result{Header: []string{"STEP", "ROWS", "LEFT OUT", "TOKENS", "WITH WEIGHT", "NLL"}}
	for _, step := range steps {
		row := []string{strconv.FormatFloat(step["step"]+1, 'f', -1, 64)}
		for _, column := range columns {
			row = append(row, strconv.FormatFloat(step[column], 'g', 4, 64))
		}
		result.Rows = append(result.Rows, row)
	}
	result.Value = steps
	return output.Print(t.env, t.format, result)
}
