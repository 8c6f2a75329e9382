// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/change"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// actionPage asks whether to change a run, and describes the effect.
type actionPage struct {
	Run     listedRun
	Action  change.Action
	Command string
	Inputs  []inputField
	// Asks says that values are still to be given. Says describes the effect, and Refused why the API server or the
	// command refuses.
	Asks          bool
	Says, Refused string
	// Makes is the name of the run that the action makes.
	Makes string
}

// inputField is a value that a person gives.
type inputField struct {
	change.Input

	Given string
}

// actionOf returns the action that a request names, and its run.
func (s *Site) actionOf(r *http.Request) (change.Action, *v1alpha1.TrainingRun, error) {
	run, err := s.run(r)
	if err != nil {
		return change.Action{}, nil, err
	}
	for _, action := range change.Actions() {
		if action.Name == r.PathValue("action") {
			return action, run, nil
		}
	}
	return change.Action{}, nil, &notFoundError{fmt.Sprintf("there is no action %q", r.PathValue("action"))}
}

// confirmAction describes the effect of an action. The API server checks the action without changing anything.
func (s *Site) confirmAction(r *http.Request) (view, error) {
	action, run, err := s.actionOf(r)
	if err != nil {
		return view{}, err
	}
	values, given := valuesOf(action, run, r.URL.Query())
	page := actionPage{Run: s.listed(run), Action: action, Asks: len(action.Inputs) > 0 && !given}
	page.fill(run, values)
	if page.Asks {
		_, err = action.Preview(run)
	} else {
		var outcome change.Outcome
		outcome, err = action.Check(r.Context(), s.in(run.Namespace), run.Name, values)
		page.Says, page.Makes = outcome.Says, outcome.Made
	}
	if err != nil {
		page.Refused = output.Safe(err.Error())
	}
	return view{template: "action.html", title: action.Name + " " + run.Name, section: "runs", data: page}, nil
}

// valuesOf returns the values of an action's inputs, and whether a request has all required ones.
func valuesOf(action change.Action, run *v1alpha1.TrainingRun, query url.Values) (values change.Values, given bool) {
	values, given = action.Defaults(run), query.Has("check")
	for name := range values {
		if query.Has(name) {
			values[name] = query.Get(name)
		}
	}
	return values, given
}

// fill adds the inputs with the given values, and the command that does the same.
func (p *actionPage) fill(run *v1alpha1.TrainingRun, values change.Values) {
	var flags []string
	for _, input := range p.Action.Inputs {
		given := values[input.Name]
		p.Inputs = append(p.Inputs, inputField{input, given})
		for line := range strings.Lines(given) {
			if line = strings.TrimSpace(line); line != "" {
				flags = append(flags, "--"+input.Name, quoted(line))
			}
		}
	}
	p.Command = command(run, p.Action.Name, flags...)
}

// plain matches words that a shell takes without quotes.
var plain = regexp.MustCompile(`^[\w./=:@%+,-]+$`)

// quoted returns a word of a command line as a shell takes it.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// doAction does the action that a person has confirmed.
func (s *Site) doAction(r *http.Request) (view, error) {
	action, run, err := s.actionOf(r)
	if err != nil {
		return view{}, err
	}
	if err := r.ParseForm(); err != nil {
		return view{}, cli.Misused("reading the form: %w", err)
	}
	values, _ := valuesOf(action, run, r.PostForm)
	outcome, err := action.Do(r.Context(), s.in(run.Namespace), run.Name, values)
	switch {
	case err != nil && outcome.Made != "":
		return view{}, fmt.Errorf("run %q is not created: %w", outcome.Made, err)
	case err != nil:
		return view{}, fmt.Errorf("run %q is not changed: %w", run.Name, err)
	case outcome.Made != "":
		s.awaitRun(r.Context(), run.Namespace, outcome.Made)
		return view{redirect: address(run.Namespace, outcome.Made)}, nil
	}
	return view{redirect: address(run.Namespace, run.Name)}, nil
}

// awaitRun waits until the watch knows a run that was just made, but at most some seconds.
func (s *Site) awaitRun(ctx context.Context, namespace, name string) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for {
		if _, err := s.runOf(namespace, name); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}
