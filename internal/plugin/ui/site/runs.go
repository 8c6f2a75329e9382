// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// rowsOfPage is the number of runs on one page.
const rowsOfPage = 100

// listedRun is a row of the list of runs.
type listedRun struct {
	observe.Summary

	Run     *v1alpha1.TrainingRun
	Address string
	// ID names the row among others, and Key the figures that its sparklines draw.
	ID, Key string
	Age     string
	Sweep   string
	// Spent and Limit are dollars; empty if not known.
	Spent, Limit string
	// Restarted counts the restarts in words.
	Restarted string
}

// list is the content of the page of runs.
type list struct {
	Problem string
	Rows    []listedRun
	Columns []column
	// Found of Total runs fit the filters. The rows First to Last of them are shown.
	Found, Total, First, Last int
	Before, After             string
	Text, State, In, Sweep    string
	States, Namespaces        []string
	Sweeps                    []string
	Several                   bool
	Sort                      string
}

// column is the head of a column by which rows can be sorted.
type column struct {
	Name, Title string
	// Address sorts by the column, and Order is how rows are sorted by it now.
	Address, Order string
	Numeric        bool
	// Wide columns are left out if the window is narrow.
	Wide bool
}

// orders compare two rows by a column. The greatest figure comes first. Texts are in alphabetical order, except for
// problems: runs without a problem come last.
var orders = map[string]func(a, b listedRun) int{
	"name":     func(a, b listedRun) int { return cmp.Compare(a.ID, b.ID) },
	"state":    func(a, b listedRun) int { return cmp.Compare(a.State, b.State) },
	"progress": func(a, b listedRun) int { return cmp.Compare(b.Share(), a.Share()) },
	"reward":   func(a, b listedRun) int { return compareFigures(a.Reward, b.Reward) },
	"pass":     func(a, b listedRun) int { return compareFigures(a.PassAt1, b.PassAt1) },
	"dollars":  func(a, b listedRun) int { return compareFigures(a.EstimatedUSD, b.EstimatedUSD) },
	"age":      func(a, b listedRun) int { return b.Run.CreationTimestamp.Compare(a.Run.CreationTimestamp.Time) },
	"waits":    func(a, b listedRun) int { return cmp.Compare(b.WaitsFor+b.Learning, a.WaitsFor+a.Learning) },
}

// compareFigures puts the greater figure first, and a missing one last.
func compareFigures(a, b *float64) int {
	if a == nil || b == nil {
		return cmp.Compare(boolean(a == nil), boolean(b == nil))
	}
	return cmp.Compare(*b, *a)
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *Site) serveRuns(r *http.Request) (view, error) {
	all, err := s.runs.All()
	query := r.URL.Query()
	page := list{Total: len(all), Text: query.Get("q"), State: query.Get("state"), In: query.Get("namespace"),
		Sweep: query.Get("sweep"), Sort: query.Get("sort")}
	if err != nil {
		page.Problem = "The list of runs is not up to date: " + output.Safe(err.Error())
	}
	var rows []listedRun
	for _, run := range all {
		row := s.listed(run)
		page.States = appendNew(page.States, row.State)
		page.Namespaces = appendNew(page.Namespaces, run.Namespace)
		if row.Sweep != "" {
			page.Sweeps = appendNew(page.Sweeps, row.Sweep)
		}
		if page.shows(row) {
			rows = append(rows, row)
		}
	}
	page.Several = len(page.Namespaces) > 1
	for _, names := range [][]string{page.States, page.Namespaces, page.Sweeps} {
		slices.Sort(names)
	}
	sortBy(rows, page.Sort)
	page.Found = len(rows)
	page.cut(r, rows)
	page.Columns = columns(r, page.Sort)
	return view{template: "runs.html", title: "Runs", section: "runs", data: page}, nil
}

// sortBy sorts rows by a column; "-" before its name turns the order around. Without a column, runs in progress come
// first, and newer runs before older runs.
func sortBy(rows []listedRun, by string) {
	order := orders[strings.TrimPrefix(by, "-")]
	if order == nil {
		by = ""
		order = func(a, b listedRun) int {
			over := func(l listedRun) int { return boolean(l.Run.Status.CompletionTime != nil) }
			return cmp.Or(cmp.Compare(over(a), over(b)), orders["age"](a, b))
		}
	}
	slices.SortStableFunc(rows, func(a, b listedRun) int {
		if strings.HasPrefix(by, "-") {
			return cmp.Or(order(b, a), cmp.Compare(a.ID, b.ID))
		}
		return cmp.Or(order(a, b), cmp.Compare(a.ID, b.ID))
	})
}

// cut adds to the page the rows that it has room for.
func (l *list) cut(r *http.Request, rows []listedRun) {
	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	from = max(0, min(from, (len(rows)-1)/rowsOfPage*rowsOfPage))
	to := min(len(rows), from+rowsOfPage)
	l.Rows, l.First, l.Last = rows[from:to], from+1, to
	if from > 0 {
		l.Before = with(r, "from", strconv.Itoa(max(0, from-rowsOfPage)))
	}
	if to < len(rows) {
		l.After = with(r, "from", strconv.Itoa(to))
	}
}

// shows reports whether a row fits the filters.
func (l *list) shows(row listedRun) bool {
	text := strings.ToLower(l.Text)
	return (l.State == "" || row.State == l.State) && (l.In == "" || row.Run.Namespace == l.In) &&
		(l.Sweep == "" || row.Sweep == l.Sweep) && (text == "" ||
		strings.Contains(strings.ToLower(row.ID+" "+row.Run.Spec.Model.Name+" "+row.WaitsFor+" "+row.Learning), text))
}

// listed returns the row of a run.
func (s *Site) listed(run *v1alpha1.TrainingRun) listedRun {
	row := listedRun{Summary: observe.Summarize(run, s.Now()), Run: run, Address: address(run.Namespace, run.Name),
		ID:  run.Namespace + "/" + run.Name,
		Age: output.Duration(s.Now().Sub(run.CreationTimestamp.Time)), Sweep: run.Labels[observe.LabelSweep]}
	row.Key = fmt.Sprintf("%s %d %s %s", run.UID, row.Step, output.Number(row.Reward), output.Number(row.PassAt1))
	row.Spent = dollars(row.EstimatedUSD)
	if b := run.Spec.Budget; b != nil {
		row.Limit = dollars(b.USD)
	}
	row.Restarted = cli.Count(int(row.Restarts), "restart")
	return row
}

func dollars(v *float64) string {
	if v == nil {
		return ""
	}
	return "$" + strings.TrimSuffix(strconv.FormatFloat(*v, 'f', 2, 64), ".00")
}

// columns returns the heads of the columns.
func columns(r *http.Request, sorted string) []column {
	all := []column{{Name: "name", Title: "Name"}, {Name: "state", Title: "State"}, {Name: "progress", Title: "Progress"},
		{Name: "reward", Title: "Reward", Numeric: true}, {Name: "pass", Title: "pass@1", Numeric: true, Wide: true},
		{Name: "dollars", Title: "Dollars", Numeric: true, Wide: true},
		{Name: "waits", Title: "Problem", Wide: true},
		{Name: "age", Title: "Age", Numeric: true, Wide: true}}
	for i := range all {
		next := all[i].Name
		switch sorted {
		case next:
			all[i].Order, next = "down", "-"+next
		case "-" + next:
			all[i].Order, next = "up", ""
		}
		all[i].Address = with(r, "sort", next, "from", "")
	}
	return all
}

func appendNew(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// serveSparks answers with the sparklines of a row.
func (s *Site) serveSparks(w http.ResponseWriter, r *http.Request) {
	run, err := s.run(r)
	if err != nil {
		http.Error(w, output.Safe(err.Error()), codeOf(err))
		return
	}
	h, err := s.histories.of(r.Context(), run)
	if err != nil {
		http.Error(w, output.Safe(err.Error()), codeOf(err))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	reward, pass := sparkline(h, contract.MetricReward), sparkline(h, contract.MetricPassAt1)
	if reward == "" {
		reward = sparkline(h, contract.MetricNLL)
	}
	_ = sparkTemplate.Execute(w, []template.HTML{reward, pass})
}

var sparkTemplate = template.Must(template.New("").Parse(`{{range .}}<span>{{.}}</span>{{end}}`))

// since returns how long ago something was.
func (s *Site) since(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return output.Duration(s.Now().Sub(at)) + " ago"
}
