// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/historymap"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

var errDied = errors.New("the process died")

// searchWorld is a cluster in which runs train five steps at a time, with a search that may die at any write.
type searchWorld struct {
	t    *testing.T
	kube client.Client
	// writes counts the writes of the search. The search dies at the write dieAt, which happens first if late is set.
	writes, dieAt int
	late          bool
	created       map[string]int
	most, peak    int
	out, told     bytes.Buffer
	// fail makes the second run fail at step 5.
	fail bool
}

func newSearchWorld(t *testing.T) *searchWorld {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &searchWorld{t: t, created: map[string]int{}}
	w.kube = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.TrainingRun{}).Build()
	return w
}

// connection returns a client as a process of the search has it.
func (w *searchWorld) connection() *cli.Connection {
	watched, ok := w.kube.(client.WithWatch)
	if !ok {
		w.t.Fatal("the client cannot be intercepted")
	}
	write := func(do func() error) error {
		w.writes++
		if w.writes != w.dieAt {
			return do()
		}
		if w.late {
			_ = do()
		}
		return errDied
	}
	return &cli.Connection{Namespace: "n", Client: interceptor.NewClient(watched, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			var all client.CreateOptions
			all.ApplyOptions(options)
			if len(all.DryRun) > 0 {
				return nil
			}
			return write(func() error {
				object.SetUID(types.UID(object.GetName()))
				err := c.Create(ctx, object, options...)
				if err == nil {
					w.created[object.GetName()]++
				}
				return err
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			return write(func() error { return c.Patch(ctx, object, patch, options...) })
		},
	})}
}

func (w *searchWorld) runs() []v1alpha1.TrainingRun {
	runs, err := runsOf(w.t.Context(), w.kube, "n", "sums")
	if err != nil {
		w.t.Fatal(err)
	}
	return runs
}

// train lets the runs that are not suspended train five steps.
func (w *searchWorld) train() {
	running := 0
	for i, run := range w.runs() {
		if ptr.Deref(run.Spec.Suspend, false) || status.RunFinished(&run) {
			continue
		}
		running++
		step := ptr.Deref(run.Status.Step, 0) + 5
		w.record(&run, step, float64((i*5)%9)/10+float64(step)/1000)
		run.Status.Step, run.Status.Steps = &step, new(int64(90))
		run.Status.Usage = &v1alpha1.Usage{SampledTokens: new(100 * step), EstimatedUSD: new(float64(step) / 100)}
		end := func(condition string) {
			run.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue}}
		}
		if run.Status.State = v1alpha1.StateTraining; step == 90 {
			run.Status.State = v1alpha1.StateSucceeded
			end(v1alpha1.ConditionComplete)
		}
		if w.fail && i == 1 && step == 5 {
			run.Status.State = v1alpha1.StateFailed
			end(v1alpha1.ConditionFailed)
		}
		if err := w.kube.Status().Update(w.t.Context(), &run); err != nil {
			w.t.Fatal(err)
		}
	}
	w.peak = max(w.peak, running)
}

// record adds an evaluation to the history of a run.
func (w *searchWorld) record(run *v1alpha1.TrainingRun, step int64, value float64) {
	head, h, err := historymap.Read(w.t.Context(), w.kube, run)
	if err != nil {
		w.t.Fatal(err)
	}
	before := h.Chunks()
	h.Rows = append(h.Rows, history.Row{Step: step, Metrics: map[string]float64{contract.MetricPassAt1: value}})
	parts, err := h.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := historymap.Write(w.t.Context(), w.kube, run, head, before, parts); err != nil {
		w.t.Fatal(err)
	}
}

// command begins or continues the search, as the command does, until it ends or dies.
func (w *searchWorld) command(s search) error {
	run := searched()
	if err := s.prepare(run, []string{rates}); err != nil {
		return err
	}
	trials, err := s.trials(run, "")
	if err != nil {
		return err
	}
	connection, env := w.connection(), cli.IO{Stdout: &w.out, Stderr: &w.told}
	wanted, err := missing(w.t.Context(), connection, "n", trials)
	if err != nil {
		return err
	}
	if err := create(w.t.Context(), env, connection, nil, wanted, false); err != nil {
		return err
	}
	trials[0].SetNamespace("n")
	searching := newSearcher(s, env, connection, w.most, trials)
	const patience = 400
	for range patience {
		done, err := searching.look(w.t.Context())
		if err != nil {
			return err
		}
		if done {
			return searching.report(w.t.Context())
		}
		w.train()
	}
	w.t.Fatalf("the search does not end; it says:\n%s%s", &w.out, &w.told)
	return nil
}

// ends returns the end of each run: its step, its result and the rung where it stopped.
func (w *searchWorld) ends() map[string]string {
	all := map[string]string{}
	for _, run := range w.runs() {
		all[run.Name] = fmt.Sprintf("step %d of suspended=%t, stopped at %q, held %q, %s", ptr.Deref(run.Status.Step, 0),
			ptr.Deref(run.Spec.Suspend, false), run.Annotations[annotationStopped], run.Annotations[annotationHeld],
			run.Annotations[annotationRungs])
	}
	return all
}

func halving() search { return search{Kind: "halving", Samples: 9, Reduction: 3} }

func TestHalving(t *testing.T) {
	w := newSearchWorld(t)
	w.most = 2
	if err := w.command(halving()); err != nil {
		t.Fatal(err)
	}
	got := w.ends()
	// Values by number of the run: 0, .5, .1, .6, .2, .7, .3, .8, .4, plus a thousandth a step.
	want := map[string]string{
		"sums-1": `step 10 of suspended=true, stopped at "10", held "", {"10":0.01}`,
		"sums-4": `step 30 of suspended=true, stopped at "30", held "", {"10":0.61,"30":0.63}`,
		"sums-8": `step 90 of suspended=false, stopped at "", held "", {"10":0.81,"30":0.83}`,
	}
	for name, end := range want {
		if got[name] != end {
			t.Errorf("%s: %s, want %s", name, got[name], end)
		}
	}
	if w.peak != 2 {
		t.Errorf("%d runs trained at a time, want 2", w.peak)
	}
	lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
	table := lines[len(lines)-11:]
	for i, want := range []string{"RUN LEARNINGRATE STATE STEP AT 10 AT 30 PASS@1 SAMPLED USD",
		"sums-8 Succeeded 90/90 0.81 0.83 0.89",
		"sums-6 Stopped 30/90 0.71 0.73 0.73", "sums-4 Stopped 30/90", "sums-2 Stopped 10/90 0.51 0.51"} {
		fields := strings.Fields(table[i])
		if i > 0 {
			fields = slices.Delete(fields, 1, 2) // The rate.
		}
		if got := strings.Join(fields, " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d is %q, want %q", i+1, got, want)
		}
	}
	// Six runs of 10 steps, two of 30 and one of 90.
	if want := "spent in 9 runs: 0 prompt tokens, 21.0k sampled, 0 trained; 2.10 USD"; table[10] != want {
		t.Errorf("the end is %q, want %q", table[10], want)
	}
	writes := w.writes
	if err := w.command(halving()); err != nil || w.writes != writes {
		t.Errorf("the command again: %v, and %d more writes", err, w.writes-writes)
	}
}

// TestSearchContinuesAfterEachWrite kills the process of a search at each of its writes, before and after the write
// happened. The same command, repeated, ends like a search that never died.
func TestSearchContinuesAfterEachWrite(t *testing.T) {
	four := search{Kind: "halving", Samples: 4, Reduction: 2, Rungs: []int64{10, 30}}
	undisturbed := newSearchWorld(t)
	undisturbed.fail = true
	if err := undisturbed.command(four); err != nil {
		t.Fatal(err)
	}
	want := undisturbed.ends()
	if !strings.Contains(want["sums-2"], `stopped at "10", held "", {"10":null}`) {
		t.Errorf("the failed run ends with %s", want["sums-2"])
	}
	for dieAt := 1; dieAt <= undisturbed.writes; dieAt++ {
		for _, late := range []bool{false, true} {
			w := newSearchWorld(t)
			w.fail, w.dieAt, w.late = true, dieAt, late
			err := w.command(four)
			if !errors.Is(err, errDied) {
				t.Fatalf("at write %d: %v", dieAt, err)
			}
			if err := w.command(four); err != nil {
				t.Fatalf("at write %d, late %t, the command again: %v", dieAt, late, err)
			}
			if diff := cmp.Diff(want, w.ends()); diff != "" {
				t.Errorf("after a death at write %d, late %t (-undisturbed +got):\n%s", dieAt, late, diff)
			}
			if len(w.created) != 4 || slices.Max(slices.Collect(maps.Values(w.created))) != 1 {
				t.Errorf("after a death at write %d, late %t, runs were created %v", dieAt, late, w.created)
			}
		}
	}
}

func TestRandomSearchStopsNothing(t *testing.T) {
	w := newSearchWorld(t)
	s := search{Kind: "random", Samples: 3, Reduction: 3}
	if err := w.command(s); err != nil {
		t.Fatal(err)
	}
	for name, end := range w.ends() {
		if !strings.HasPrefix(end, "step 90 of suspended=false") {
			t.Errorf("%s: %s", name, end)
		}
	}
	s.Samples = 5
	if err := w.command(s); err != nil || len(w.runs()) != 5 || w.created["sums-1"] != 1 {
		t.Errorf("more samples: %v, %v", err, w.created)
	}
	s.Seed = 1
	if err := w.command(s); err == nil || !strings.Contains(err.Error(), "choose another --sweep") {
		t.Errorf("a search of another seed: %v", err)
	}
	f := newFeeder(cli.IO{Stdout: &w.out}, w.kube, "n", "sums")
	if _, err := f.resume(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "repeat that command") {
		t.Errorf("resume --sweep of a search: %v", err)
	}
}

// TestSearchWaitsForAPerson suspends a run, leaves it out, and deletes another.
func TestSearchWaitsForAPerson(t *testing.T) {
	w := newSearchWorld(t)
	s := halving()
	s.Samples, s.Rungs = 3, []int64{10}
	if err := s.prepare(searched(), []string{rates}); err != nil {
		t.Fatal(err)
	}
	trials, err := s.trials(searched(), "")
	if err != nil {
		t.Fatal(err)
	}
	connection := w.connection()
	if err := create(t.Context(), cli.IO{Stdout: &w.out}, connection, nil, trials, false); err != nil {
		t.Fatal(err)
	}
	searching := newSearcher(s, cli.IO{Stdout: &w.out, Stderr: &w.told}, connection, 0, trials)
	look := func() bool {
		t.Helper()
		done, err := searching.look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.train()
		return done
	}
	change := func(name string, edit func(run *v1alpha1.TrainingRun)) {
		t.Helper()
		var run v1alpha1.TrainingRun
		if err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: name}, &run); err != nil {
			t.Fatal(err)
		}
		edit(&run)
		if err := w.kube.Update(t.Context(), &run); err != nil {
			t.Fatal(err)
		}
	}
	look()
	change("sums-2", func(run *v1alpha1.TrainingRun) { run.Spec.Suspend = new(true) })
	for range 10 {
		if look() {
			t.Fatal("the search ends without a run that a person suspended")
		}
	}
	if got := w.told.String(); strings.Count(got, "sums-2 is suspended") != 1 ||
		!strings.Contains(got, "kubectl tinker resume sums-2") {
		t.Errorf("it says %q", got)
	}
	change("sums-2", func(run *v1alpha1.TrainingRun) {
		metav1.SetMetaDataAnnotation(&run.ObjectMeta, annotationStopped, "true")
	})
	for i := 0; !look(); i++ {
		if i > 40 {
			t.Fatalf("the search does not end without the run that was left out: %v", w.ends())
		}
	}
	if got := w.ends(); !strings.HasPrefix(got["sums-1"], "step 10") || !strings.HasPrefix(got["sums-2"], "step 5") ||
		!strings.HasPrefix(got["sums-3"], "step 90") {
		t.Errorf("it ends with %v", got)
	}
	if err := w.kube.Delete(t.Context(), &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "n",
		Name: "sums-1"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := searching.look(t.Context()); err == nil || !strings.Contains(err.Error(), `"sums-1" was deleted`) {
		t.Errorf("without a run: %v", err)
	}
}

// TestSearchRefusesAnUnknownMetric names a metric that no evaluation has.
func TestSearchRefusesAnUnknownMetric(t *testing.T) {
	w := newSearchWorld(t)
	s := halving()
	s.Metric = "test/pass@2"
	if err := w.command(s); err == nil || !strings.Contains(err.Error(), "test/pass@1") {
		t.Errorf("a metric that does not exist: %v", err)
	}
	if runs := w.runs(); math.Abs(float64(ptr.Deref(runs[0].Status.Step, 0)-10)) > 5 {
		t.Errorf("it is refused at step %d", ptr.Deref(runs[0].Status.Step, 0))
	}
}

// TestMetricAtARung reads the metric of evaluations that end after later steps are committed, or never.
func TestMetricAtARung(t *testing.T) {
	row := func(step int64, metrics ...string) history.Row {
		r := history.Row{Step: step, Metrics: map[string]float64{contract.MetricReward: 1}}
		for _, name := range metrics {
			r.Metrics[name] = float64(step)
		}
		return r
	}
	const metric = contract.MetricPassAt1
	for name, tc := range map[string]struct {
		rows  []history.Row
		value float64
		known bool
		err   string
	}{
		"no row":                {nil, 0, false, ""},
		"not evaluated yet":     {[]history.Row{row(9), row(10), row(12)}, 0, false, ""},
		"evaluated before":      {[]history.Row{row(0, metric), row(10), row(12)}, 0, false, ""},
		"evaluated":             {[]history.Row{row(5, metric), row(10, metric), row(15, metric)}, 10, true, ""},
		"thinned":               {[]history.Row{row(8, metric), row(16, metric)}, 8, true, ""},
		"thinned to rungs only": {[]history.Row{row(5, metric), row(16, metric)}, 0, true, ""},
		"another metric":        {[]history.Row{row(10, "test/sums/pass@1")}, 0, false, "test/sums/pass@1"},
	} {
		w := newSearchWorld(t)
		run := &v1alpha1.TrainingRun{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "sums", UID: "12345"}}
		run.Status.Step = new(int64(10))
		parts, err := (&history.History{Rows: tc.rows}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := historymap.Write(t.Context(), w.kube, run, nil, nil, parts); err != nil {
			t.Fatal(err)
		}
		s := searcher{search: search{Metric: metric}, kube: w.kube}
		value, known, err := s.valueAt(t.Context(), run, 5, 10)
		if known != tc.known || ptr.Deref(value, 0) != tc.value || (err != nil) != (tc.err != "") ||
			err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %s, known %t, %v", name, numberOr(value, "none"), known, err)
		}
	}
}
