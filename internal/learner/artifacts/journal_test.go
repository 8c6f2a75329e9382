// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// textOf returns the text of an error, or "" if there is none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// openJournal returns a journal that has claimed an attempt, and the problems that it reports.
func openJournal(t *testing.T, dir string, attempt int32) (*Journal, *[]string) {
	t.Helper()
	var problems []string
	j := NewJournal(Config{
		Dir: dir, RunUID: "uid", Attempt: attempt, Identity: "me", Logger: slog.New(slog.DiscardHandler),
		Blocked: func(err error) { problems = append(problems, textOf(err)) }, Pause: time.Millisecond,
		Slow: time.Minute, GiveUp: make(chan struct{}),
	})
	if err := j.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	return j, &problems
}

// giveUp makes a journal stop waiting for its store.
func giveUp(j *Journal) {
	given := make(chan struct{})
	close(given)
	j.config.GiveUp = given
}

// makeUnusable makes a folder of the run unusable until back is called.
func makeUnusable(t *testing.T, dir, folder string) (back func()) {
	t.Helper()
	path := filepath.Join(dir, "uid", folder)
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(path, path+".away")
	return func() { move(path+".away", path) }
}

// writeRows makes the rows of a journal durable.
func writeRows(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.WriteRows(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// versionAt returns the version of a step.
func versionAt(step int64) rl.Version {
	return rl.Version{Step: step, Lineage: rl.Genesis(fmt.Sprint(step))}
}

func linesOf(t *testing.T, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "uid", "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func TestJournalClaim(t *testing.T) {
	cases := map[string]struct {
		attempt  int32
		identity string
		want     error
	}{
		"the next attempt":                   {3, "me", nil},
		"the same process again":             {2, "me", nil},
		"another process of the attempt":     {2, "other", ErrClaimed},
		"an attempt that is already too old": {1, "me", ErrFenced},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			openJournal(t, dir, 2)
			j := NewJournal(Config{
				Dir: dir, RunUID: "uid", Attempt: tc.attempt, Identity: tc.identity,
				Logger: slog.New(slog.DiscardHandler), Blocked: func(error) {}, Slow: time.Minute,
			})
			if err := j.Claim(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("Claim = %v, want %v", err, tc.want)
			}
		})
	}
}

func TestLookForClaim(t *testing.T) {
	cases := map[string]struct {
		higher bool
		down   bool
		want   error
	}{
		"no higher claim":         {false, false, nil},
		"a higher claim":          {true, false, ErrFenced},
		"a store that is offline": {false, true, ErrUnanswered},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j, problems := openJournal(t, dir, 1)
			if tc.higher {
				openJournal(t, dir, 2)
			}
			if tc.down {
				makeUnusable(t, dir, "attempts")
				giveUp(j)
			}
			if err := j.LookForClaim(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("LookForClaim = %v, want %v", err, tc.want)
			}
			if reported := (*problems)[len(*problems)-1] != ""; reported != tc.down {
				t.Errorf("problems are %q", *problems)
			}
		})
	}
}

func TestAwaitClaims(t *testing.T) {
	dir := t.TempDir()
	j, problems := openJournal(t, dir, 1)
	back := makeUnusable(t, dir, "attempts")
	ctx, end := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer end()
	if err := j.AwaitClaims(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("AwaitClaims while the store is offline = %v", err)
	}
	time.AfterFunc(5*time.Millisecond, back)
	if err := j.AwaitClaims(t.Context()); err != nil {
		t.Errorf("AwaitClaims once the store answers = %v", err)
	}
	if last := (*problems)[len(*problems)-1]; last != "" {
		t.Errorf("the last problem is %q", last)
	}
}

func TestWriteRows(t *testing.T) {
	row := func(step int64) Row { return Row{Version: versionAt(step)} }
	cases := map[string]struct {
		rows    []Row
		flushed bool
		down    bool
		want    map[int64]string
		err     error
	}{
		"the newest row names the state": {rows: []Row{row(1), row(2)}, want: map[int64]string{1: "", 2: "path"}},
		"a row that is written is written anew": {rows: []Row{row(1), row(2)}, flushed: true,
			want: map[int64]string{1: "", 2: "path"}},
		"no rows":                 {want: map[int64]string{}},
		"a store that is offline": {rows: []Row{row(1)}, down: true, want: map[int64]string{}, err: ErrUnanswered},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j, _ := openJournal(t, dir, 1)
			for _, r := range tc.rows {
				j.Add(r, nil)
			}
			if tc.flushed {
				writeRows(t, j)
			}
			back := func() {}
			if tc.down {
				back = makeUnusable(t, dir, "rows")
				giveUp(j)
			}
			if err := j.WriteRowsOf(t.Context(), "path"); !errors.Is(err, tc.err) {
				t.Errorf("WriteRowsOf = %v, want %v", err, tc.err)
			}
			back()
			got := map[int64]string{}
			for step := range int64(4) {
				if r, err := j.Row(versionAt(step)); err == nil {
					got[step] = r.State
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("states by row (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWriteRowsWaitsForTheStore(t *testing.T) {
	dir := t.TempDir()
	j, _ := openJournal(t, dir, 1)
	j.Add(Row{Version: versionAt(1)}, nil)
	back := makeUnusable(t, dir, "rows")
	failed := 0
	j.config.Blocked = func(err error) {
		if err == nil {
			return
		}
		if failed++; failed == 3 {
			back()
		}
	}
	if err := j.WriteRowsOf(t.Context(), "path"); err != nil {
		t.Fatal(err)
	}
	if failed != 3 {
		t.Errorf("%d failures were reported, want 3", failed)
	}
	if diff := cmp.Diff([]string{"path"}, j.RecentStates()); diff != "" {
		t.Errorf("recent states (-want +got):\n%s", diff)
	}
}

func TestComplete(t *testing.T) {
	dir := t.TempDir()
	j, _ := openJournal(t, dir, 1)
	j.Rebuild(versionAt(0))
	complete := func(row *Row) { row.TrainingSeconds += 2 }
	j.Complete(complete)
	for step := range int64(2) {
		j.Add(Row{Version: versionAt(step + 1), TrainingSeconds: 1}, nil)
	}
	writeRows(t, j)
	j.Complete(complete)
	for _, want := range []float64{1, 3} {
		if row, err := j.Row(versionAt(2)); err != nil || row.TrainingSeconds != want {
			t.Errorf("the newest row has %v s (%v), want %v s", row.TrainingSeconds, err, want)
		}
		j.AppendLines(t.Context())
	}
	if row, err := j.Row(versionAt(1)); err != nil || row.TrainingSeconds != 1 {
		t.Errorf("the row before has %v s (%v), want 1 s", row.TrainingSeconds, err)
	}
}

func TestLines(t *testing.T) {
	dir := t.TempDir()
	j, _ := openJournal(t, dir, 1)
	j.Rebuild(versionAt(0))
	j.Add(Row{Version: versionAt(1), Parent: versionAt(0).Lineage}, nil)
	j.AppendLines(t.Context())
	if got := linesOf(t, dir); got != 0 {
		t.Errorf("%d lines before the row is durable", got)
	}
	writeRows(t, j)
	j.AppendLines(t.Context())
	j.AppendLines(t.Context())
	if got := linesOf(t, dir); got != 1 {
		t.Errorf("%d lines of one step", got)
	}
	j.Add(Row{Version: versionAt(2), Parent: versionAt(1).Lineage}, nil)
	j.Discard()
	writeRows(t, j)
	j.AppendLines(t.Context())
	if got := linesOf(t, dir); got != 1 {
		t.Errorf("%d lines after a step was discarded", got)
	}
	if err := j.AwaitRebuild(t.Context(), versionAt(1)); err != nil || linesOf(t, dir) != 1 {
		t.Errorf("%d lines after a rebuild (%v)", linesOf(t, dir), err)
	}
}

func TestEvaluation(t *testing.T) {
	dir := t.TempDir()
	j, _ := openJournal(t, dir, 1)
	j.Rebuild(versionAt(0))
	if _, ok := j.Evaluation(versionAt(0), "digest"); ok {
		t.Error("there is a result before it was written")
	}
	result := Evaluation{Version: versionAt(0), Digest: "digest", Metrics: map[string]float64{"test/x": 1}}
	if err := j.WriteEvaluation(t.Context(), result, []byte("episodes")); err != nil {
		t.Fatal(err)
	}
	got, ok := j.Evaluation(versionAt(0), "digest")
	if diff := cmp.Diff(result, got); diff != "" || !ok {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{1}, evaluated(t, dir)); diff != "" {
		t.Errorf("results in evaluations.jsonl (-want +got):\n%s", diff)
	}
	if got := read(t, dir, evaluatedEpisodesName(result)); got != "episodes" {
		t.Errorf("the episodes are %q", got)
	}
}

func TestHandover(t *testing.T) {
	dir := t.TempDir()
	first, _ := openJournal(t, dir, 1)
	first.SetSession("session")
	if !first.SetWorkers([]string{"w0", "w1"}) {
		t.Error("workers are not recorded")
	}
	second, _ := openJournal(t, dir, 2)
	if got := second.Session(); got != "session" {
		t.Errorf("session is %q", got)
	}
	if diff := cmp.Diff([]string{"w0", "w1"}, second.Workers()); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
}

// TestWithoutStore makes sure that every call of a journal without a store succeeds and knows nothing.
func TestWithoutStore(t *testing.T) {
	j, _ := openJournal(t, "", 1)
	j.Add(Row{Version: versionAt(1)}, nil)
	j.SetSession("session")
	j.Rebuild(versionAt(1))
	for version := range j.Chain(versionAt(1)) {
		t.Errorf("%v is visited", version)
	}
	writeRows(t, j)
	j.AppendLines(t.Context())
	for name, err := range map[string]error{
		"LookForClaim": j.LookForClaim(t.Context()), "AwaitClaims": j.AwaitClaims(t.Context()),
		"WriteRowsOf": j.WriteRowsOf(t.Context(), "path"), "AwaitRebuild": j.AwaitRebuild(t.Context(), versionAt(1)),
		"WriteEvaluation": j.WriteEvaluation(t.Context(), Evaluation{}, nil),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := j.Row(versionAt(1)); err == nil {
		t.Error("a row is read")
	}
	if _, ok := j.Evaluation(versionAt(1), "d"); ok || j.HasStore() || j.Session() != "" || len(j.Workers()) > 0 ||
		len(j.RecentStates()) > 0 || j.SetWorkers(nil) {
		t.Errorf("a journal without a store has evaluation %v, store %v, session %q, workers %v and states %v, want none",
			ok, j.HasStore(), j.Session(), j.Workers(), j.RecentStates())
	}
}

// TestSlowStore makes a call of the store that takes 30 s, and checks that the call is reported as slow while it
// lasts, and still counts as successful.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var problems []string
		j := NewJournal(Config{
			Logger: slog.New(slog.DiscardHandler), Blocked: func(err error) { problems = append(problems, textOf(err)) },
			Pause: time.Second, Slow: 20 * time.Second, GiveUp: make(chan struct{}),
		})
		calls := 0
		err := j.insist(t.Context(), "writing", func() error {
			calls++
			time.Sleep(30 * time.Second)
			return nil
		})
		if err != nil || calls != 1 {
			t.Errorf("a slow call = %v after %d calls, want success after 1", err, calls)
		}
		if len(problems) < 2 || problems[0] != errSlow.Error() || problems[len(problems)-1] != "" {
			t.Errorf("problems are %q, want %q and then none", problems, errSlow)
		}
	})
}

// TestGiveUpACallThatHangs gives up while a call of the store does not return.
func TestGiveUpACallThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given, hung := make(chan struct{}), make(chan struct{})
		defer close(hung)
		time.AfterFunc(time.Minute, func() { close(given) })
		j := NewJournal(Config{Logger: slog.New(slog.DiscardHandler), Blocked: func(error) {}, Pause: time.Second,
			Slow: 20 * time.Second, GiveUp: given})
		began := time.Now()
		err := j.insist(t.Context(), "writing", func() error {
			<-hung
			return nil
		})
		if took := time.Since(began); !errors.Is(err, ErrUnanswered) || took != time.Minute {
			t.Errorf("a call that hangs = %v after %s, want %v after 1m0s", err, took, ErrUnanswered)
		}
	})
}

// TestCallThatSucceedsCounts ends the context while the store is called. A write that succeeds counts as written.
func TestCallThatSucceedsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		j := NewJournal(Config{Logger: slog.New(slog.DiscardHandler), Blocked: func(error) {}, Pause: time.Second,
			Slow: 20 * time.Second})
		err := j.insist(ctx, "writing", func() error {
			end()
			time.Sleep(time.Second)
			return nil
		})
		if err != nil {
			t.Errorf("a call that has succeeded = %v, want no error", err)
		}
	})
}

// TestRowOfAVersionThatIsMadeAgain makes a version again after its save failed, and checks that its row no longer
// names the lost state, which a resume would rank among the best.
func TestRowOfAVersionThatIsMadeAgain(t *testing.T) {
	j, _ := openJournal(t, t.TempDir(), 1)
	j.Add(Row{Version: versionAt(1)}, nil)
	if err := j.WriteRowsOf(t.Context(), "lost"); err != nil {
		t.Fatal(err)
	}
	j.Discard()
	j.Add(Row{Version: versionAt(1)}, nil)
	j.Add(Row{Version: versionAt(2)}, nil)
	if err := j.WriteRowsOf(t.Context(), "saved"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"saved"}, j.RecentStates()); diff != "" {
		t.Errorf("states that rows name (-want +got):\n%s", diff)
	}
}
