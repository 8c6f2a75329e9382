// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/plugin/observe"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
)

// usedEnvironment is an environment as a run uses it.
type usedEnvironment struct {
	v1alpha1.EnvironmentStatus

	// Run is the run that uses it, and Faults the share of its newest episodes that ended with a fault.
	Run                     namedAddress
	Address, Faults, Sample string
	// Task is the address that shows a task as the run's policy saw it.
	Task string
	Bad  bool
}

// environmentRow is a row of the list of environments.
type environmentRow struct {
	*v1alpha1.RewardEnvironment

	Address, State, Message, Probed, Kind string
	// Runs counts the runs that use the environment. Faults is the greatest share of faults among these runs, and Fault
	// the newest fault of the run with that share.
	Runs          int
	Faults, Fault string
	Bad           bool
}

// environmentsPage is the list of environments.
type environmentsPage struct {
	Problem string
	Rows    []environmentRow
	Several bool
}

// environmentPage is the page of an environment.
type environmentPage struct {
	environmentRow

	Why        observe.Explanation
	Conditions []condition
	Spec       string
	UsedBy     []usedEnvironment
	Task       *taskView
}

// faulty is the share of faults at which the list shows them in red. It is the threshold of package diagnosis.
const faulty = 0.05

func (s *Site) serveEnvironments(*http.Request) (view, error) {
	all, err := s.environments.All()
	page := environmentsPage{}
	if err != nil {
		page.Problem = "The list of environments is not up to date: " + output.Safe(err.Error())
	}
	var namespaces []string
	for _, e := range all {
		page.Rows = append(page.Rows, s.environmentRow(e, s.usersOf(e)))
		namespaces = appendNew(namespaces, e.Namespace)
	}
	page.Several = len(namespaces) > 1
	return view{template: "environments.html", title: "Environments", section: "environments", data: page}, nil
}

func (s *Site) serveEnvironment(r *http.Request) (view, error) {
	key := client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	e, ok := s.environments.Get(key)
	if !ok {
		if _, err := s.environments.All(); err != nil {
			return view{}, fmt.Errorf("environments cannot be read: %w", err)
		}
		return view{}, &notFoundError{fmt.Sprintf("RewardEnvironment %q does not exist in namespace %q", key.Name,
			key.Namespace)}
	}
	users := s.usersOf(e)
	page := environmentPage{environmentRow: s.environmentRow(e, users), UsedBy: users,
		Why: observe.ExplainEnvironment(r.Context(), s.in(e.Namespace), e, s.Now())}
	for _, c := range e.Status.Conditions {
		page.Conditions = append(page.Conditions, condition{Type: c.Type, Status: string(c.Status), Message: c.Message,
			Reason: c.Reason, Since: s.since(c.LastTransitionTime.Time), Wrong: observe.IsWrong(c)})
	}
	var err error
	if page.Spec, err = specText(e.Spec); err != nil {
		return view{}, err
	}
	page.Task = s.taskOf(r, e)
	return view{template: "environment.html", title: e.Name, section: "environments", data: page,
		pending: page.Task != nil && page.Task.Pending != ""}, nil
}

// environmentRow returns the row of an environment.
func (s *Site) environmentRow(e *v1alpha1.RewardEnvironment, users []usedEnvironment) environmentRow {
	row := environmentRow{RewardEnvironment: e, Address: environmentAddress(e.Namespace, e.Name), State: "New",
		Runs: len(users)}
	if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		row.State, row.Message = "NotReady", c.Message
		if c.Status == metav1.ConditionTrue {
			row.State, row.Message = "Ready", ""
		}
	}
	if e.Status.ProbeTime != nil {
		row.Probed = s.since(e.Status.ProbeTime.Time)
	}
	row.Kind = kindOf(e)
	greatest := 0.0
	for _, u := range users {
		if u.FaultRatio != nil && *u.FaultRatio > greatest {
			greatest, row.Faults, row.Fault, row.Bad = *u.FaultRatio, u.Faults, u.Fault, u.Bad
		}
	}
	return row
}

// kindOf names the source of an environment's tasks.
func kindOf(e *v1alpha1.RewardEnvironment) string {
	switch d := e.Spec.Dataset; {
	case e.Spec.ORS != nil:
		return "a server"
	case d == nil:
		return ""
	case d.Hub != nil:
		return "rows of the hub"
	case d.Arithmetic != nil:
		return "made tasks"
	}
	return "rows"
}

func environmentAddress(namespace, name string) string {
	return "/environments/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

// environmentsOf returns the environments of a run, as it uses them.
func (s *Site) environmentsOf(run *v1alpha1.TrainingRun) []usedEnvironment {
	var all []usedEnvironment
	for _, e := range run.Status.Environments {
		used := usedEnvironment{EnvironmentStatus: e, Run: namedAddress{run.Name, address(run.Namespace, run.Name)},
			Address: environmentAddress(run.Namespace, e.Name)}
		if e.FaultRatio != nil {
			used.Faults = strconv.FormatFloat(100**e.FaultRatio, 'f', 1, 64) + "%"
			used.Bad = *e.FaultRatio >= faulty
		}
		if run.Spec.Artifacts != nil {
			used.Sample = address(run.Namespace, run.Name, "conversations")
			used.Task = used.Address + "?task=" + url.QueryEscape(run.Name) + "#task"
		}
		all = append(all, used)
	}
	return all
}

// usersOf returns the runs that use an environment.
func (s *Site) usersOf(e *v1alpha1.RewardEnvironment) []usedEnvironment {
	runs, _ := s.runs.All()
	var all []usedEnvironment
	for _, run := range runs {
		if run.Namespace != e.Namespace || !slices.Contains(desired.References(run), e.Name) {
			continue
		}
		used := usedEnvironment{Run: namedAddress{run.Name, address(run.Namespace, run.Name)}}
		for _, u := range s.environmentsOf(run) {
			if u.Name == e.Name {
				used = u
			}
		}
		all = append(all, used)
	}
	return all
}
