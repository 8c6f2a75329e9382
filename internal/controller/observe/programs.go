// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// programFields name the fields by which a user can repair a pod of a program.
var programFields = podstate.Fields{
	Image:  "execution.image of the RewardEnvironment, or podOverrides[target=Workers].imagePullSecrets",
	Secret: func(string) string { return "execution.env of the RewardEnvironment" },
	Claim:  func(string) string { return "execution of the RewardEnvironment" },
	Pod:    "execution.pods of the RewardEnvironment, or podOverrides[target=Workers]",
}

// lacksProgram returns the Deployment of one of the run's programs that should have pods and has no ready pod; nil if
// there is none.
func (o *Observer) lacksProgram(ctx context.Context, run *v1alpha1.TrainingRun) *appsv1.Deployment {
	if !o.Deployments {
		return nil
	}
	var found appsv1.DeploymentList
	if err := o.Client.List(ctx, &found, client.InNamespace(run.Namespace),
		client.MatchingLabels(desired.ProgramLabels(run))); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the programs of a run")
		return nil
	}
	for i := range found.Items {
		d := &found.Items[i]
		if metav1.IsControlledBy(d, run) && d.DeletionTimestamp == nil && ptr.Deref(d.Spec.Replicas, 1) > 0 &&
			d.Status.ReadyReplicas == 0 {
			return d
		}
	}
	return nil
}

// programObstacle returns the problem that keeps the pods of a program from starting; the zero value if unknown.
func (o *Observer) programObstacle(ctx context.Context, d *appsv1.Deployment) problem.Problem {
	var pods corev1.PodList
	if err := o.Live.List(ctx, &pods, client.InNamespace(d.Namespace), client.Limit(20),
		client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the pods of a program")
		return problem.Problem{}
	}
	for i := range pods.Items {
		container := ""
		if of := d.Spec.Template.Spec.Containers; len(of) > 0 {
			container = of[0].Name
		}
		if waits := podstate.Waiting(&pods.Items[i], container, programFields); waits.NeedsAction() {
			return waits
		}
	}
	return problem.Problem{}
}

// observeClaims finds out whether a program lacks the pods of a warm pool.
func (o *Observer) observeClaims(ctx context.Context, run *v1alpha1.TrainingRun, seen *State) {
	if seen.Rollout == nil || status.RunFinished(run) || seen.ProgramsObstacle.Code != "" {
		return
	}
	lacking, err := o.Pools.Lacking(ctx, run, desired.ServersOf(seen.Rollout))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "reading the claims of a run")
		return
	}
	if lacking != nil {
		seen.ProgramsObstacle = *lacking
		if seen.LookAgain == 0 || seen.LookAgain > LookInterval {
			seen.LookAgain = LookInterval
		}
	}
}
