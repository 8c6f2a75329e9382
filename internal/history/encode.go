// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// DataKey is the key of the ConfigMap that has the history.
const DataKey = "history.json"

// version is the version of the encoding.
const version = 1

// encoded is a history as the ConfigMap has it: the names of metrics once, and their values by row.
type encoded struct {
	Version int          `json:"version"`
	Stride  int64        `json:"stride"`
	Source  string       `json:"source"`
	Known   int64        `json:"known"`
	Metrics []string     `json:"metrics"`
	Rows    []encodedRow `json:"rows"`
}

type encodedRow struct {
	Step    int64  `json:"step"`
	Lineage string `json:"lineage"`
	Attempt int32  `json:"attempt"`
	Time    int64  `json:"time"`
	// Values are in the order of the names; nil where the row lacks one.
	Values []*json.Number `json:"values"`
}

// Encode encodes a history in at most MaxBytes, with six digits a figure. Where there is not enough room for all rows,
// it drops some. Each time, it drops at least an eighth, so that no rows whatsoever keep it busy.
func (h *History) Encode() ([]byte, error) {
	h.Stride = min(max(1, h.Stride), maxStride)
	for {
		for len(h.Rows) > 1 && h.leastBytes() > MaxBytes {
			h.coarsen()
		}
		data, err := h.encode()
		if err != nil || len(data) <= MaxBytes || len(h.Rows) < 2 {
			return data, err
		}
		for most := len(h.Rows) - len(h.Rows)/8; len(h.Rows) > 1 && len(h.Rows) >= most; {
			h.coarsen()
		}
	}
}

// leastBytes is a lower bound of the length of the encoding: two bytes for each name in each row.
func (h *History) leastBytes() int { return 2 * len(h.Rows) * len(h.names()) }

func (h *History) names() map[string]bool {
	names := map[string]bool{}
	for _, row := range h.Rows {
		for name := range row.Metrics {
			names[name] = true
		}
	}
	return names
}

func (h *History) encode() ([]byte, error) {
	out := encoded{
		Version: version, Stride: max(1, h.Stride), Source: h.Source, Known: h.Known,
		Metrics: slices.Sorted(maps.Keys(h.names())), Rows: []encodedRow{},
	}
	for _, row := range h.Rows {
		e := encodedRow{Step: row.Step, Lineage: row.Lineage, Attempt: row.Attempt, Time: row.Time}
		for _, name := range out.Metrics {
			var value *json.Number
			if v, ok := row.Metrics[name]; ok {
				number := json.Number(strconv.FormatFloat(v, 'g', 6, 64))
				value = &number
			}
			e.Values = append(e.Values, value)
		}
		out.Rows = append(out.Rows, e)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding history: %w", err)
	}
	return data, nil
}

// Decode decodes what Encode has encoded.
func Decode(data []byte) (*History, error) {
	var in encoded
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("decoding history: %w", err)
	}
	if in.Version != version {
		return nil, fmt.Errorf("decoding history: version %d is not known, only %d is: use kubectl-tinker of the "+
			"operator's version", in.Version, version)
	}
	h := &History{Stride: min(max(1, in.Stride), maxStride), Source: in.Source, Known: in.Known}
	for _, e := range in.Rows {
		row := Row{Step: e.Step, Lineage: e.Lineage, Attempt: e.Attempt, Time: e.Time, Metrics: map[string]float64{}}
		if len(e.Values) > len(in.Metrics) {
			return nil, fmt.Errorf("decoding history: the row of step %d has %d values for %d metrics", e.Step, len(e.Values),
				len(in.Metrics))
		}
		for i, value := range e.Values {
			if value == nil {
				continue
			}
			v, err := value.Float64()
			if err != nil {
				return nil, fmt.Errorf("decoding history: step %d, %s: %w", e.Step, in.Metrics[i], err)
			}
			row.Metrics[in.Metrics[i]] = v
		}
		h.Rows = append(h.Rows, row)
	}
	return h, nil
}
