// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/metric"
	"github.com/tinker-operator/tinker-operator/internal/plugin/change"
	"github.com/tinker-operator/tinker-operator/internal/plugin/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/prices"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// runPage is the content of the page of a run.
type runPage struct {
	listedRun

	Why         observe.Explanation
	Conditions  []condition
	Actions     []offer
	Attempts    []attempt
	Checkpoints []checkpoint
	Charts      []chart
	Metrics     []option
	Smoothings  []option
	Chosen      []string
	ByTime, Log bool
	// NoHistory says why there are no curves.
	NoHistory string
	Usage     []figure
	// Spending are the curves of tokens and dollars.
	Spending     []chart
	Price        string
	Environments []usedEnvironment
	Spec         string
	Parent       string
	// ParentAddress is empty if the parent no longer exists.
	ParentAddress string
	Differences   []difference
	Events        []event
	NoEvents      string
	Recorded      bool
}

// condition is a condition as a sentence with its repair.
type condition struct {
	Type, Status, Message, Reason, Repair, Since string
	// Wrong conditions are shown first.
	Wrong bool
}

// offer is an action that a person may take.
type offer struct{ Name, Does, Address string }

// option is a choice of a form.
type option struct {
	Value, Text string
	Chosen      bool
}

// chart is the curve of a metric.
type chart struct {
	Metric, Title, Unit, Meaning, Good, Bad, Newest, Source string
	Log                                                     bool
}

// figure is a count with its name.
type figure struct{ Name, Value, Note string }

// event is an event about the run.
type event struct{ Type, Reason, Note, Since string }

// difference is a field in which a run differs from another.
type difference struct{ Path, Here, There string }

func (s *Site) serveRun(r *http.Request) (view, error) {
	run, err := s.run(r)
	if err != nil {
		return view{}, err
	}
	ctx := r.Context()
	page := runPage{listedRun: s.listed(run), Why: observe.ExplainRun(ctx, s.in(run.Namespace), run, s.Now()),
		Conditions: s.conditionsOf(run), Attempts: s.attemptsOf(run), Checkpoints: s.checkpointsOf(run),
		Usage: usageOf(run), Price: priceOf(run), Recorded: run.Spec.Artifacts != nil}
	for _, action := range change.Actions() {
		if _, err := action.Preview(run); err == nil && applies(action, run) {
			page.Actions = append(page.Actions, offer{Name: action.Name, Does: action.Does,
				Address: address(run.Namespace, run.Name, "actions", action.Name)})
		}
	}
	h, err := s.histories.of(ctx, run)
	if err != nil {
		page.NoHistory = "The history cannot be read: " + output.Safe(err.Error())
	}
	page.chart(r, run, h)
	page.Spending = spendingCharts(run, h)
	page.Environments = s.environmentsOf(run)
	if page.Spec, err = specText(run.Spec); err != nil {
		return view{}, err
	}
	s.compareWithParent(&page, run)
	page.Events, page.NoEvents = s.eventsOf(ctx, run)
	return view{template: "run.html", title: run.Name, section: "runs", data: page}, nil
}

// applies reports whether an action changes a run.
func applies(action change.Action, run *v1alpha1.TrainingRun) bool {
	suspended := run.Spec.Suspend != nil && *run.Spec.Suspend
	switch action.Name {
	case "suspend":
		return !suspended
	case "resume":
		return suspended
	}
	return true
}

func (s *Site) conditionsOf(run *v1alpha1.TrainingRun) []condition {
	var all []condition
	for _, c := range run.Status.Conditions {
		repair := status.Advice(run, status.CodeOf(run.Status.Codes, c.Type))
		all = append(all, condition{Type: c.Type, Status: string(c.Status), Message: c.Message, Reason: c.Reason,
			Repair: repair, Since: s.since(c.LastTransitionTime.Time),
			Wrong: observe.IsWrong(c)})
	}
	slices.SortStableFunc(all, func(a, b condition) int { return boolean(b.Wrong) - boolean(a.Wrong) })
	return all
}

// chart adds the curves that the request asks for, or else the usual curves.
func (p *runPage) chart(r *http.Request, run *v1alpha1.TrainingRun, h *history.History) {
	query := r.URL.Query()
	p.ByTime, p.Log = query.Get("x") == "time", query.Get("log") != ""
	newest := observe.Newest(h)
	for _, name := range query["metric"] {
		p.Chosen = appendNew(p.Chosen, observe.FullName(name))
	}
	if len(p.Chosen) == 0 {
		for _, name := range observe.Usual(h) {
			if _, ok := newest[name]; ok {
				p.Chosen = append(p.Chosen, name)
			}
		}
	}
	if len(h.Rows) == 0 && p.NoHistory == "" {
		p.NoHistory = "The first step is not committed yet: there are no curves."
	}
	for _, name := range observe.Metrics(h) {
		if !strings.HasSuffix(name, suffixLow) && !strings.HasSuffix(name, suffixHigh) {
			p.Metrics = append(p.Metrics, option{Value: name, Text: observe.ShortName(name),
				Chosen: slices.Contains(p.Chosen, name)})
		}
	}
	p.Smoothings = smoothingOptions(query.Get("smooth"))
	for _, name := range p.Chosen {
		d, _ := metric.Describe(name)
		value, ok := newest[name]
		c := chart{Metric: name, Title: observe.ShortName(name), Unit: d.Unit, Meaning: d.Meaning, Good: d.Good, Bad: d.Bad,
			Log: p.Log, Source: curveAddress(address(run.Namespace, run.Name, "curve.json"), name, query)}
		if ok {
			c.Newest = output.Number(&value)
		}
		p.Charts = append(p.Charts, c)
	}
}

// curveAddress returns the address of a curve with the settings of a query.
func curveAddress(path, name string, query url.Values) string {
	asked := url.Values{"metric": {name}}
	for _, key := range []string{"smooth", "x"} {
		if v := query.Get(key); v != "" {
			asked.Set(key, v)
		}
	}
	return path + "?" + asked.Encode()
}

func smoothingOptions(chosen string) []option {
	var all []option
	for _, v := range smoothings {
		text := v
		if v == "" {
			text = "none"
		}
		all = append(all, option{Value: v, Text: text, Chosen: v == chosen})
	}
	return all
}

// usageOf returns the tokens of a run, and their cost.
func usageOf(run *v1alpha1.TrainingRun) []figure {
	u := run.Status.Usage
	if u == nil {
		return nil
	}
	var all []figure
	for _, f := range []struct {
		name string
		n    *int64
		note string
	}{
		{"prompt tokens", u.PromptTokens, ""}, {"of them cached", u.CachedPromptTokens, "as the endpoint says"},
		{"sampled tokens", u.SampledTokens, ""}, {"trained tokens", u.TrainedTokens, ""},
		{"of them bought twice", u.BoughtTwiceTokens, "their result was lost"},
		{"tokens that judges read", u.JudgePromptTokens, ""}, {"tokens that judges sampled", u.JudgeSampledTokens, ""},
		{"tokens of the reference", u.ReferenceTokens, ""}, {"tokens of teachers", u.TeacherTokens, ""},
		{"unconfirmed tokens", u.UnconfirmedTokens, "it is not known whether they were executed"},
	} {
		if f.n != nil && *f.n != 0 {
			all = append(all, figure{f.name, output.Count(*f.n), f.note})
		}
	}
	if u.EstimatedUSD != nil {
		note := "each token at the price when it was counted"
		if u.UnconfirmedUSD != nil {
			note += ", with " + dollars(u.UnconfirmedUSD) + " for tokens whose requests may not have been executed"
		}
		all = append(all, figure{"estimated cost", dollars(u.EstimatedUSD), note})
	}
	return all
}

// spendingCharts returns the curves of tokens and dollars, if the history has the tokens of steps.
func spendingCharts(run *v1alpha1.TrainingRun, h *history.History) []chart {
	used := withUsage(h, observe.Summarize(run, time.Time{}).EstimatedUSD)
	if len(used.Rows) == 0 {
		return nil
	}
	newest := used.Rows[len(used.Rows)-1].Metrics
	source := address(run.Namespace, run.Name, "curve.json") + "?metric="
	all := []chart{{Metric: curveTokens, Title: "tokens of the steps", Source: source + curveTokens,
		Newest:  output.Count(int64(newest[curveTokens])),
		Meaning: "The tokens that the steps of the batch read and sampled, added up."}}
	if cost, ok := newest[curveDollars]; ok {
		all = append(all, chart{Metric: curveDollars, Title: "estimated cost", Unit: "$", Source: source + curveDollars,
			Newest: dollars(&cost), Meaning: "The estimated cost, spread over the steps by their tokens."})
	}
	return all
}

// priceOf describes the prices of a run's model.
func priceOf(run *v1alpha1.TrainingRun) string {
	price, ok := prices.Of(run.Spec.Model.Name)
	if b := run.Spec.Budget; b != nil && len(b.Prices) > 0 {
		return "by budget.prices of the run"
	}
	if !ok {
		return "the price of " + run.Spec.Model.Name + " is not known: set budget.prices"
	}
	return strings.Join([]string{"a million tokens of " + run.Spec.Model.Name + " cost", dollars(&price.Prompt),
		"read,", dollars(&price.Sampled), "sampled and", dollars(&price.Trained), "trained, as of", prices.Date()}, " ")
}

// compareWithParent shows the fields in which a run differs from the run whose weights it begins with.
func (s *Site) compareWithParent(page *runPage, run *v1alpha1.TrainingRun) {
	parent := s.parentOf(run)
	if parent == nil {
		if from := run.Spec.InitFrom; from != nil && from.RunRef != nil {
			page.Parent = from.RunRef.Name
		}
		return
	}
	page.Parent, page.ParentAddress = parent.Name, address(parent.Namespace, parent.Name)
	compared, err := observe.Compare([]v1alpha1.TrainingRun{*run, *parent}, []*history.History{{}, {}}, "", false)
	if err != nil || len(compared.Rows) != 2 {
		return
	}
	for _, path := range compared.Paths {
		here, there := hide(path, compared.Rows[0].Spec[path]), hide(path, compared.Rows[1].Spec[path])
		page.Differences = append(page.Differences, difference{path, here, there})
	}
}

// parentOf returns the run whose weights a run begins with, by its name or its checkpoint; nil if none is known.
func (s *Site) parentOf(run *v1alpha1.TrainingRun) *v1alpha1.TrainingRun {
	from := run.Spec.InitFrom
	if from == nil {
		return nil
	}
	all, _ := s.runs.All()
	at := slices.IndexFunc(all, func(other *v1alpha1.TrainingRun) bool {
		if other.Namespace != run.Namespace || other.UID == run.UID {
			return false
		}
		return from.RunRef != nil && other.Name == from.RunRef.Name ||
			from.Checkpoint != "" && slices.ContainsFunc(checkpoints.Known(other), func(c v1alpha1.Checkpoint) bool {
				return c.State == from.Checkpoint || c.Sampler == from.Checkpoint
			})
	})
	if at < 0 {
		return nil
	}
	return all[at]
}

// forksOf returns the steps of a run whose checkpoints other runs begin with.
func (s *Site) forksOf(run *v1alpha1.TrainingRun) []int64 {
	var steps []int64
	all, _ := s.runs.All()
	for _, other := range all {
		from := other.Spec.InitFrom
		if from == nil || s.parentOf(other) != run {
			continue
		}
		if from.RunRef != nil && from.RunRef.Step != nil {
			steps = append(steps, *from.RunRef.Step)
			continue
		}
		for _, c := range checkpoints.Known(run) {
			if from.Checkpoint != "" && (c.State == from.Checkpoint || c.Sampler == from.Checkpoint) {
				steps = append(steps, c.Step)
			}
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps)
}

// eventsOf returns the newest events about a run.
func (s *Site) eventsOf(ctx context.Context, run *v1alpha1.TrainingRun) ([]event, string) {
	const newest = 20
	var list eventsv1.EventList
	if err := s.Connection.List(ctx, &list, client.InNamespace(run.Namespace)); err != nil {
		return nil, "Events cannot be read: " + output.Safe(err.Error())
	}
	mine := slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.UID != run.UID })
	slices.SortStableFunc(mine, func(a, b eventsv1.Event) int {
		return observe.LastSeen(b).Compare(observe.LastSeen(a))
	})
	var all []event
	for _, e := range mine[:min(len(mine), newest)] {
		all = append(all, event{Type: e.Type, Reason: e.Reason, Note: e.Note, Since: s.since(observe.LastSeen(e))})
	}
	return all, ""
}

func timeOf(t *metav1.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
