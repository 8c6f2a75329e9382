// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"net/http"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/change"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// actionPage asks whether a run shall be changed, and says what happens.
type actionPage struct {
	Run     listedRun
	Action  change.Action
	Command string
	// Says is what follows, and Refused why the API server or the command refuses.
	Says, Refused string
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

// confirmAction says what an action does. The API server checks it, and nothing is changed.
func (s *Site) confirmAction(r *http.Request) (view, error) {
	action, run, err := s.actionOf(r)
	if err != nil {
		return view{}, err
	}
	page := actionPage{Run: s.listed(run), Action: action, Command: command(run, action.Name)}
	if page.Says, err = action.Check(r.Context(), s.in(run.Namespace), run.Name); err != nil {
		page.Refused = output.Safe(err.Error())
	}
	return view{template: "action.html", title: action.Name + " " + run.Name, section: "runs", data: page}, nil
}

// doAction does what a person has confirmed.
func (s *Site) doAction(r *http.Request) (view, error) {
	action, run, err := s.actionOf(r)
	if err != nil {
		return view{}, err
	}
	if _, err := action.Do(r.Context(), s.in(run.Namespace), run.Name); err != nil {
		return view{}, fmt.Errorf("run %q is not changed: %w", run.Name, err)
	}
	return view{redirect: address(run.Namespace, run.Name)}, nil
}
