// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// defaultWidth is the width of a screen whose width is not known.
const defaultWidth = 100

// summary is a run at a glance.
type summary struct {
	// Namespace is empty if all runs are in one namespace.
	Namespace    string   `json:"namespace,omitempty"`
	Name         string   `json:"name"`
	State        string   `json:"state"`
	Step         int64    `json:"step"`
	Steps        int64    `json:"steps"`
	Reward       *float64 `json:"reward,omitempty"`
	PassAt1      *float64 `json:"passAt1,omitempty"`
	NLL          *float64 `json:"nll,omitempty"`
	HeldOutNLL   *float64 `json:"heldOutNLL,omitempty"`
	StepSeconds  *float64 `json:"stepSeconds,omitempty"`
	TokensPerSec *float64 `json:"sampledTokensPerSecond,omitempty"`
	EstimatedUSD *float64 `json:"estimatedUSD,omitempty"`
	Ready        int32    `json:"readyWorkers"`
	Workers      int32    `json:"workers"`
	Restarts     int32    `json:"restarts"`
	// ETASeconds is the time for the rest at the pace of the newest step; nil if not known.
	ETASeconds *int64 `json:"etaSeconds,omitempty"`
	// From is the run whose weights this run begins with, by initFrom.runRef; empty if there is none.
	From string `json:"from,omitempty"`
	// WaitsFor is the reason of the run's wait; empty while it makes progress.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Learning is the reason why the policy does not learn, with its figures; empty if there is none.
	Learning  string `json:"learning,omitempty"`
	namespace string
	cause     string        `json:"-"`
	age       time.Duration `json:"-"`
	ended     bool          `json:"-"`
}

func summarize(run *v1alpha1.TrainingRun, now time.Time) summary {
	status := run.Status
	s := summary{
		Name: run.Name, State: cmp.Or(status.State, unobserved), Step: ptr.Deref(status.Step, 0),
		Steps: ptr.Deref(status.Steps, 0),
		Ready: ptr.Deref(status.ReadyWorkers, 0), Workers: ptr.Deref(status.Workers, 0),
		Restarts: ptr.Deref(status.Restarts, 0),
		age:      now.Sub(run.CreationTimestamp.Time), ended: status.CompletionTime != nil, namespace: run.Namespace,
	}
	if run.Status.Usage != nil {
		s.EstimatedUSD = run.Status.Usage.EstimatedUSD
	}
	if from := run.Spec.InitFrom; from != nil && from.RunRef != nil {
		s.From = from.RunRef.Name
	}
	s.Reward, s.PassAt1 = status.Metric(contract.MetricReward), status.Metric(contract.MetricPassAt1)
	s.NLL, s.HeldOutNLL = status.Metric(contract.MetricNLL), status.Metric(contract.MetricHeldOutNLL)
	s.StepSeconds = status.Metric(contract.MetricStepSeconds)
	s.TokensPerSec = status.Metric(contract.MetricSampledTokensPerSecond)
	if c := decisive(run); !s.ended && c.Status != metav1.ConditionTrue || c.Type == v1alpha1.ConditionStalled ||
		c.Type == v1alpha1.ConditionFailed {
		s.WaitsFor = output.Safe(strings.TrimSpace(c.Reason + ": " + c.Message))
	}
	if s.StepSeconds != nil && !s.ended && s.Steps > s.Step && meta.IsStatusConditionTrue(status.Conditions,
		v1alpha1.ConditionProgressing) {
		eta := int64(float64(s.Steps-s.Step) * *s.StepSeconds)
		s.ETASeconds = &eta
	}
	if len(status.Diagnoses) > 0 {
		d := status.Diagnoses[0]
		s.Learning, s.cause = output.Safe(d.Cause+": "+d.Message), output.Safe(d.Cause)
	}
	return s
}

// in returns the summary as a snapshot shows it: with the namespace if the snapshot has several.
func (s summary) in(now snapshot) summary {
	if now.allNamespaces {
		s.Namespace = s.namespace
	}
	return s
}

// title returns a name that distinguishes the run from the other runs of a snapshot.
func (s summary) title() string {
	if s.Namespace != "" {
		return s.Namespace + "/" + s.Name
	}
	return s.Name
}

// share returns the share of the run that is done.
func (s summary) share() float64 {
	if s.Steps == 0 {
		return 0
	}
	return float64(s.Step) / float64(s.Steps)
}

func (s summary) progress() string {
	if s.Steps == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Step, s.Steps)
}

func (s summary) eta() string {
	if s.ETASeconds == nil {
		return ""
	}
	return output.Duration(time.Duration(*s.ETASeconds) * time.Second)
}

// line returns the summary in a line of words for logs.
func (s summary) line() string {
	words := []string{s.title(), s.State}
	add := func(name, value string) {
		if value != "" {
			words = append(words, name+"="+value)
		}
	}
	add("from", s.From)
	add("step", s.progress())
	add("reward", output.Number(s.Reward))
	add("pass@1", output.Number(s.PassAt1))
	add("nll", output.Number(s.NLL))
	add("test-nll", output.Number(s.HeldOutNLL))
	add("seconds", output.Number(s.StepSeconds))
	add("tok/s", output.Number(s.TokensPerSec))
	add("usd", output.Number(s.EstimatedUSD))
	add("workers", fmt.Sprintf("%d/%d", s.Ready, s.Workers))
	add("restarts", fmt.Sprint(s.Restarts))
	if s.WaitsFor != "" {
		add("waits-for", fmt.Sprintf("%q", s.WaitsFor))
	}
	add("problem", s.cause)
	return strings.Join(words, " ")
}

// overview returns the table of all runs.
func overview(now snapshot) output.Result {
	result := output.Result{Header: []string{"NAME", "STATE", "PROGRESS", "STEP", "REWARD", "PASS@1", "S/STEP", "TOK/S",
		"WORKERS", "RESTARTS", "ETA", "AGE", "PROBLEM"}}
	all := []summary{}
	const width = 12
	for i := range now.runs {
		s := summarize(&now.runs[i], now.at).in(now)
		all = append(all, s)
		perSecond := ""
		if s.TokensPerSec != nil {
			perSecond = output.Count(int64(*s.TokensPerSec))
		}
		result.Rows = append(result.Rows, []string{
			s.Name, s.State, output.Bar(s.share(), width), s.progress(), output.Number(s.Reward), output.Number(s.PassAt1),
			output.Number(s.StepSeconds),
			perSecond, fmt.Sprintf("%d/%d", s.Ready, s.Workers), fmt.Sprint(s.Restarts), s.eta(), output.Duration(s.age),
			s.cause,
		})
	}
	result.Value = all
	return withNamespace(withUSD(withFrom(withNLL(result, all), all), all), all)
}

// withNamespace adds the column of the namespaces if runs of several namespaces are shown.
func withNamespace(result output.Result, all []summary) output.Result {
	if !slices.ContainsFunc(all, func(s summary) bool { return s.Namespace != "" }) {
		return result
	}
	result.Header = slices.Insert(result.Header, 0, "NAMESPACE")
	for i, s := range all {
		result.Rows[i] = slices.Insert(result.Rows[i], 0, s.Namespace)
	}
	return result
}

// withUSD adds a column with the cost of runs, if the prices of at least one run are known.
func withUSD(result output.Result, all []summary) output.Result {
	if !slices.ContainsFunc(all, func(s summary) bool { return s.EstimatedUSD != nil }) {
		return result
	}
	place := slices.Index(result.Header, "ETA")
	result.Header = slices.Insert(result.Header, place, "USD")
	for i, s := range all {
		result.Rows[i] = slices.Insert(result.Rows[i], place, output.Number(s.EstimatedUSD))
	}
	return result
}

// withFrom adds the column of the runs whose weights other runs begin with, if there are any.
func withFrom(result output.Result, all []summary) output.Result {
	if !slices.ContainsFunc(all, func(s summary) bool { return s.From != "" }) {
		return result
	}
	const place = 1 // after NAME
	result.Header = slices.Insert(result.Header, place, "FROM")
	for i, s := range all {
		result.Rows[i] = slices.Insert(result.Rows[i], place, s.From)
	}
	return result
}

// withNLL adds the columns of supervised runs, if there are any.
func withNLL(result output.Result, all []summary) output.Result {
	if !slices.ContainsFunc(all, func(s summary) bool { return s.NLL != nil || s.HeldOutNLL != nil }) {
		return result
	}
	const place = 6 // after PASS@1
	result.Header = slices.Insert(result.Header, place, "NLL", "TEST-NLL")
	for i, s := range all {
		result.Rows[i] = slices.Insert(result.Rows[i], place, output.Number(s.NLL), output.Number(s.HeldOutNLL))
	}
	return result
}

// runScreen returns the screen of one run, in lines of at most width characters unless a value is longer.
func runScreen(now snapshot, width int) string {
	run := &now.runs[0]
	s := summarize(run, now.at)
	var b strings.Builder
	fmt.Fprintf(&b, "%s   %s   %s   age %s\n\n", s.Name, s.State, run.Spec.Model.Name, output.Duration(s.age))
	fmt.Fprintf(&b, "step      %s %s", output.Bar(s.share(), max(10, min(50, width-40))), s.progress())
	if eta := s.eta(); eta != "" {
		fmt.Fprintf(&b, "   ETA %s", eta)
	}
	fmt.Fprintf(&b, "\nworkers   %d of %d ready   restarts %d\n", s.Ready, s.Workers, s.Restarts)
	if s.StepSeconds != nil {
		fmt.Fprintf(&b, "pace      %s s a step", output.Number(s.StepSeconds))
		if s.TokensPerSec != nil {
			fmt.Fprintf(&b, "   %s sampled tokens a second", output.Count(int64(*s.TokensPerSec)))
		}
		b.WriteString("\n")
	}
	if usage := run.Status.Usage; usage != nil {
		fmt.Fprintf(&b, "tokens    %s prompt   %s sampled   %s trained", output.Count(ptr.Deref(usage.PromptTokens, 0)),
			output.Count(ptr.Deref(usage.SampledTokens, 0)), output.Count(ptr.Deref(usage.TrainedTokens, 0)))
		if unconfirmed := ptr.Deref(usage.UnconfirmedTokens, 0); unconfirmed > 0 {
			fmt.Fprintf(&b, "   %s unconfirmed", output.Count(unconfirmed))
		}
		b.WriteString("\n")
	}
	if c := status.Latest(&run.Status); c != nil {
		fmt.Fprintf(&b, "newest    checkpoint of step %d\n", c.Step)
	}
	if s.From != "" {
		fmt.Fprintf(&b, "from      the weights of %s\n", s.From)
	}
	if s.WaitsFor != "" {
		fmt.Fprintf(&b, "waits for\n%s", output.Wrap(s.WaitsFor, "  ", width))
	}
	if s.Learning != "" {
		fmt.Fprintf(&b, "does not learn\n%s", output.Wrap(s.Learning, "  ", width))
	}
	b.WriteString(curves(now.history, width))
	return b.String()
}

// curves returns the curves of reward and pass@1, and of a supervised run's negative log-likelihoods.
func curves(h *history.History, width int) string {
	var b strings.Builder
	metrics := []string{contract.MetricReward, contract.MetricPassAt1, contract.MetricNLL, contract.MetricHeldOutNLL}
	for _, metric := range metrics {
		const margin, height = 14, 7
		if curve := output.Curve(ShortName(metric), points(h, metric), max(10, width-margin), height); curve != "" {
			b.WriteString("\n" + curve)
		}
	}
	return b.String()
}
