// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
)

// WandBDir, MLflowDir and OpenRewardDir are the folders in the learner's pod with the keys of the services, and KeyFile
// is the name of the file in each.
const (
	WandBDir  = "/etc/tinker-operator/tracking/wandb"
	MLflowDir = "/etc/tinker-operator/tracking/mlflow"
	KeyFile   = "key"

	OpenRewardDir = "/etc/tinker-operator/tracking/openreward"
)

// trackingServices returns the services that show the run; nil if there are none.
func trackingServices(run *v1alpha1.TrainingRun) *tracking.Settings {
	spec := run.Spec.Tracking
	if spec == nil {
		return nil
	}
	settings := &tracking.Settings{}
	if w := spec.WandB; w != nil {
		settings.WandB = &tracking.WandB{
			BaseURL: w.BaseURL, Project: w.Project, Entity: w.Entity, RunName: cmp.Or(w.RunName, run.Name),
			Tags: slices.Sorted(slices.Values(w.Tags)), KeyFile: WandBDir + "/" + KeyFile,
		}
	}
	if m := spec.MLflow; m != nil {
		settings.MLflow = &tracking.MLflow{
			BaseURL: strings.TrimRight(m.BaseURL, "/"), Experiment: m.Experiment, RunName: cmp.Or(m.RunName, run.Name),
			Tags: m.Tags, Username: m.Username,
		}
		if m.Key() != nil {
			settings.MLflow.KeyFile = MLflowDir + "/" + KeyFile
		}
	}
	if t := spec.TensorBoard; t != nil {
		settings.TensorBoard = &tracking.TensorBoard{RunName: cmp.Or(t.RunName, run.Name)}
	}
	if o := spec.OpenReward; o != nil {
		hosts, _ := contract.HostsOf(cmp.Or(o.BaseURL, contract.HostedURL)) // The API server has checked it.
		settings.OpenReward = &tracking.OpenReward{
			BaseURL: hosts.API, RunName: cmp.Or(o.RunName, run.Name), KeyFile: OpenRewardDir + "/" + KeyFile,
		}
	}
	return settings
}
