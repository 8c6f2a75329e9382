// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func openStore(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenStore(dir, "uid")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestStoreClaim(t *testing.T) {
	dir := t.TempDir()
	first, second := openStore(t, dir), openStore(t, dir)
	if highest, err := first.HighestClaim(); highest != 0 || err != nil {
		t.Errorf("without claims the highest is %d (%v), want 0", highest, err)
	}
	must(t, first.Claim(2, "a"), first.Claim(2, "a"), second.Claim(10, "b"))
	if err := second.Claim(2, "b"); !errors.Is(err, ErrClaimed) {
		t.Errorf("another process claims the attempt: %v, want ErrClaimed", err)
	}
	if highest, err := first.HighestClaim(); highest != 10 || err != nil {
		t.Errorf("the highest claim is %d (%v), want 10: as numbers, and seen by others", highest, err)
	}
}

func TestRow(t *testing.T) {
	s := openStore(t, t.TempDir())
	row := Row{
		Version: rowAt("l3"), Parent: rowAt("l2").Lineage, Cursor: 12, State: "path", Attempt: 2,
		Manifest: []Slot{{Slot: 8, Outcome: "Usable", Digest: "d"}},
		Metrics:  map[string]float64{"a": 0.1, "nan": math.NaN(), "inf": math.Inf(1)},
		Usage:    spending.Usage{SampledTokens: 5}, TrainingSeconds: 1.5,
	}
	must(t, s.WriteRow(row))
	got, err := s.Row(rowAt("l3"))
	must(t, err)
	row.Metrics = map[string]float64{"a": 0.1}
	if diff := cmp.Diff(row, got); diff != "" {
		t.Errorf("row came back otherwise (-want +got):\n%s", diff)
	}
	if _, err := s.Row(rl.Version{Step: 3}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading a row that is not there: %v, want fs.ErrNotExist", err)
	}
}

func TestRecentStates(t *testing.T) {
	s := openStore(t, t.TempDir())
	for step, state := range []string{"", "s1", "", "s3", "s4"} {
		must(t, s.WriteRow(Row{Version: rl.Version{Step: int64(step)}, State: state}))
	}
	got, err := s.RecentStates(2)
	must(t, err)
	if diff := cmp.Diff([]string{"s4", "s3"}, got); diff != "" {
		t.Errorf("recent states (-want +got):\n%s", diff)
	}
}

// fileLines reads metrics.jsonl.
func fileLines(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "uid", "metrics.jsonl"))
	must(t, err)
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// rowAt returns the version with a name such as a12: a letter for the branch, and the step.
func rowAt(name string) rl.Version {
	step, err := strconv.ParseInt(name[1:], 10, 64)
	if err != nil {
		panic(err)
	}
	return rl.Version{Step: step, Lineage: rl.Genesis(name)}
}

func row(name, parent string) Row {
	v := rowAt(name)
	return Row{Version: v, Parent: rowAt(parent).Lineage,
		Metrics: map[string]float64{"progress/batch": float64(v.Step - 1)}}
}

// noParent knows no parent beyond the ones in rows.
func noParent(rl.Version) (rl.Lineage, bool) { return rl.Lineage{}, false }

func TestRebuildFollowsTheParents(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	must(t,
		s.WriteRow(row("a1", "a0")), s.WriteRow(row("a2", "a1")), s.WriteRow(row("a3", "a2")),
		// Rows of an abandoned branch.
		s.WriteRow(row("b2", "a1")), s.WriteRow(row("b3", "b2")), s.WriteRow(row("b4", "b3")),
		s.WriteEvaluation(Evaluation{Version: rowAt("a0"), Digest: "p", Metrics: map[string]float64{"test/x": 1}}),
		s.WriteEvaluation(Evaluation{Version: rowAt("a3"), Digest: "p", Metrics: map[string]float64{"test/x": 2}}),
		s.WriteEvaluation(Evaluation{Version: rowAt("b2"), Digest: "p", Metrics: map[string]float64{"test/x": 3}}),
		s.Rebuild(rowAt("a3"), noParent),
	)
	want := []string{
		`{"progress/batch":0,"step":0}`, `{"progress/batch":1,"step":1}`, `{"progress/batch":2,"step":2}`,
	}
	if diff := cmp.Diff(want, fileLines(t, dir)); diff != "" {
		t.Errorf("metrics.jsonl (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{1, 2}, evaluated(t, dir)); diff != "" {
		t.Errorf("results in evaluations.jsonl (-want +got):\n%s", diff)
	}
}

// evaluated returns the results of evaluations.jsonl in the order of its lines.
func evaluated(t *testing.T, dir string) (results []float64) {
	t.Helper()
	for line := range strings.Lines(read(t, dir, evaluationsName)) {
		var e Evaluation
		must(t, json.Unmarshal([]byte(line), &e))
		results = append(results, e.Metrics["test/x"])
	}
	return results
}

func TestAppend(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	must(t,
		s.Rebuild(rowAt("a0"), noParent), s.AppendStep(row("a1", "a0")), s.AppendStep(row("a2", "a1")),
		s.AppendEvaluation(Evaluation{Version: rl.Version{Step: 1}, Metrics: map[string]float64{"test/x": 1}}),
		s.AppendStep(row("a3", "a2")),
	)
	want := []string{
		`{"progress/batch":0,"step":0}`, `{"progress/batch":1,"step":1}`, `{"progress/batch":2,"step":2}`,
	}
	if diff := cmp.Diff(want, fileLines(t, dir)); diff != "" {
		t.Errorf("metrics.jsonl (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{1}, evaluated(t, dir)); diff != "" {
		t.Errorf("results in evaluations.jsonl (-want +got):\n%s", diff)
	}
	// A later attempt rebuilds the file; lines that the first attempt adds afterwards are not in it.
	later := openStore(t, dir)
	must(t, later.Rebuild(rowAt("a0"), noParent), s.AppendStep(row("a4", "a3")),
		s.AppendEvaluation(Evaluation{Version: rl.Version{Step: 1}}),
		later.AppendStep(row("a1", "a0")))
	if diff := cmp.Diff(want[:1], fileLines(t, dir)); diff != "" {
		t.Errorf("metrics.jsonl after a superseded attempt's additions (-want +got):\n%s", diff)
	}
}

func TestSession(t *testing.T) {
	s := openStore(t, t.TempDir())
	if got := s.Session(); got != "" {
		t.Errorf("session is %q before one was noted", got)
	}
	must(t, s.SetSession("one"), s.SetSession("two"))
	if got := s.Session(); got != "two" {
		t.Errorf("session is %q, want two", got)
	}
}

func TestNoTemporaryFilesRemain(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	must(t, s.WriteRow(row("a1", "a0")), s.Rebuild(rowAt("a1"), noParent))
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, atomicfile.Extension) {
			t.Errorf("%s was left behind", path)
		}
		return err
	}))
}

func TestRebuildWithoutSomeRows(t *testing.T) {
	steps := func(list ...string) string { return strings.Join(list, " ") }
	all := steps("0", "1", "2", "3")
	damage := map[string]func(path string) error{
		"missing":   os.Remove,
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"torn":      func(path string) error { return os.Truncate(path, 40) },
		"of others": func(path string) error { return os.WriteFile(path, []byte("{}"), 0o644) },
	}
	cases := map[string]struct {
		rows   []int64
		branch bool
		parent Parent
		want   string
	}{
		"no row is damaged": {nil, true, noParent, all},
		"the newest":        {[]int64{4}, false, noParent, steps("0", "1", "2")},
		"one in between":    {[]int64{2}, false, noParent, steps("0", "2", "3")},
		"the first":         {[]int64{1}, false, noParent, steps("1", "2", "3")},
		"two of them":       {[]int64{2, 4}, false, noParent, steps("0", "2")},
		"above a branch":    {[]int64{3}, true, noParent, steps("3")},
		"above a branch, names know it": {[]int64{3}, true,
			func(v rl.Version) (rl.Lineage, bool) {
				return rowAt(fmt.Sprintf("a%d", v.Step-1)).Lineage, true
			}, steps("0", "1", "3")},
	}
	for kind, change := range damage {
		for name, tc := range cases {
			t.Run(kind+"/"+name, func(t *testing.T) {
				dir := t.TempDir()
				s := openStore(t, dir)
				for step := int64(1); step <= 4; step++ {
					must(t, s.WriteRow(row(fmt.Sprintf("a%d", step), fmt.Sprintf("a%d", step-1))))
				}
				if tc.branch {
					must(t, s.WriteRow(row("b2", "a1")))
				}
				for _, step := range tc.rows {
					must(t, change(s.files.path(rowName(rowAt(fmt.Sprintf("a%d", step))))))
				}
				must(t, s.Rebuild(rowAt("a4"), tc.parent))
				var got []string
				for _, line := range fileLines(t, dir) {
					var values map[string]float64
					must(t, json.Unmarshal([]byte(line), &values))
					got = append(got, fmt.Sprint(values["step"]))
				}
				if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
					t.Errorf("steps that have metrics (-want +got):\n%s", diff)
				}
			})
		}
	}
}
