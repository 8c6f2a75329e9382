// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
)

// writeChain writes the rows of 100 steps, an evaluation of every tenth version, and the files that are made from them.
func writeChain(t *testing.T, s *Store) {
	t.Helper()
	must(t, s.Rebuild(rowAt("a0"), noParent))
	for step := int64(1); step <= 100; step++ {
		r := row(fmt.Sprintf("a%d", step), fmt.Sprintf("a%d", step-1))
		r.State, r.Manifest, r.Usage.TrainedTokens = fmt.Sprintf("s%d", step), []Slot{{Slot: step}}, 10*step
		must(t, s.WriteRow(r), s.AppendStep(r))
		if step%10 == 0 {
			e := Evaluation{Version: r.Version, Digest: "p", Metrics: map[string]float64{"test/x": float64(step)}}
			must(t, s.WriteEvaluation(e), s.AppendEvaluation(e))
		}
	}
}

// chainDir returns a function that returns a new folder with the files of writeChain.
func chainDir(t *testing.T) func(t *testing.T) (dir string) {
	t.Helper()
	original := t.TempDir()
	writeChain(t, openStore(t, original))
	return func(t *testing.T) string {
		t.Helper()
		dir := t.TempDir()
		must(t, os.CopyFS(dir, os.DirFS(original)))
		return dir
	}
}

// removeRows removes the oldest rows' own files.
func removeRows(t *testing.T, dir string, count int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "uid", rowsDir, "*.json"))
	must(t, err)
	for _, name := range names[:count] {
		must(t, os.Remove(name))
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "uid", name))
	must(t, err)
	return string(data)
}

// TestChainNeedsOneFileForOldRows makes sure that rows.jsonl replaces the rows' own files, whether it was extended step
// by step or rebuilt from them, and that metrics.jsonl is the same in both cases.
func TestChainNeedsOneFileForOldRows(t *testing.T) {
	for name, before := range map[string]func(*Store) error{
		"added to":     func(*Store) error { return nil },
		"put together": func(s *Store) error { return s.Rebuild(rowAt("a100"), noParent) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir)
			writeChain(t, s)
			metrics := read(t, dir, metricsName)
			must(t, before(s))
			rows := read(t, dir, rowsName)
			removeRows(t, dir, 100-changing)
			later := openStore(t, dir)
			var got []string
			for v := range later.Chain(rowAt("a100"), noParent) {
				if v.Row != nil {
					got = append(got, fmt.Sprintf("%d %s %d %g", v.Step, v.Row.State, v.Row.Usage.TrainedTokens,
						v.Metrics()["progress/batch"]))
				}
			}
			if len(got) != 100 || got[99] != "1 s1 10 0" {
				t.Errorf("the chain has %d rows, and the oldest is %q", len(got), got[len(got)-1])
			}
			must(t, later.Rebuild(rowAt("a100"), noParent))
			if diff := cmp.Diff(metrics, read(t, dir, metricsName)); diff != "" {
				t.Errorf("metrics.jsonl (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(rows, read(t, dir, rowsName)); diff != "" {
				t.Errorf("rows.jsonl (-before +after):\n%s", diff)
			}
		})
	}
}

// damageOfRows lists kinds of damage to rows.jsonl. repaired is set if the damage is at the end of the file, where it
// is repaired.
var damageOfRows = map[string]struct {
	change   func(data []byte) []byte
	repaired bool
}{
	"missing": {func([]byte) []byte { return nil }, true},
	"cut":     {func(data []byte) []byte { return data[:len(data)-7] }, true},
	"cut at a line": {func(data []byte) []byte {
		return data[:bytes.LastIndexByte(data[:len(data)-1], '\n')+1]
	}, true},
	"torn":                    {func(data []byte) []byte { return data[:len(data)/5] }, true},
	"torn between two values": {func(data []byte) []byte { return data[:bytes.IndexByte(data, '\t')+1] }, true},
	"zeros at the end": {func(data []byte) []byte {
		return append(data[:len(data)-900], make([]byte, 900)...)
	}, true},
	"overwritten": {func(data []byte) []byte {
		return append(bytes.Repeat([]byte{'x'}, 300), data[300:]...)
	}, false},
	"a damaged metric": {func(data []byte) []byte {
		return bytes.Replace(data, []byte(`"progress/batch":7,`), []byte(`"progress/batch":7`), 1)
	}, false},
}

// TestDamagedRowsFile checks that the row's own file replaces a line of rows.jsonl that is lost.
func TestDamagedRowsFile(t *testing.T) {
	chain := chainDir(t)
	for name, tc := range damageOfRows {
		t.Run(name, func(t *testing.T) {
			dir := chain(t)
			want := read(t, dir, metricsName)
			file := filepath.Join(dir, "uid", rowsName)
			rows := read(t, dir, rowsName)
			damaged := tc.change([]byte(rows))
			if string(damaged) == rows {
				t.Fatalf("nothing is damaged: got %v for both", string(damaged))
			}
			later := openStore(t, dir)
			must(t, os.WriteFile(file, damaged, fileMode), later.Rebuild(rowAt("a100"), noParent))
			if diff := cmp.Diff(want, read(t, dir, metricsName)); diff != "" {
				t.Errorf("metrics.jsonl (-want +got):\n%s", diff)
			}
			if got := read(t, dir, rowsName); (got == rows) != tc.repaired {
				t.Errorf("rows.jsonl is repaired: %v, want %v", got == rows, tc.repaired)
			}
			count := 0
			for v := range later.Chain(rowAt("a100"), noParent) {
				if v.Row != nil && v.Metrics()["progress/batch"] == float64(v.Step-1) {
					count++
				}
			}
			if count != 100 {
				t.Errorf("the chain has %d rows with their metrics, want 100", count)
			}
		})
	}
}

// TestDamagedMetrics checks that the next process repairs damage at the end of metrics.jsonl.
func TestDamagedMetrics(t *testing.T) {
	chain := chainDir(t)
	lines := func(data []byte) [][]byte { return bytes.SplitAfter(data, []byte("\n")) }
	damage := map[string]func(data []byte) []byte{
		"missing":         func([]byte) []byte { return nil },
		"cut":             func(data []byte) []byte { return data[:len(data)-7] },
		"cut at a line":   func(data []byte) []byte { return bytes.Join(lines(data)[:99], nil) },
		"without newline": func(data []byte) []byte { return data[:len(data)-1] },
		"a line in between is missing": func(data []byte) []byte {
			return bytes.Join(append(lines(data)[:90], lines(data)[91:]...), nil)
		},
		"a line is doubled":  func(data []byte) []byte { return append(data, lines(data)[99]...) },
		"a step came to it":  func(data []byte) []byte { return append(data, `{"step":100}`+"\n"...) },
		"another came to it": func(data []byte) []byte { return append(data, "text\n\n"...) },
		"a changed value": func(data []byte) []byte {
			return bytes.Replace(data, []byte(`batch":95`), []byte(`batch":9`), 1)
		},
	}
	for name, change := range damage {
		t.Run(name, func(t *testing.T) {
			dir := chain(t)
			want := read(t, dir, metricsName)
			damaged := change([]byte(want))
			if string(damaged) == want {
				t.Fatalf("nothing is damaged: got %v for both", string(damaged))
			}
			must(t, os.WriteFile(filepath.Join(dir, "uid", metricsName), damaged, fileMode),
				openStore(t, dir).Rebuild(rowAt("a100"), noParent))
			if diff := cmp.Diff(want, read(t, dir, metricsName)); diff != "" {
				t.Errorf("metrics.jsonl (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReturnToAnEarlierVersion makes sure that the lines of repeated steps and of their evaluations are replaced.
func TestReturnToAnEarlierVersion(t *testing.T) {
	for name, reopen := range map[string]bool{"the same process": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir)
			writeChain(t, s)
			if reopen {
				s = openStore(t, dir)
			}
			again := Evaluation{Version: rowAt("b91"), Digest: "p", Metrics: map[string]float64{"test/x": -1}}
			must(t, s.Rebuild(rowAt("a90"), noParent), s.WriteRow(row("b91", "a90")), s.AppendStep(row("b91", "a90")),
				s.WriteEvaluation(again), s.AppendEvaluation(again))
			for _, file := range []string{metricsName, rowsName} {
				if got := strings.Count(read(t, dir, file), "\n"); got != 91 {
					t.Errorf("%s has %d lines, want 91", file, got)
				}
			}
			if got := strings.Count(read(t, dir, rowsName), rowAt("b91").Lineage.String()); got != 1 {
				t.Errorf("rows.jsonl names the new version %d times, want once", got)
			}
			if diff := cmp.Diff([]float64{10, 20, 30, 40, 50, 60, 70, 80, 90, -1}, evaluated(t, dir)); diff != "" {
				t.Errorf("results in evaluations.jsonl (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEvaluationLineThatIsMissing checks that a result gets its line in evaluations.jsonl if a crash has cut or
// prevented the line, and that a result of a version without descendants gets none.
func TestEvaluationLineThatIsMissing(t *testing.T) {
	chain := chainDir(t)
	for name, change := range map[string]func(data string) string{
		"prevented":        func(data string) string { return data[:strings.LastIndex(data[:len(data)-1], "\n")+1] },
		"cut":              func(data string) string { return data[:len(data)-9] },
		"cut at its end":   func(data string) string { return data[:len(data)-1] },
		"all are missing":  func(string) string { return "" },
		"nothing is cut":   func(data string) string { return data },
		"the first is cut": func(data string) string { return data[9:] },
	} {
		t.Run(name, func(t *testing.T) {
			dir := chain(t)
			changed := change(read(t, dir, evaluationsName))
			must(t, os.WriteFile(filepath.Join(dir, "uid", evaluationsName), []byte(changed), fileMode),
				openStore(t, dir).WriteEvaluation(Evaluation{Version: rowAt("b50"), Digest: "p"}),
				openStore(t, dir).Rebuild(rowAt("a100"), noParent))
			got := evaluated(t, dir)
			slices.Sort(got)
			if diff := cmp.Diff([]float64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, got); diff != "" {
				t.Errorf("results in evaluations.jsonl (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSupersededAttemptAddsNoRows makes sure that a learner that a later one has replaced leaves rows.jsonl alone.
func TestSupersededAttemptAddsNoRows(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	writeChain(t, s)
	must(t, openStore(t, dir).Rebuild(rowAt("a100"), noParent))
	want := read(t, dir, rowsName)
	must(t, s.AppendStep(row("b101", "a100")))
	if diff := cmp.Diff(want, read(t, dir, rowsName)); diff != "" {
		t.Errorf("rows.jsonl (-want +got):\n%s", diff)
	}
}

// TestBranchInRowsFile checks that a row that only rows.jsonl has keeps another lineage from counting as the only one
// of its step.
func TestBranchInRowsFile(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	writeChain(t, s)
	must(t, s.WriteRow(row("b19", "a18")), os.Remove(filepath.Join(dir, "uid", rowName(rowAt("a19")))))
	must(t, os.WriteFile(filepath.Join(dir, "uid", rowName(rowAt("a20"))), nil, fileMode))
	must(t, os.WriteFile(filepath.Join(dir, "uid", rowsName),
		[]byte(withoutLine(read(t, dir, rowsName), rowAt("a20").Lineage.String())), fileMode))
	for v := range openStore(t, dir).Chain(rowAt("a100"), noParent) {
		if v.Version == rowAt("b19") {
			t.Fatalf("the chain follows a branch without a version: got %v for both", v.Version)
		}
	}
}

func withoutLine(text, part string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, part) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// TestRefreshCopiesFewRows checks that a learner does not fetch rows that rows.jsonl has, and still reads each row on
// request.
func TestRefreshCopiesFewRows(t *testing.T) {
	var gets atomic.Int64
	url := buckettest.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/"+rowsDir+"/") {
				gets.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	}).URL("")
	first, _ := openObjects(t, url)
	must(t, first.Claim(1, "a"))
	writeChain(t, first)
	must(t, first.Rebuild(rowAt("a100"), noParent))
	second, _ := openObjects(t, url)
	must(t, second.Claim(2, "b"))
	if got := gets.Load(); got != changing {
		t.Errorf("%d rows are fetched, want %d", got, changing)
	}
	must(t, second.Rebuild(rowAt("a100"), noParent))
	want := read(t, filepath.Dir(first.files.dir), metricsName)
	if diff := cmp.Diff(want, read(t, filepath.Dir(second.files.dir), metricsName)); diff != "" {
		t.Errorf("metrics.jsonl (-want +got):\n%s", diff)
	}
	if got, err := second.Row(rowAt("a3")); err != nil || len(got.Manifest) != 1 {
		t.Errorf("row 3 has %d slots (%v), want 1", len(got.Manifest), err)
	}
}
