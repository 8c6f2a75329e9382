// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// taskView is a task of an environment, as the policy of a run saw it.
type taskView struct {
	Run namedAddress
	// Title names the task, and Address is the address of its group.
	Title, Address   string
	Pending, Problem string
	Messages         []messageView
}

// taskOf returns a task of an environment from the newest step of the run that a request names; nil if it names none.
func (s *Site) taskOf(r *http.Request, e *v1alpha1.RewardEnvironment) *taskView {
	name := r.URL.Query().Get("task")
	if name == "" {
		return nil
	}
	task := &taskView{Run: namedAddress{name, address(e.Namespace, name)}}
	run, err := s.runOf(e.Namespace, name)
	if err != nil {
		task.Problem = err.Error()
		return task
	}
	found, whole := s.conversations.get(r.Context(), run, newest, false, glance)
	switch {
	case !whole:
		task.Pending = "The artifacts of the run are read, since " + output.Duration(time.Since(found.began)) + "."
	case found.err != nil:
		task.Problem = found.err.Error()
	default:
		task.show(run, e.Name, found.step)
	}
	return task
}

// show adds the messages before the first reply of the first task of an environment.
func (t *taskView) show(run *v1alpha1.TrainingRun, environment string, step transcript.Step) {
	var names []string
	for _, use := range run.Spec.Environments {
		if desired.RefName(use.EnvironmentUse) == environment {
			names = append(names, use.Name)
		}
	}
	for _, g := range step.Groups {
		if !slices.Contains(names, g.Environment) || len(g.Episodes) == 0 || len(g.Episodes[0].Conversations) == 0 {
			continue
		}
		episode := g.Episodes[0]
		place := url.Values{"step": {strconv.FormatInt(step.Step, 10)}, "slot": {strconv.FormatInt(g.Slot, 10)},
			"episode": {strconv.Itoa(episode.Index)}}
		t.Title, t.Address = splitOf(g), t.Run.Address+"/conversations?"+place.Encode()
		for _, m := range viewOf(episode, t.Run.Address+"/text", place, "").Shown[0].Shown {
			if m.Reply != 0 {
				break
			}
			t.Messages = append(t.Messages, m)
		}
		return
	}
	t.Problem = "The newest step of the run has no conversation of the environment."
}
