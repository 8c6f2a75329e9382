// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/metric"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// mostCompared limits the runs that a page compares, and mostCurves the runs that it draws.
const (
	mostCompared = 64
	mostCurves   = 12
)

// comparePage is the content of the page of a comparison.
type comparePage struct {
	Problem string
	// Fields are the names of the fields in which the runs differ.
	Fields     []field
	Rows       []comparedRow
	Metric     string
	Unit       string
	Meaning    string
	Metrics    []option
	Smoothings []option
	Seeds, Log bool
	ByTime     bool
	Kept       []figure
	Curve      *chart
	Legend     []legendEntry
	NotDrawn   int
	Sweeps     []string
	Runs       []string
}

// field is a field in which runs differ.
type field struct{ Name, Path string }

// comparedRow is a row of a comparison.
type comparedRow struct {
	Runs                    []namedAddress
	States                  []string
	Step                    string
	Values                  []string
	Best, Newest, Deviation string
	Measured, Of            int
	First                   bool
}

type namedAddress struct{ Name, Address string }

// legendEntry is the name of a line of the plot; Class is its colour.
type legendEntry struct{ Name, Address, Class string }

// chosen returns the runs that a request compares, in the order of namespaces and names.
func (s *Site) chosen(r *http.Request) ([]*v1alpha1.TrainingRun, error) {
	query := r.URL.Query()
	all, err := s.runs.All()
	if err != nil {
		return nil, err
	}
	sweep, in := query.Get("sweep"), query.Get("namespace")
	chosen := slices.DeleteFunc(all, func(run *v1alpha1.TrainingRun) bool {
		if sweep != "" && run.Labels[observe.LabelSweep] == sweep && (in == "" || run.Namespace == in) {
			return false
		}
		return !slices.Contains(query["run"], run.Namespace+"/"+run.Name)
	})
	if len(chosen) > mostCompared {
		return nil, cli.Misused("%d runs are too many: a page compares %d at most", len(chosen), mostCompared)
	}
	return chosen, nil
}

func (s *Site) serveCompare(r *http.Request) (view, error) {
	runs, err := s.chosen(r)
	if err != nil {
		return view{}, err
	}
	query := r.URL.Query()
	page := comparePage{Metric: observe.FullName(cmp.Or(query.Get("metric"), "reward")), Seeds: query.Get("seeds") != "",
		Log: query.Get("log") != "", ByTime: query.Get("x") == "time", Smoothings: smoothingOptions(query.Get("smooth"))}
	made := view{template: "compare.html", title: "Compare", section: "compare", data: &page}
	for _, name := range []string{"sweep", "namespace"} {
		if v := query.Get(name); v != "" {
			page.Kept = append(page.Kept, figure{Name: name, Value: v})
		}
	}
	for _, name := range query["run"] {
		page.Kept = append(page.Kept, figure{Name: "run", Value: name})
	}
	if len(runs) < 2 {
		page.offer(s)
		return made, nil
	}
	histories, problem := s.historiesOf(r.Context(), runs)
	page.Problem = problem
	for _, name := range observe.Metrics(histories...) {
		page.Metrics = append(page.Metrics, option{Value: name, Text: observe.ShortName(name), Chosen: name == page.Metric})
	}
	d, _ := metric.Describe(page.Metric)
	page.Unit, page.Meaning = d.Unit, d.Meaning
	if err := page.fill(runs, histories); err != nil {
		return view{}, err
	}
	page.draw(r, runs)
	return made, nil
}

// offer lists the sweeps and the runs that may be compared.
func (p *comparePage) offer(s *Site) {
	all, _ := s.runs.All()
	for _, run := range all {
		p.Sweeps = appendNew(p.Sweeps, run.Labels[observe.LabelSweep])
		if len(p.Runs) < mostCompared {
			p.Runs = append(p.Runs, run.Namespace+"/"+run.Name)
		}
	}
	slices.Sort(p.Sweeps)
}

// historiesOf returns the histories of runs, and the problem of the first history that cannot be read.
func (s *Site) historiesOf(ctx context.Context, runs []*v1alpha1.TrainingRun) (all []*history.History, problem string) {
	for _, run := range runs {
		h, err := s.histories.of(ctx, run)
		if err != nil && problem == "" {
			problem = "The history of " + run.Name + " cannot be read: " + output.Safe(err.Error())
		}
		all = append(all, h)
	}
	return all, problem
}

// fill adds the rows of the table.
func (p *comparePage) fill(runs []*v1alpha1.TrainingRun, histories []*history.History) error {
	list := make([]v1alpha1.TrainingRun, len(runs))
	for i, run := range runs {
		list[i] = *run
	}
	compared, err := observe.Compare(list, histories, p.Metric, p.Seeds)
	if err != nil {
		return err
	}
	for _, path := range compared.Paths {
		p.Fields = append(p.Fields, field{Name: path[strings.LastIndex(path, ".")+1:], Path: path})
	}
	for i, row := range compared.Rows {
		shown := comparedRow{States: row.States, Step: row.Step(), Best: output.Number(row.Best),
			Newest: output.Number(row.Newest), Deviation: output.Number(row.Deviation), Measured: row.Measured,
			Of: len(row.Runs), First: i == 0 && row.Best != nil}
		for _, at := range row.Places() {
			shown.Runs = append(shown.Runs, namedAddress{runs[at].Name, address(runs[at].Namespace, runs[at].Name)})
		}
		for _, path := range compared.Paths {
			shown.Values = append(shown.Values, hide(path, row.Spec[path]))
		}
		p.Rows = append(p.Rows, shown)
	}
	return nil
}

// draw adds the plot of all runs.
func (p *comparePage) draw(r *http.Request, runs []*v1alpha1.TrainingRun) {
	query := r.URL.Query()
	asked := query
	asked.Set("metric", p.Metric)
	p.Curve = &chart{Metric: p.Metric, Title: observe.ShortName(p.Metric), Unit: p.Unit, Log: p.Log,
		Source: "/compare/curve.json?" + asked.Encode()}
	for i, run := range runs {
		if i == mostCurves {
			p.NotDrawn = len(runs) - mostCurves
			break
		}
		p.Legend = append(p.Legend, legendEntry{run.Name, address(run.Namespace, run.Name), lineClass(i)})
	}
}

func lineClass(i int) string { return "line-" + string(rune('a'+i)) }

func (s *Site) serveComparedCurves(w http.ResponseWriter, r *http.Request) {
	s.runs.Await(r.Context())
	runs, err := s.chosen(r)
	if err != nil {
		http.Error(w, output.Safe(err.Error()), codeOf(err))
		return
	}
	histories, _ := s.historiesOf(r.Context(), runs[:min(len(runs), mostCurves)])
	query := r.URL.Query()
	name := observe.FullName(cmp.Or(query.Get("metric"), contract.MetricReward))
	var all []curves
	for _, h := range histories {
		all = append(all, curveOf(h, name, smoothingOf(r), query.Get("x") == "time"))
	}
	writeJSON(w, merged(all, query.Get("x") == "time"))
}
