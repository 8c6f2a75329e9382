// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"html/template"
	"net/url"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/checkpoints"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// attempt is an attempt of a run in the timeline.
type attempt struct {
	Number               string
	Began, Lasted, Steps string
	Cause, Reason        string
	Message              string
	Bar                  template.HTML
	Running              bool
	Notes                []string
}

// attemptsOf returns the attempts of a run, the newest first.
func (s *Site) attemptsOf(run *v1alpha1.TrainingRun) []attempt {
	var first, last time.Time
	for _, a := range run.Status.Attempts {
		if a.StartTime != nil && (first.IsZero() || a.StartTime.Time.Before(first)) {
			first = a.StartTime.Time
		}
		if end := s.endOf(a); end.After(last) {
			last = end
		}
	}
	var all []attempt
	for _, a := range run.Status.Attempts {
		shown := attempt{Number: fmt.Sprint(a.Number), Cause: a.Cause, Reason: a.Reason, Message: a.Message,
			Running: a.CompletionTime == nil && a.Cause == ""}
		if a.Count > 1 {
			shown.Number = fmt.Sprintf("%d–%d", a.Number-a.Count+1, a.Number)
		}
		if a.StartTime != nil {
			shown.Began = timeOf(a.StartTime)
			shown.Lasted = output.Duration(s.endOf(a).Sub(a.StartTime.Time))
			shown.Bar = span(first, last, a.StartTime.Time, s.endOf(a))
		}
		if a.FromStep != nil {
			shown.Steps = fmt.Sprint(*a.FromStep)
			if a.ToStep != nil {
				shown.Steps = fmt.Sprintf("%d–%d", *a.FromStep, *a.ToStep)
			}
		}
		shown.Notes = notesOfAttempt(a)
		all = append(all, shown)
	}
	return all
}

// notesOfAttempt lists the unusual facts about an attempt.
func notesOfAttempt(a v1alpha1.Attempt) (notes []string) {
	if a.Count > 1 {
		notes = append(notes, fmt.Sprintf("%d attempts ended for this reason", a.Count))
	}
	if ptr.Deref(a.ColdOptimizer, false) {
		notes = append(notes, "began with a new optimizer")
	}
	if n := ptr.Deref(a.LostVersions, 0); n > 0 {
		notes = append(notes, fmt.Sprintf("%d versions could not be sampled any more", n))
	}
	return notes
}

// endOf returns when an attempt ended, or the current time if the attempt is in progress.
func (s *Site) endOf(a v1alpha1.Attempt) time.Time {
	if a.CompletionTime != nil {
		return a.CompletionTime.Time
	}
	return s.Now()
}

// span draws a span of time within the time from first to last.
func span(first, last, from, to time.Time) template.HTML {
	const width, height, least = 200, 8, 2
	whole := max(1, last.Sub(first).Seconds())
	x := from.Sub(first).Seconds() / whole * (width - least)
	w := max(least, to.Sub(from).Seconds()/whole*width)
	return template.HTML(fmt.Sprintf(`<svg class="bar" width="%d" height="%d" aria-hidden="true">`+
		`<rect class="rest" width="%d" height="%d" rx="2"/>`+
		`<rect class="done" x="%.1f" width="%.1f" height="%d" rx="2"/></svg>`,
		width, height, width, height, x, w, height))
}

// checkpoint is a checkpoint of a run.
type checkpoint struct {
	v1alpha1.Checkpoint

	Best, Newest   bool
	Saved, Expires string
	Ranked         string
	// ForkAddress is the page that begins a run with it. The other fields are commands: they need the key of the
	// endpoint, which the pages do not read.
	ForkAddress, Download, Publish, Delete string
}

func (s *Site) checkpointsOf(run *v1alpha1.TrainingRun) []checkpoint {
	var all []checkpoint
	for _, c := range checkpoints.Known(run) {
		shown := checkpoint{Checkpoint: c, Best: c.Name == run.Status.BestCheckpoint,
			Newest: c.Name == run.Status.LatestCheckpoint, Saved: checkpoints.Saved(c.SaveTime, s.Now()),
			Expires:  checkpoints.Expires(c.ExpirationTime, s.Now()),
			Download: command(run, "checkpoints download", "--step", fmt.Sprint(c.Step)),
			Publish:  command(run, "checkpoints publish", "--step", fmt.Sprint(c.Step)),
			Delete:   command(run, "checkpoints delete", "--step", fmt.Sprint(c.Step)),
			ForkAddress: address(run.Namespace, run.Name, "actions", "fork") + fmt.Sprintf("?step=%d&name=%s-s%d", c.Step,
				url.QueryEscape(run.Name), c.Step)}
		if c.Value != nil {
			shown.Ranked = c.Metric + " " + output.Number(c.Value)
		}
		all = append(all, shown)
	}
	return all
}

// command returns a command line about a run.
func command(run *v1alpha1.TrainingRun, verb string, flags ...string) string {
	line := "kubectl tinker " + verb + " " + run.Name + " --namespace " + run.Namespace
	for _, flag := range flags {
		line += " " + flag
	}
	return line
}
