// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package reader_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
	"github.com/tinker-operator/tinker-operator/internal/learner/reader"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

func lineage(name string) rl.Lineage { return rl.Genesis(name) }

// fill writes steps 1 to 3, step 2 twice, and commits steps 1 and 2 with the lineages a and b.
func fill(t *testing.T, s *artifacts.Store) {
	t.Helper()
	if err := s.Claim(1, "me"); err != nil {
		t.Fatal(err)
	}
	write := func(step int64, lineage rl.Lineage) {
		data, err := transcript.EncodeLines(transcript.Line{Step: step, Lineage: lineage.String()},
			[]transcript.TaskGroup{{Recorded: true}}, transcript.Trained{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.WriteStep(artifacts.Row{Version: rl.Version{Step: step, Lineage: lineage}}, data); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []struct {
		step    int64
		lineage string
	}{{1, "a"}, {2, "b"}, {2, "z"}, {3, "z"}} {
		write(v.step, lineage(v.lineage))
	}
	newest := rl.Version{Step: 2, Lineage: lineage("b")}
	for _, row := range []artifacts.Row{{Version: rl.Version{Step: 1, Lineage: lineage("a")}},
		{Version: newest, Parent: lineage("a")}} {
		if err := s.WriteRow(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Rebuild(newest, func(rl.Version) (rl.Lineage, bool) { return rl.Lineage{}, false }); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, r reader.Request) {
	t.Helper()
	r.RunUID = "uid"
	for step, want := range map[int64]string{
		1: lineage("a").String(), 2: lineage("b").String(), 3: "", reader.Newest: lineage("b").String(), reader.List: "",
	} {
		r.Step = step
		got := reader.Read(t.Context(), r)
		if got.Problem != "" {
			t.Fatal(got.Problem)
		}
		if diff := cmp.Diff([]int64{1, 2}, got.Steps); diff != "" {
			t.Errorf("the steps (-want +got):\n%s", diff)
		}
		var s transcript.Step
		if len(got.Transcript) > 0 {
			if err := json.Unmarshal(got.Transcript, &s); err != nil {
				t.Fatal(err)
			}
		}
		if s.Lineage != want {
			t.Errorf("step %d has the transcript of lineage %q, want %q", step, s.Lineage, want)
		}
	}
	r.RunUID = "other"
	if got := reader.Read(t.Context(), r); got.Problem != "" || len(got.Steps) > 0 {
		t.Errorf("a run without transcripts: got %+v", got)
	}
}

func TestReadChoosesTheCommittedStepsOfAFolder(t *testing.T) {
	dir := t.TempDir()
	s, err := artifacts.OpenStore(dir, "uid")
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s)
	check(t, reader.Request{Dir: dir})
	check(t, reader.Request{Dir: "/does/not/exist", URL: "file://" + dir})
}

func TestReadChoosesTheCommittedStepsOfABucket(t *testing.T) {
	address := buckettest.Start(t, nil).URL("team")
	objects, err := bucket.Open(t.Context(), address, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() })
	s, err := artifacts.OpenBucketStore(objects, t.TempDir(), "uid")
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s)
	check(t, reader.Request{URL: address})
}

func TestReadReportsWhatAPersonCanRepair(t *testing.T) {
	for want, r := range map[string]reader.Request{
		"no such file":          {Dir: "/does/not/exist"},
		"parsing artifacts.url": {URL: "s3://%zz"},
		"opening artifacts.url": {URL: "gopher://x"},
	} {
		if got := reader.Read(t.Context(), r); !strings.Contains(got.Problem, want) {
			t.Errorf("%+v: the problem is %q, want it to have %q", r, got.Problem, want)
		}
	}
}

// TestEvaluationsAreChosen checks that steps and evaluations are told apart, that the committed version of a step is
// chosen, and that version 0 has its evaluation although it has no row.
func TestEvaluationsAreChosen(t *testing.T) {
	dir := t.TempDir()
	s, err := artifacts.OpenStore(dir, "uid")
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s)
	for step, names := range map[int64][]string{0: {"o"}, 2: {"b", "z"}, 3: {"z"}} {
		for _, name := range names {
			e := artifacts.Evaluation{Version: rl.Version{Step: step, Lineage: lineage(name)}, Digest: "plan"}
			data, err := transcript.EncodeLines(transcript.Line{Step: step, Lineage: e.Lineage.String(), Evaluation: "plan"},
				[]transcript.TaskGroup{{Recorded: true}}, transcript.Trained{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.WriteEvaluatedEpisodes(e, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	check(t, reader.Request{Dir: dir})
	got := reader.Read(t.Context(), reader.Request{Dir: dir, RunUID: "uid", Step: reader.Newest, Evaluation: true})
	var step transcript.Step
	if err := json.Unmarshal(got.Transcript, &step); err != nil {
		t.Fatalf("%v: %s", err, got.Problem)
	}
	if diff := cmp.Diff([]int64{0, 2}, got.Steps); diff != "" || step.Lineage != lineage("b").String() {
		t.Errorf("the newest evaluation has lineage %q, want b; steps (-want +got):\n%s", step.Lineage, diff)
	}
}

// TestLines reads the newest lines of metrics.jsonl, from a file and from a bucket, with the evaluations since the
// first of them.
func TestLines(t *testing.T) {
	address := buckettest.Start(t, nil).URL("team")
	objects, err := bucket.Open(t.Context(), address, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() })
	inBucket, err := artifacts.OpenBucketStore(objects, t.TempDir(), "uid")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	inFolder, err := artifacts.OpenStore(dir, "uid")
	if err != nil {
		t.Fatal(err)
	}
	for s, r := range map[*artifacts.Store]reader.Request{inFolder: {Dir: dir}, inBucket: {URL: address}} {
		fill(t, s)
		for step, lineage := range map[int64]rl.Lineage{0: rl.Genesis("o"), 1: lineage("a")} {
			result := artifacts.Evaluation{Version: rl.Version{Step: step, Lineage: lineage}, Digest: "plan",
				Metrics: map[string]float64{"test/pass@1": float64(step)}}
			if err := s.AppendEvaluation(result); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Publish(); err != nil {
			t.Fatal(err)
		}
		r.RunUID = "uid"
		for lines, want := range map[int][2]int{1: {1, 1}, 2: {2, 2}, 9: {2, 2}} {
			r.Lines = lines
			got := reader.Read(t.Context(), r)
			if got.Problem != "" || len(got.Metrics) != want[0] || len(got.Evaluations) != want[1] {
				t.Errorf("%+v: got %s, want %d lines and %d evaluations", r, got.Metrics, want[0], want[1])
			}
		}
	}
}
