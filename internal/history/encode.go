// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// DataKey is the key of the ConfigMaps that have the head of a history and its chunks.
const DataKey = "history.json"

// Versions of the encoding of a head: without and with chunks. Earlier managers know only heads without chunks.
const (
	versionWhole  = 1
	versionChunks = 2
)

// Parts is an encoded history: its head, and chunks with the rows before the rows of the head.
type Parts struct {
	Head []byte
	// Chunks are the encoded chunks by name.
	Chunks map[string][]byte
}

// Size returns the length of all parts, in bytes.
func (p Parts) Size() int {
	n := len(p.Head)
	for _, data := range p.Chunks {
		n += len(data)
	}
	return n
}

// head is the part that is read first, and that each write replaces.
type head struct {
	Version int    `json:"version"`
	Stride  int64  `json:"stride"`
	Source  string `json:"source"`
	Known   int64  `json:"known"`
	// Chunks are the names of the chunks, in the order of their rows.
	Chunks []string `json:"chunks,omitempty"`
	table
}

// table has the names of metrics once, and their values by row.
type table struct {
	Metrics []string     `json:"metrics"`
	Rows    []encodedRow `json:"rows"`
}

type encodedRow struct {
	Step    int64  `json:"step"`
	Lineage string `json:"lineage"`
	Attempt int32  `json:"attempt"`
	Time    int64  `json:"time"`
	// Values are in the order of the names; nil if the row lacks one.
	Values []*json.Number `json:"values"`
}

// Encode encodes a history in at most MaxBytes, with six digits a figure. Chunks whose rows have not changed keep their
// names. If there is not enough room for all rows, it drops some. It drops at least an eighth of the rows at a time, so
// that it soon ends for any rows.
func (h *History) Encode() (Parts, error) {
	h.Stride = min(max(1, h.Stride), maxStride)
	for {
		for len(h.Rows) > 1 && 2*len(h.Rows)*len(names(h.Rows)) > MaxBytes {
			h.coarsen()
		}
		parts, err := h.encode()
		if err != nil || parts.Size() <= MaxBytes || len(h.Rows) < 2 {
			return parts, err
		}
		for most := len(h.Rows) - len(h.Rows)/8; len(h.Rows) > 1 && len(h.Rows) >= most; {
			h.coarsen()
		}
	}
}

func (h *History) encode() (Parts, error) {
	parts := Parts{Chunks: map[string][]byte{}}
	if err := h.layOut(parts.Chunks); err != nil {
		return Parts{}, err
	}
	out := head{Version: versionWhole, Stride: h.Stride, Source: h.Source, Known: h.Known, Chunks: h.Chunks(),
		table: tableOf(h.Rows[h.end(h.chunks):])}
	if len(h.chunks) > 0 {
		out.Version = versionChunks
	}
	var err error
	parts.Head, err = marshal(out)
	return parts, err
}

func names(rows []Row) map[string]bool {
	names := map[string]bool{}
	for _, row := range rows {
		for name := range row.Metrics {
			names[name] = true
		}
	}
	return names
}

func tableOf(rows []Row) table {
	out := table{Metrics: slices.Sorted(maps.Keys(names(rows))), Rows: []encodedRow{}}
	for _, row := range rows {
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
	return out
}

func marshal(part any) ([]byte, error) {
	data, err := json.Marshal(part)
	if err != nil {
		return nil, fmt.Errorf("encoding history: %w", err)
	}
	return data, nil
}

// ChunksOf returns the names of the chunks that a head names.
func ChunksOf(data []byte) ([]string, error) {
	in, err := decodeHead(data)
	return in.Chunks, err
}

func decodeHead(data []byte) (head, error) {
	var in head
	if err := json.Unmarshal(data, &in); err != nil {
		return head{}, fmt.Errorf("decoding history: %w", err)
	}
	if in.Version != versionWhole && in.Version != versionChunks {
		return head{}, fmt.Errorf("decoding history: version %d is not known, only %d and %d are: use kubectl-tinker of "+
			"the operator's version", in.Version, versionWhole, versionChunks)
	}
	if len(in.Chunks) > maxChunks {
		return head{}, fmt.Errorf("decoding history: it has %d chunks, more than %d", len(in.Chunks), maxChunks)
	}
	return in, nil
}

// Decode decodes the output of Encode. The history lacks the rows of a chunk that parts do not have, or whose content
// does not match its name.
func Decode(parts Parts) (*History, error) {
	in, err := decodeHead(parts.Head)
	if err != nil {
		return nil, err
	}
	h := &History{Stride: min(max(1, in.Stride), maxStride), Source: in.Source, Known: in.Known}
	for _, name := range in.Chunks {
		if err := h.decodeChunk(name, parts.Chunks[name]); err != nil {
			return nil, err
		}
	}
	rows, err := in.decode()
	if err != nil {
		return nil, err
	}
	h.Rows = append(h.Rows, rows...)
	if !slices.IsSortedFunc(h.Rows, func(a, b Row) int { return cmp.Compare(a.Step, b.Step) }) {
		return nil, errors.New("decoding history: its rows are not in the order of their steps")
	}
	return h, nil
}

func (t table) decode() ([]Row, error) {
	var rows []Row
	for _, e := range t.Rows {
		row := Row{Step: e.Step, Lineage: e.Lineage, Attempt: e.Attempt, Time: e.Time, Metrics: map[string]float64{}}
		if len(e.Values) > len(t.Metrics) {
			return nil, fmt.Errorf("decoding history: the row of step %d has %d values for %d metrics", e.Step, len(e.Values),
				len(t.Metrics))
		}
		for i, value := range e.Values {
			if value == nil {
				continue
			}
			v, err := value.Float64()
			if err != nil {
				return nil, fmt.Errorf("decoding history: step %d, %s: %w", e.Step, t.Metrics[i], err)
			}
			row.Metrics[t.Metrics[i]] = v
		}
		rows = append(rows, row)
	}
	return rows, nil
}
