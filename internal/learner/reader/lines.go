// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// readLines reads the newest lines of metrics.jsonl, and the lines of evaluations.jsonl from the version that the first
// of them began with. A line that is damaged is left out.
func (r Request) readLines(ctx context.Context, from files) (delivery.Delivery, error) {
	metrics, evaluations := artifacts.MetricLines(r.RunUID)
	d := delivery.Delivery{Steps: []int64{}}
	steps, err := wholeFile(ctx, from, metrics[0], metrics[1])
	if err != nil {
		return d, fmt.Errorf("reading metrics.jsonl: %w", err)
	}
	results, err := wholeFile(ctx, from, evaluations[0], evaluations[1])
	if err != nil {
		return d, fmt.Errorf("reading evaluations.jsonl: %w", err)
	}
	lines := linesOf(steps)
	lines = lines[max(0, len(lines)-r.Lines):]
	first := int64(0)
	if len(lines) > 0 {
		first = lines[0].step
	}
	for _, line := range lines {
		d.Metrics = append(d.Metrics, line.text)
	}
	for _, line := range linesOf(results) {
		if line.step >= first {
			d.Evaluations = append(d.Evaluations, line.text)
		}
	}
	return d, nil
}

// line is a line of a file, with its step.
type line struct {
	step int64
	text json.RawMessage
}

func linesOf(data []byte) []line {
	var lines []line
	for text := range bytes.Lines(data) {
		var at struct {
			Step *int64 `json:"step"`
		}
		if json.Unmarshal(text, &at) == nil && at.Step != nil {
			lines = append(lines, line{*at.Step, json.RawMessage(bytes.TrimSpace(text))})
		}
	}
	return lines
}
