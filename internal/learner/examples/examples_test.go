// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/learner/leases"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// newConfig returns a configuration that reads rows of a ConfigMap.
func newConfig(t testing.TB, rows func(write func(format string, args ...any)), change func(*contract.RunFile)) Config {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "configmap", "rows")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "rows.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	rows(func(format string, args ...any) { fmt.Fprintf(file, format+"\n", args...) })
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	run := contract.RunFile{Fixed: contract.Fixed{
		Model:     contract.Model{Name: "tinkersim/byte-136k", Renderer: "role_colon_end"},
		Algorithm: &algorithm.Algorithm{Seed: 3},
		Supervised: &contract.Supervised{
			Dataset: contract.Dataset{Dataset: settings.Dataset{
				JSONL:  &settings.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "rows"}},
				Splits: []settings.DataSplit{{Name: "train", Source: "rows.jsonl"}},
			}},
			TrainOn: "AllAssistant", Normalization: "PerExample", BatchSize: 4,
		},
	}}
	if change != nil {
		change(&run)
	}
	return Config{
		File: run, Blocked: func(error) {}, Logger: slog.New(slog.DiscardHandler),
		Data:  source.New(source.Config{Root: root, Dir: t.TempDir(), Space: 1 << 31, AnyRows: true}),
		Pause: func(context.Context, int) error { return fmt.Errorf("the rows cannot be used") },
	}
}

// sums writes n rows. Every third has no reply.
func sums(n int) func(write func(string, ...any)) {
	return func(write func(string, ...any)) {
		for i := range n {
			if i%3 == 2 {
				write(`{"prompt": "%d?", "completion": ""}`, i)
				continue
			}
			write(`{"prompt": "%d?", "completion": "%d"}`, i, i)
		}
	}
}

// newSource returns a source that runs, at its beginning.
func newSource(t testing.TB, config Config) *Source {
	t.Helper()
	reader, err := Open(t.Context(), config, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSource(leases.NewTable(leases.Config{Logger: config.Logger, Now: time.Now}), config.Logger)
	s.SetReader(reader)
	s.Reset(rl.Position{}, nil)
	go s.Run(t.Context())
	return s
}

func outcomesOf(b leases.Batch) (outcomes []string) {
	for _, g := range b.Groups {
		outcomes = append(outcomes, g.Outcome.String())
	}
	return outcomes
}

// TestBatchAfterRejection rejects a row of a batch, and checks that the row keeps its slot and that the batch ends at
// the same position as before.
func TestBatchAfterRejection(t *testing.T) {
	s := newSource(t, newConfig(t, sums(30), nil))
	before, err := s.Batch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bad := before.Slots.Members[1]
	s.Reject(rl.Key{Kind: rl.Train, Slot: bad}, "bad tokens")
	after, err := s.Batch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := outcomesOf(before)
	want[bad-before.Slots.First] = rl.InvalidTokens.String()
	if diff := cmp.Diff(want, outcomesOf(after)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if before.After != after.After || len(after.Slots.Members) != 3 {
		t.Errorf("the batch ends at %+v with %d rows, want %+v with 3", after.After, len(after.Slots.Members), before.After)
	}
	if cmp.Equal(before.Digests, after.Digests) || before.Manifest().Digest() == after.Manifest().Digest() {
		t.Errorf("the manifest does not show the rejection: got digests %v, before %v", after.Digests, before.Digests)
	}
	for i, g := range after.Groups {
		if g.Outcome == rl.Empty && g.Reason == "" || g.Digest() != after.Digests[i] {
			t.Errorf("slot %d has the reason %q and the digest %s", g.Key.Slot, g.Reason, after.Digests[i])
		}
	}
}

// TestBatchesFollow advances over two epochs, and checks that a new source that begins at the position of a batch
// makes the same batch.
func TestBatchesFollow(t *testing.T) {
	config := newConfig(t, sums(12), nil)
	s := newSource(t, config)
	for range 4 {
		batch, err := s.Batch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again := newSource(t, config)
		again.Reset(rl.Position{Step: batch.Slots.Step, Cursor: batch.Slots.First}, nil)
		same, err := again.Batch(t.Context())
		if diff := cmp.Diff(batch, same); err != nil || diff != "" {
			t.Errorf("the batch of step %d differs when it is made again: %v\n%s", batch.Slots.Step, err, diff)
		}
		if len(batch.Slots.Members) != 4 || int64(len(batch.Groups)) != batch.Slots.Next-batch.Slots.First {
			t.Errorf("step %d has %d rows and %d slots", batch.Slots.Step, len(batch.Slots.Members), len(batch.Groups))
		}
		s.Advance(batch.After)
	}
}

// TestHeldOut measures rows with known log-probabilities. The result does not depend on the normalization of training.
func TestHeldOut(t *testing.T) {
	r, err := Open(t.Context(), newConfig(t, sums(600), nil), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	ask := func(_ context.Context, datums []rl.Datum) ([][]float32, error) {
		asked++
		values := make([][]float32, len(datums))
		for i, d := range datums {
			values[i] = make([]float32, len(d.Targets))
			for j, weight := range d.Weights {
				values[i][j] = -9
				if weight != 0 && weight != 1 {
					t.Fatalf("a token has the weight %v, want 0 or 1", weight)
				}
				if weight == 1 {
					values[i][j] = -0.25
				}
			}
		}
		return values, nil
	}
	got, err := r.HeldOut(t.Context(), contract.HeldOut{Name: "train", Take: 500}, ask)
	if err != nil || got.Rows != 334 || got.LeftOut != 166 || asked != 2 {
		t.Errorf("HeldOut = %+v, %v, in %d requests; want 334 rows and 166 that are left out in 2", got, err, asked)
	}
	if mean, ok := got.Mean(); !ok || mean != 0.25 {
		t.Errorf("the mean is %v, %v, want 0.25", mean, ok)
	}
	none := func(context.Context, []rl.Datum) ([][]float32, error) { return nil, nil }
	if _, err := r.HeldOut(t.Context(), contract.HeldOut{Name: "train"}, none); err == nil ||
		!strings.Contains(err.Error(), "no log-probabilities") {
		t.Errorf("HeldOut of an endpoint without log-probabilities: %v", err)
	}
}

func TestOpenNamesTheRepair(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*contract.RunFile)
		want   string
	}{
		"no split train": {func(f *contract.RunFile) { f.Fixed.Supervised.Dataset.Splits[0].Name = "all" },
			`the data has no split "train"`},
		"no split to hold out": {func(f *contract.RunFile) {
			f.Evaluation = &contract.Evaluation{HeldOut: []contract.HeldOut{{Name: "test"}}}
		}, `evaluation.supervised.splits: the data has no split "test"`},
		"a column of fields": {func(f *contract.RunFile) {
			f.Fixed.Supervised.Dataset.Fields = map[string]string{"completion": "answer"}
		}, `dataset.fields.completion: the row has no column "answer"`},
	} {
		t.Run(name, func(t *testing.T) {
			config := newConfig(t, sums(10), tc.change)
			var blocked []error
			config.Blocked = func(err error) { blocked = append(blocked, err) }
			if _, err := Open(t.Context(), config, "", 0); err == nil {
				t.Fatal("Open: no error")
			}
			if len(blocked) != 2 || !strings.Contains(blocked[0].Error(), tc.want) || blocked[1] != nil {
				t.Errorf("the run waits for %v, want %q", blocked, tc.want)
			}
		})
	}
}
