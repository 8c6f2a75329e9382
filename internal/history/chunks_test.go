// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// wide returns the record of a step with as many metrics as a learner reports.
func wide(number, step int64, lineage string) contract.Record {
	record := contract.Record{Number: number, Step: step, Lineage: lineage, Time: 100 * step, Metrics: metrics{}}
	for i := range contract.MaxRecordMetrics {
		record.Metrics[fmt.Sprintf("env/environment-%02d/reward", i)] = 1 / float64(step+int64(i)+2)
	}
	return record
}

// encode encodes a history and decodes it again, as the next write of a manager does.
func encode(t *testing.T, h *History) (*History, Parts) {
	t.Helper()
	parts, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(parts)
	if err != nil {
		t.Fatal(err)
	}
	return decoded, parts
}

// TestStepsAreAppended writes the history of a long run: nearly every write changes only the head, which stays small.
func TestStepsAreAppended(t *testing.T) {
	h, before, written := &History{}, map[string][]byte{}, 0
	const steps, eachWrite = 800, 8
	for step := int64(1); step <= steps; step++ {
		h.Add("pod", []contract.Record{wide(2*step, step, "a")})
		if step%20 == 0 {
			h.Add("pod", []contract.Record{evaluation(2*step+1, step-1, "a")})
		}
		if step%eachWrite != 0 {
			continue
		}
		var parts Parts
		h, parts = encode(t, h)
		if most := headBytes + 4<<10; len(parts.Head) > most {
			t.Fatalf("the head has %d bytes at step %d, want at most %d", len(parts.Head), step, most)
		}
		written += len(parts.Head)
		for name, data := range parts.Chunks {
			if _, existed := before[name]; !existed {
				written += len(data)
			}
		}
		if len(parts.Chunks) > maxChunks {
			t.Fatalf("the history has %d chunks at step %d", len(parts.Chunks), step)
		}
		before = parts.Chunks
	}
	// When each write contained the whole history, a write had 120 KiB on average.
	if got := written / (steps / eachWrite); got > 25<<10 {
		t.Errorf("a write of %d steps has %d bytes on average, want at most 25 KiB", eachWrite, got)
	}
}

// TestChunksDoNotDependOnWrites adds random records: steps, evaluations of earlier steps, and resumes that lose steps.
// A history that is encoded now and then must have the same rows as a history that is encoded only at the end.
func TestChunksDoNotDependOnWrites(t *testing.T) {
	for seed := range uint64(2) {
		random := rand.New(rand.NewPCG(seed, 1))
		whole, h := &History{}, &History{}
		step, lineage := int64(0), "a"
		for number := int64(1); number <= 700; number++ {
			record := wide(number, step+1, lineage)
			switch random.IntN(12) {
			case 0:
				record = evaluation(number, max(0, step-int64(random.IntN(60))), lineage)
			case 1:
				if random.IntN(20) == 0 {
					step = max(0, step-int64(random.IntN(200)))
					record, lineage = resumed(number, step), lineage+"b"
				}
			default:
				step++
			}
			whole.Add("pod", []contract.Record{record})
			h.Add("pod", []contract.Record{record})
			if random.IntN(16) == 0 {
				h, _ = encode(t, h)
			}
		}
		whole, _ = encode(t, whole)
		h, _ = encode(t, h)
		if diff := cmp.Diff(whole, h, cmpopts.IgnoreUnexported(History{})); diff != "" {
			t.Fatalf("seed %d: the history depends on its writes (-whole +writes):\n%s", seed, diff)
		}
	}
}

// long returns a history with chunks.
func long(t *testing.T) (*History, Parts) {
	t.Helper()
	h := &History{}
	for step := int64(1); step <= 400; step++ {
		h.Add("pod", []contract.Record{wide(step, step, "a")})
	}
	h, parts := encode(t, h)
	if len(parts.Chunks) < 2 {
		t.Fatalf("the history has %d chunks, want several", len(parts.Chunks))
	}
	return h, parts
}

// TestWholeEncodingIsDecoded decodes histories that managers wrote before there were chunks; a history that fits into a
// head still has this form.
func TestWholeEncodingIsDecoded(t *testing.T) {
	old := Parts{Head: []byte(`{"version":1,"stride":2,"source":"pod","known":9,"metrics":["env/all/reward/total","x"],` +
		`"rows":[{"step":2,"lineage":"a","attempt":1,"time":5,"values":[0.5,null]},` +
		`{"step":4,"lineage":"a","attempt":1,"time":6,"values":[null,2]}]}`)}
	h, err := Decode(old)
	if err != nil {
		t.Fatal(err)
	}
	want := &History{Stride: 2, Source: "pod", Known: 9, Rows: []Row{
		{Step: 2, Lineage: "a", Attempt: 1, Time: 5, Metrics: metrics{"env/all/reward/total": 0.5}},
		{Step: 4, Lineage: "a", Attempt: 1, Time: 6, Metrics: metrics{"x": 2}},
	}}
	if diff := cmp.Diff(want, h, cmpopts.IgnoreUnexported(History{})); diff != "" {
		t.Errorf("Decode() (-want +got):\n%s", diff)
	}
	_, parts := encode(t, h)
	if string(parts.Head) != string(old.Head) || len(parts.Chunks) > 0 {
		t.Errorf("Encode() = %s and %d chunks, want\n%s", parts.Head, len(parts.Chunks), old.Head)
	}
}

// TestHistoryWithoutAChunk decodes a history with one chunk deleted or changed: it lacks the rows of that chunk, and
// continues.
func TestHistoryWithoutAChunk(t *testing.T) {
	for name, spoil := range map[string]func(chunks map[string][]byte, name string){
		"deleted": func(chunks map[string][]byte, name string) { delete(chunks, name) },
		"changed": func(chunks map[string][]byte, name string) { chunks[name] = []byte(`{"rows":[{"step":-5}]}`) },
	} {
		t.Run(name, func(t *testing.T) {
			whole, parts := long(t)
			spoiled := maps.Clone(parts.Chunks)
			spoil(spoiled, whole.Chunks()[0])
			h, err := Decode(Parts{Head: parts.Head, Chunks: spoiled})
			if err != nil {
				t.Fatal(err)
			}
			n := len(whole.Rows) - len(h.Rows)
			if n <= 0 || h.Rows[0].Step != int64(n+1) {
				t.Fatalf("%d rows are left from step %d on, of %d", len(h.Rows), h.Rows[0].Step, len(whole.Rows))
			}
			h.Add("pod", []contract.Record{wide(1000, 401, "a")})
			again, next := encode(t, h)
			if len(again.Rows) != len(h.Rows) || slices.Contains(again.Chunks(), whole.Chunks()[0]) {
				t.Errorf("%d rows are left after another write, want %d", len(again.Rows), len(h.Rows))
			}
			for _, kept := range whole.Chunks()[1:] {
				if _, ok := next.Chunks[kept]; !ok {
					t.Errorf("chunk %s is written anew, though its rows are the same", kept)
				}
			}
		})
	}
}
