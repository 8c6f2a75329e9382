// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/nearest"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// environmentKinds are the names by which kubectl knows RewardEnvironments.
var environmentKinds = []string{"renv", "rewardenvironment", "rewardenvironments"}

// findEnvironment returns the RewardEnvironment that an argument names as KIND/NAME.
func findEnvironment(ctx context.Context, connection *cli.Connection, kind,
	name string) (*v1alpha1.RewardEnvironment, error) {
	if !slices.Contains(environmentKinds, strings.ToLower(kind)) {
		return nil, cli.Misused("%q is no kind that why explains: give the name of a run, or renv/NAME", kind)
	}
	environment := &v1alpha1.RewardEnvironment{}
	err := connection.Get(ctx, client.ObjectKey{Namespace: connection.Namespace, Name: name}, environment)
	if err == nil {
		return environment, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading RewardEnvironment %q: %w", name, err)
	}
	hint := "list them with: kubectl get rewardenvironments -A"
	var list v1alpha1.RewardEnvironmentList
	if err := connection.List(ctx, &list, client.InNamespace(connection.Namespace)); err == nil {
		var names []string
		for _, e := range list.Items {
			names = append(names, e.Name)
		}
		if near := nearest.Name(name, names); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
	}
	return nil, fmt.Errorf("RewardEnvironment %q does not exist in namespace %q: %s", name, connection.Namespace, hint)
}

// explainEnvironment says whether an environment is ready, or why not.
func explainEnvironment(environment *v1alpha1.RewardEnvironment, pods []corev1.Pod, events []eventsv1.Event,
	now time.Time) explanation {
	found := explanation{Environment: environment.Name, State: unobserved, Reason: "NotObserved",
		Message:  "The operator has not looked at the environment yet: check that its manager runs.",
		Evidence: []evidence{}, Learning: []learning{}}
	said := map[string]bool{}
	if c := meta.FindStatusCondition(environment.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		code := status.CodeOf(environment.Status.Codes, c.Type)
		found.State, found.Reason, found.Code, found.Message = "NotReady", c.Reason, string(code), output.Safe(c.Message)
		if c.Status == metav1.ConditionTrue {
			found.State = "Ready"
		}
		found.Repair = problem.AdviceOf(code)
		said[c.Message] = true
		lasts := fmt.Sprintf("%s for %s", c.Status, output.Duration(now.Sub(c.LastTransitionTime.Time)))
		found.Evidence = append(found.Evidence, evidence{From: "condition " + c.Type, Text: output.Safe(lasts)})
	}
	for _, pod := range pods {
		if text := podProblem(pod); text != "" {
			found.Evidence = append(found.Evidence, evidence{From: "pod " + pod.Name, Text: output.Safe(text)})
		}
	}
	about := func(event eventsv1.Event) bool { return event.Regarding.UID == environment.UID || isOf(event, pods) }
	for _, event := range warnings(about, pods, events) {
		if !said[event.Note] {
			said[event.Note] = true
			found.Evidence = append(found.Evidence, evidence{From: "event of " + event.Regarding.Name,
				Text: output.Safe(event.Reason + ": " + event.Note)})
		}
	}
	return found
}
