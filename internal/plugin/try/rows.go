// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/learner/examples"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/rollout/setup"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// trainRows trains the steps of a supervised run with a learner, and prints the data of each step. Data that cannot
// be used is an error: nobody repairs it while the command runs.
func (t *trial) trainRows(ctx context.Context, file contract.RunFile) error {
	file.ArtifactsDir, file.Checkpoints.RollingEverySteps = filepath.Join(t.dir, "artifacts"), 1
	credentials, listener, err := listen(ctx, file.Run.UID)
	if err != nil {
		return err
	}
	loader := setup.NewLoader(t.sourceConfig(), version.UserAgent(userAgent), t.logger)
	blocked := ""
	if _, err := examples.Open(ctx, examples.Config{
		File: file, Data: loader, Hub: t.hub, Logger: t.logger, Blocked: func(why string) { blocked = why },
		Pause: func(context.Context, int) error { return fmt.Errorf("the run would wait: %s", blocked) },
	}, "", 0); err != nil {
		return err
	}
	verdict := learner.Run(ctx, learner.Config{
		File: file, Credentials: credentials, APIKey: t.key, UserAgent: version.UserAgent(userAgent), Identity: "try",
		Exchange: listener, Logger: t.logger, HTTP: t.http, Hub: t.hub, Data: loader,
		Timing: learner.Timing{KeyPatience: time.Second},
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if verdict.Cause != contract.CauseCompleted {
		return fmt.Errorf("the learner ended with %s (%s): %s", verdict.Cause, verdict.Reason, verdict.Message)
	}
	data, err := os.ReadFile(filepath.Join(file.ArtifactsDir, file.Run.UID, "metrics.jsonl"))
	if err != nil {
		return fmt.Errorf("reading metrics: %w", err)
	}
	return t.printRows(data)
}

// printRows prints the rows and tokens of steps, and their negative log-likelihood.
func (t *trial) printRows(data []byte) error {
	columns := []string{"batch/rows", "batch/rows_left_out", "batch/tokens", "batch/weighted_tokens", contract.MetricNLL}
	result := output.Result{Header: []string{"STEP", "ROWS", "LEFT OUT", "TOKENS", "WITH WEIGHT", "NLL"}}
	var steps []map[string]float64
	for line := range bytes.Lines(data) {
		step := map[string]float64{}
		if err := json.Unmarshal(line, &step); err != nil {
			return fmt.Errorf("reading metrics: %w", err)
		}
		row := []string{strconv.FormatFloat(step["step"]+1, 'f', -1, 64)}
		for _, column := range columns {
			row = append(row, strconv.FormatFloat(step[column], 'g', 4, 64))
		}
		steps, result.Rows = append(steps, step), append(result.Rows, row)
	}
	result.Value = steps
	return output.Print(t.env, t.format, result)
}
