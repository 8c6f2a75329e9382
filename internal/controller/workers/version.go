// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/podstate"
	"github.com/tinker-operator/tinker-operator/internal/desired"
)

// RefusedVersion says why workers ended that are of another version than their run; nothing where none did.
func RefusedVersion(ctx context.Context, live client.Reader, run *v1alpha1.TrainingRun, job *batchv1.Job) (podstate.Obstacle, error) {
	if job.Status.Failed == 0 {
		return podstate.Obstacle{}, nil
	}
	var pods corev1.PodList
	err := live.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels(job.Labels),
		client.MatchingFields{"status.phase": string(corev1.PodFailed)})
	if err != nil {
		return podstate.Obstacle{}, fmt.Errorf("listing workers that have failed: %w", err)
	}
	for i := range pods.Items {
		terminated := podstate.Termination(&pods.Items[i], desired.RolloutContainer)
		if metav1.IsControlledBy(&pods.Items[i], job) && terminated != nil && terminated.ExitCode == contract.ExitVersion {
			return podstate.Obstacle{
				Reason: v1alpha1.ReasonVersionRefused, NeedsAction: true, Message: repair(run) + ": " + lastLine(terminated.Message),
			}, nil
		}
	}
	return podstate.Obstacle{}, nil
}

func repair(run *v1alpha1.TrainingRun) string {
	if image := run.Spec.Rollouts.Pod.Image; image != "" {
		return fmt.Sprintf("Workers of image %q are of another version than the run; remove rollouts.pod.image, or name an image of the manager's version", image)
	}
	return "Workers are of another version than the run, and are replaced"
}

// maxLine bounds how much of a log a message quotes.
const maxLine = 256

// lastLine gives the last line of a log.
func lastLine(log string) string {
	log = strings.TrimSpace(strings.ToValidUTF8(log, "?"))
	return contract.Truncate(log[strings.LastIndexByte(log, '\n')+1:], maxLine)
}
