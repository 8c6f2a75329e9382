// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/test/freeport"
)

// sumRows returns rows of sums. Of each ten rows, one has no reply, and one has a role that the format does not know.
func sumRows(first, n int) string {
	var rows strings.Builder
	for i := first; i < first+n; i++ {
		switch i % 10 {
		case 3:
			rows.WriteString(`{"messages": [{"role": "user", "content": "Nobody replies."}]}` + "\n")
		case 7:
			rows.WriteString(`{"messages": [{"role": "critic", "content": "?"}, {"role": "assistant", "content": "!"}]}` + "\n")
		default:
			fmt.Fprintf(&rows, `{"messages": [{"role": "user", "content": "What is %d + %d?"}, {"role": "assistant", "content": "%d"}]}`+
				"\n", i, i%7, i+i%7)
		}
	}
	return rows.String()
}

// withRows makes a run supervised. Its data is 40 rows to train on and 10 that are held out.
func withRows(f *contract.RunFile) {
	f.Fixed.Environments = nil
	f.Fixed.Algorithm = &algorithm.Algorithm{Steps: 4, Seed: 11, Substeps: 1, Optimizer: small().Algorithm.Optimizer}
	f.Fixed.Supervised = &contract.Supervised{
		Dataset: contract.Dataset{Dataset: settings.Dataset{
			JSONL: &settings.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "rows"}},
			Splits: []settings.DataSplit{{Name: "test", Source: "rows.jsonl", Take: new(int64(10))},
				{Name: "train", Source: "rows.jsonl", Skip: 10}},
		}},
		TrainOn: "AllAssistant", Normalization: "PerExample", BatchSize: 8,
	}
	f.Evaluation = &contract.Evaluation{Before: true, After: true, EverySteps: 2,
		HeldOut: []contract.HeldOut{{Name: "test"}}}
	f.Checkpoints.KeepBestMetric = contract.MetricHeldOutNLL
}

// newSupervised makes a fixture of a supervised run with its rows.
func newSupervised(t testing.TB, change ...func(*contract.RunFile)) *fixture {
	t.Helper()
	w := newFixture(t, func(f *contract.RunFile) {
		withRows(f)
		for _, c := range change {
			c(f)
		}
	})
	w.writeRows(sumRows(0, 50))
	return w
}

func (w *fixture) writeRows(rows string) {
	w.t.Helper()
	dir := filepath.Join(w.data, "configmap", "rows")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rows.jsonl"), []byte(rows), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

var undisturbedRows struct {
	once    sync.Once
	outcome outcome
	// trained is the number of tokens that led to the last version.
	trained int64
}

// supervisedTrained returns how many tokens of training and of held-out rows led to the last version.
func supervisedTrained(t testing.TB) int64 {
	t.Helper()
	supervisedBaseline(t)
	return undisturbedRows.trained
}

func supervisedBaseline(t testing.TB) outcome {
	t.Helper()
	undisturbedRows.once.Do(func() {
		w := newSupervised(t)
		verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
		undisturbedRows.outcome = w.outcome(verdict)
		w.checkSpentExactly(undisturbedRows.outcome.usage)
		// Nothing is sampled, so only the last version has sampler weights, for its users.
		if n := w.sim.Stats().Operations["save_weights_for_sampler"]; n != 1 {
			t.Errorf("sampler weights were saved %d times, want once", n)
		}
		rows := w.rows()
		undisturbedRows.trained = *rows[len(rows)-1].Trained
	})
	if undisturbedRows.outcome.adapter == "" {
		t.Fatal("the undisturbed run failed")
	}
	return undisturbedRows.outcome
}

func TestSupervisedRunTrainsOnRows(t *testing.T) {
	t.Parallel()
	got := supervisedBaseline(t)
	if len(got.metrics) != 5 {
		t.Fatalf("there are metrics of %d steps, want 4 and the evaluation of the last version: %v", len(got.metrics),
			got.metrics)
	}
	first, last := got.metrics[0], got.metrics[4]
	left := first["batch/rows_no_weight"] + first["batch/rows_not_rendered"]
	if first["batch/rows"] != 8 || left != first["batch/rows_left_out"] {
		t.Errorf("the first step has %v", first)
	}
	if before, after := first[contract.MetricHeldOutNLL], last[contract.MetricHeldOutNLL]; before <= 0 || after >= before {
		t.Errorf("the held-out rows have a negative log-likelihood of %v before and %v after, want less", before, after)
	}
	if before, after := first[contract.MetricNLL], got.metrics[3][contract.MetricNLL]; before <= 0 || after >= before {
		t.Errorf("the rows have a negative log-likelihood of %v before and %v after, want less", before, after)
	}
	left = 0
	for _, line := range got.metrics[:4] {
		left += line["batch/rows_no_weight"] + line["batch/rows_not_rendered"]
	}
	if left < 8 {
		t.Errorf("%v rows are left out, want all 8 that cannot be trained on", left)
	}
	if got.usage.SampledTokens != 0 || got.usage.TrainedTokens == 0 {
		t.Errorf("the usage is %+v, want trained tokens alone", got.usage)
	}
}

// TestSupervisedRunResumesAfterDeathAtEachFaultPoint kills the learner once, and its successor if it passes the same
// point.
func TestSupervisedRunResumesAfterDeathAtEachFaultPoint(t *testing.T) {
	t.Parallel()
	want := supervisedBaseline(t)
	for _, saves := range []int64{1, 2} {
		for _, point := range learner.FaultPoints() {
			t.Run(fmt.Sprintf("%s, a state each %d steps", point, saves), func(t *testing.T) {
				t.Parallel()
				w := newSupervised(t, func(f *contract.RunFile) { f.Checkpoints.RollingEverySteps = saves })
				step := int64(2)
				if point[:5] == "open." {
					step = -1
				}
				<-w.startLearner(1, w.dieAt(point, step)).done
				second := w.startLearner(2, dieIfAt(point, step))
				<-second.done
				verdict := second.verdict
				if verdict.Cause != contract.CauseCompleted {
					verdict = w.waitFor(w.startLearner(3, nil), contract.CauseCompleted)
				}
				w.compare(verdict, want)
				used := w.outcome(verdict).usage
				if once := used.TrainedTokens - used.BoughtTwiceTokens; once+used.UnconfirmedTokens < want.usage.TrainedTokens {
					t.Errorf("the usage is %+v, want at least %d trained tokens besides those bought twice", used,
						want.usage.TrainedTokens)
				}
				rows := w.rows()
				if got := *rows[len(rows)-1].Trained; got != supervisedTrained(t) {
					t.Errorf("%d tokens led to the last version, want %d", got, supervisedTrained(t))
				}
			})
		}
	}
}

// TestSupervisedRunWithWorkersBeside kills the learner, and in every other case a worker as well, while workers play
// the episodes of evaluations beside the training on rows.
func TestSupervisedRunWithWorkersBeside(t *testing.T) {
	t.Parallel()
	beside := func(f *contract.RunFile) { f.Evaluation.Environments = smallEvaluation().Environments }
	undisturbed := newSupervised(t, beside)
	undisturbed.startRolloutWorker("w0")
	want := undisturbed.outcome(undisturbed.waitFor(undisturbed.startLearner(1, nil), contract.CauseCompleted))
	if want.usage.SampledTokens == 0 || want.adapter != supervisedBaseline(t).adapter {
		t.Errorf("the run has the adapter %s and used %+v, want the adapter of a run without episodes, and samples",
			want.adapter, want.usage)
	}
	for i, point := range learner.FaultPoints() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newSupervised(t, beside)
			kill := w.startRolloutWorker("w0")
			step := int64(2)
			if point[:5] == "open." {
				step = -1
			}
			<-w.startLearner(1, w.dieAt(point, step)).done
			if i%2 == 0 {
				kill()
				w.startRolloutWorker("w1")
			}
			w.compare(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted), want)
		})
	}
}

// TestEpochsOfRows counts the steps of a run that sets epochs instead of steps, and the rows of its file.
func TestEpochsOfRows(t *testing.T) {
	t.Parallel()
	w := newSupervised(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps, f.Fixed.Algorithm.Epochs = 0, 1 })
	verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	if p := verdict.Progress; p.Step != 5 || p.Steps != 5 {
		t.Errorf("the run ended at step %d of %d, want 5: 40 rows in batches of 8", p.Step, p.Steps)
	}
	if c := verdict.Progress.Contents; c == nil || c.Sources[0].Rows != 50 || len(c.Sources[0].SHA256) != 64 {
		t.Errorf("the verdict pins %+v, want the file with its 50 rows", c)
	}
}

// TestRowsThatCannotBeTrainedOn checks that a run waits for the repair of its data, and then completes.
func TestRowsThatCannotBeTrainedOn(t *testing.T) {
	t.Parallel()
	long := `{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "` + strings.Repeat("x", 20000) + `"}]}`
	for name, tc := range map[string]struct{ rows, want string }{
		"no file":               {"", `ConfigMap "rows" does not exist, or is empty`},
		"no reply":              {strings.Repeat(`{"messages": [{"role": "user", "content": "q"}]}`+"\n", 20), "NoWeight: 10"},
		"a role of no format":   {strings.Repeat(`{"messages": [{"role": "critic", "content": "q"}]}`+"\n", 20), "critic"},
		"longer than a context": {strings.Repeat(long+"\n", 20), "set supervised.maxTokens to at most"},
		"no known column":       {strings.Repeat(`{"question": "q"}`+"\n", 20), "its columns are question"},
		"empty after the cut":   {sumRows(0, 10), "skip is 10"},
		"empty after the filter": {strings.Repeat(`{"episode": {"outcome": "EnvironmentFault", "conversations": [{"messages": `+
			`[{"role": "user", "text": "q"}, {"role": "assistant", "text": "a"}]}]}}`+"\n", 20), "Filtered: 10"},
		"no JSON": {"{\n", "row 1 of rows.jsonl cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, withRows)
			if tc.rows != "" {
				w.writeRows(tc.rows)
			}
			a := w.startLearner(1, nil)
			found := w.awaitProblem(a, problem.RowsBlocked)
			if !strings.Contains(found.Evidence, tc.want) {
				t.Errorf("the run waits for %q, want %q", found.Evidence, tc.want)
			}
			w.writeRows(sumRows(0, 50))
			w.waitFor(a, contract.CauseCompleted)
		})
	}
}

// TestPinnedRowsThatChange checks that a run waits if its rows differ from the rows that it has trained on.
func TestPinnedRowsThatChange(t *testing.T) {
	t.Parallel()
	want := supervisedBaseline(t)
	w := newSupervised(t)
	first := w.startLearner(1, w.dieAt("covered.sent", 2))
	<-first.done
	w.file.Contents = first.verdict.Progress.Contents
	w.writeRows(sumRows(1, 50))
	second := w.startLearner(2, nil)
	if found := w.awaitProblem(second, problem.RowsBlocked); !strings.Contains(found.Evidence, "the data has changed") {
		t.Errorf("the run waits for %q, want that the data has changed", found.Evidence)
	}
	w.writeRows(sumRows(0, 50))
	w.compare(w.waitFor(second, contract.CauseCompleted), want)
}

// TestSpuriousRefusalOfRows refuses a batch once, with rows that the endpoint otherwise accepts.
func TestSpuriousRefusalOfRows(t *testing.T) {
	t.Parallel()
	want := supervisedBaseline(t)
	w := newSupervised(t)
	w.addFaults(fault.Rule{Op: "forward_backward", Occurrence: 2, Do: fault.Fail, Category: "user"})
	w.compare(w.waitFor(w.startLearner(1, nil), contract.CauseCompleted), want)
}

// TestSupervisedRunsShareTheirPrefix compares the manifests of two runs of different lengths.
func TestSupervisedRunsShareTheirPrefix(t *testing.T) {
	t.Parallel()
	slots := func(steps int64) []string {
		w := newSupervised(t, func(f *contract.RunFile) { f.Fixed.Algorithm.Steps, f.Evaluation = steps, nil })
		w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
		var list []string
		for _, row := range w.rows()[:2] {
			for _, s := range row.Manifest {
				list = append(list, fmt.Sprint(s))
			}
		}
		return list
	}
	if diff := cmp.Diff(slots(2), slots(3)); diff != "" {
		t.Errorf("manifests (-2 steps +3 steps):\n%s", diff)
	}
}

// TestSupervisedProcesses kills the program learner, and once asks it to stop.
func TestSupervisedProcesses(t *testing.T) {
	t.Parallel()
	want := supervisedBaseline(t)
	w := newSupervised(t)
	sim := freeport.Address(t)
	w.url = "http://" + sim
	f := newProcessFixtureOf(t, w)
	f.sim = sim
	f.startSim()
	for i, fault := range []string{"open.read=kill", "row.written@1=kill", "save.submitted@2=kill"} {
		<-f.startLearnerProcess(int32(i+1), fault).done
	}
	stopped := f.startLearnerProcess(4, "covered.sent@3=stop")
	f.until("the learner is stopped", func() bool { return isStopped(stopped.Process.Pid) })
	if most := peak(t, stopped.Process.Pid); most > 64<<10 {
		t.Errorf("the learner took %d KiB of memory, more than 64 MiB", most)
	}
	stopped.signal(syscall.SIGTERM)
	stopped.signal(syscall.SIGCONT)
	f.waitForExit(stopped, 4, contract.CauseDrained)
	verdict := f.waitForExit(f.startLearnerProcess(5, ""), 5, contract.CauseCompleted)
	if got := f.weights(verdict); got != want.adapter {
		t.Errorf("final adapter is %s, undisturbed %s", got, want.adapter)
	}
	f.compareMetrics(want)
}
