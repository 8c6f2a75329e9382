// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// goldenRun has the values that may not change in a run of a given spec: they decide from which checkpoints a run can
// continue.
type goldenRun struct {
	SpecDigest string `json:"specDigest"`
	// Rows are the rows of the steps, without times and metrics.
	Rows []goldenRow `json:"rows"`
	// Passes are the digests of the data of each forward_backward: tokens, log-probs and advantages.
	Passes []string `json:"passes"`
	// Weights is the digest of the final adapter.
	Weights string `json:"weights"`
}

type goldenRow struct {
	Step     int64        `json:"step"`
	Lineage  string       `json:"lineage"`
	Cursor   int64        `json:"cursor"`
	Manifest []goldenSlot `json:"manifest"`
}

type goldenSlot struct {
	Slot    int64  `json:"slot"`
	Outcome string `json:"outcome"`
	Digest  string `json:"digest"`
}

// passRecorder notes the data of every forward_backward.
type passRecorder struct {
	mu     sync.Mutex
	passes []string
}

// RoundTrip forwards a request.
func (p *passRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/forward_backward") {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	forwarded := r.Clone(r.Context())
	forwarded.Body = io.NopCloser(bytes.NewReader(body))
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" {
		if body, err = tinker.Decompress(encoding, body); err != nil {
			return nil, err
		}
	}
	request, err := tinker.DecodeForwardBackward(body)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(request.Data)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	p.mu.Lock()
	p.passes = append(p.passes, hex.EncodeToString(sum[:]))
	p.mu.Unlock()
	return http.DefaultTransport.RoundTrip(forwarded)
}

// goldenRows are the rows of the run's steps, in order.
func (w *fixture) goldenRows() []goldenRow {
	var rows []goldenRow
	for _, row := range w.rows() {
		golden := goldenRow{Step: row.Step, Lineage: row.Lineage.String(), Cursor: row.Cursor}
		for _, slot := range row.Manifest {
			golden.Manifest = append(golden.Manifest, goldenSlot(slot))
		}
		rows = append(rows, golden)
	}
	slices.SortFunc(rows, func(a, b goldenRow) int { return int(a.Step - b.Step) })
	return rows
}

// record runs the fixture's run undisturbed with the workers that it has, and returns the values that may not change.
func (w *fixture) record() goldenRun {
	w.t.Helper()
	recorder := &passRecorder{}
	w.http = &http.Client{Transport: recorder}
	weights := w.weights(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted))
	return goldenRun{SpecDigest: w.file.SpecDigest, Rows: w.goldenRows(), Passes: recorder.passes, Weights: weights}
}

// goldenRuns prepares the runs of testdata, each with a worker.
var goldenRuns = map[string]func(t *testing.T) *fixture{
	"arithmetic": func(t *testing.T) *fixture {
		w := newFixture(t, nil)
		w.startRolloutWorker("w0")
		return w
	},
	"arithmetic with constant groups dropped": func(t *testing.T) *fixture {
		w := newFixture(t, func(f *contract.RunFile) {
			alg := f.Fixed.Algorithm
			alg.ConstantGroups, alg.Substeps, alg.Lag = algorithm.DropConstantGroups, 2, 1
			alg.Advantage = algorithm.Advantage{Baseline: algorithm.BaselineBatchMean, Scale: algorithm.ScaleGroupStd,
				DDoF: 1}
			alg.Loss = algorithm.Loss{Name: algorithm.LossPPO, ClipLow: new(0.8), ClipHigh: new(1.2)}
		})
		w.startRolloutWorker("w0")
		return w
	},
	"arithmetic with own slots": func(t *testing.T) *fixture {
		w := newFixture(t, func(f *contract.RunFile) {
			withOwnSlots(2)(f)
			f.Fixed.Algorithm.ConstantGroups = algorithm.DropConstantGroups
		})
		w.startRolloutWorker("w0")
		return w
	},
	"tool use": func(t *testing.T) *fixture {
		w := newQwenFixture(t)
		w.startQwenWorker("w0")
		return w
	},
}

// TestGoldenRuns compares runs with the records of an earlier build. Digests, lineages, training data and weights of a
// run must not change, since a run continues over an upgrade. UPDATE_GOLDEN=1 records runs that are missing.
func TestGoldenRuns(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the runs were recorded on amd64")
	}
	for name, prepare := range goldenRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkGolden(t, strings.ReplaceAll(name, " ", "-")+".v1.json", prepare(t).record())
		})
	}
}

// checkGolden compares a run with the recorded one.
func checkGolden(t *testing.T, name string, got goldenRun) {
	t.Helper()
	path := filepath.Join("testdata", name)
	golden, err := os.ReadFile(path)
	if os.IsNotExist(err) && os.Getenv("UPDATE_GOLDEN") != "" {
		writeGolden(t, path, got)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var want goldenRun
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the run differs from the recorded one (-recorded +got):\n%s", diff)
	}
}

func writeGolden(t *testing.T, path string, run goldenRun) {
	t.Helper()
	data, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
