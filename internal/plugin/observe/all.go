// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/metric"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// mostLines is the number of lines of metrics.jsonl that are read if --last asks for no number.
const mostLines = 1000

// historyOf returns lines of metrics.jsonl and evaluations.jsonl as a history. A line of metrics.jsonl has the number
// of the version that a batch began with, from 0; a row has the number of the version that the batch made.
func historyOf(lines delivery.Delivery) (*history.History, error) {
	rows := map[int64]*history.Row{}
	at := func(step int64) *history.Row {
		if rows[step] == nil {
			rows[step] = &history.Row{Step: step, Metrics: map[string]float64{}}
		}
		return rows[step]
	}
	for _, text := range lines.Metrics {
		var values map[string]float64
		if err := json.Unmarshal(text, &values); err != nil {
			return nil, fmt.Errorf("decoding a line of metrics.jsonl: %w", err)
		}
		step := int64(values["step"])
		delete(values, "step")
		maps.Copy(at(step+1).Metrics, values)
	}
	for _, text := range lines.Evaluations {
		var result artifacts.Evaluation
		if err := json.Unmarshal(text, &result); err != nil {
			return nil, fmt.Errorf("decoding a line of evaluations.jsonl: %w", err)
		}
		row := at(result.Step)
		row.Lineage = result.Lineage.String()
		maps.Copy(row.Metrics, result.Metrics)
	}
	h := &history.History{}
	for _, step := range slices.Sorted(maps.Keys(rows)) {
		h.Rows = append(h.Rows, *rows[step])
	}
	return h, nil
}

// describe prints the newest value of each metric with its step, its unit and its meaning. Not every step has every
// metric: the share of cut replies, for example, is from the newest step that had any.
func (f metricsFlags) describe(env cli.IO, h *history.History) error {
	if *f.format == output.JSON {
		return f.print(env, h)
	}
	rows := h.Rows
	if f.last > 0 {
		rows = rows[max(0, len(rows)-f.last):]
	}
	newest, steps := map[string]float64{}, map[string]int64{}
	for _, row := range rows {
		for name, value := range row.Metrics {
			newest[name], steps[name] = value, row.Step
		}
	}
	result := output.Result{Header: []string{"METRIC", "NEWEST", "STEP", "UNIT", "MEANING"}}
	for _, name := range slices.Sorted(maps.Keys(newest)) {
		d, _ := metric.Describe(name)
		result.Rows = append(result.Rows, []string{output.Safe(name), number(newest, name),
			strconv.FormatInt(steps[name], 10), d.Unit, d.Meaning})
	}
	return output.Print(env, *f.format, result)
}
