// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package rubrics has the command of `kubectl tinker` that converts the data of the RLVR recipe into a data set for
// reward.rubric.
package rubrics

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
)

const help = `kubectl tinker convert-rubrics converts the JSON of the RLVR recipe of tinker-cookbook into train.jsonl and
test.jsonl, whose rows have task_id, prompt and rubrics, as reward.rubric reads them.

The file, or the standard input for -, is a list of objects with task_id, prompt, and criteria under keys such as
"rubric - 1. criterion"; other keys are left out, also those that only resemble it, such as a justification. Raw
tabs in texts are repaired. The rows are shuffled and split 90 to 10 as the recipe does it, so that the test set is
the same.`

const example = `  kubectl tinker convert-rubrics rlvr.json --out data
  kubectl create configmap rlvr --from-file=data/train.jsonl --from-file=data/test.jsonl`

// New returns the command.
func New(env cli.IO) *cobra.Command {
	var out string
	command := &cobra.Command{
		Use: "convert-rubrics FILE", Short: "Convert the data of the RLVR recipe into a data set with rubrics", Long: help,
		Example: example,
		Args:    cli.Args(1, 1, "FILE"),
		RunE:    func(_ *cobra.Command, args []string) error { return run(env, args[0], out) },
	}
	command.Flags().StringVar(&out, "out", ".", "`FOLDER` for train.jsonl and test.jsonl; it is created if it does "+
		"not exist")
	return command
}

func run(env cli.IO, name, out string) error {
	data, err := env.ReadInput(name, os.ReadFile)
	if err != nil {
		return fmt.Errorf("reading the data: %w", err)
	}
	rows, err := Convert(data)
	if err != nil {
		return err
	}
	train, test := Split(rows)
	if len(train) == 0 || len(test) == 0 {
		return fmt.Errorf("splitting %d tasks: none would be left to train on or to test with: give two at least", len(rows))
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("creating the folder: %w", err)
	}
	for file, rows := range map[string][]Row{"train.jsonl": train, "test.jsonl": test} {
		encoded, err := Encode(rows)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, file), encoded, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
	}
	_, err = fmt.Fprintf(env.Stdout, "%d tasks in train.jsonl, %d in test.jsonl\n", len(train), len(test))
	return err
}
