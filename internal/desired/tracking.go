// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	apitracking "github.com/tinker-operator/tinker-operator/api/v1alpha1/tracking"
	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
)

// trackingKey is the name of the file of a service's key in the folder of the service.
const trackingKey = "key"

// trackingOf returns the services that show the run's curves; nil for none.
func trackingOf(run *v1alpha1.TrainingRun) *tracking.Settings {
	spec := run.Spec.Tracking
	if spec == nil || spec.WandB == nil {
		return nil
	}
	w := spec.WandB
	return &tracking.Settings{WandB: &tracking.WandB{
		BaseURL: w.BaseURL, Project: w.Project, Entity: w.Entity, RunName: cmp.Or(w.RunName, run.Name),
		Tags: slices.Sorted(slices.Values(w.Tags)), KeyFile: trackingDir + "/wandb/" + trackingKey,
	}}
}

// mountTrackingKeys gives the learner the keys of these services as files. A Secret that does not exist does not stop the pod, and
// one that is changed changes the file.
func (p *pod) mountTrackingKeys(spec *apitracking.Tracking) {
	if spec != nil && spec.WandB != nil {
		p.mountKey(wandbVolume, spec.WandB.APIKeySecretRef, trackingDir+"/wandb")
	}
}

func (p *pod) mountKey(volume string, key ref.SecretKey, dir string) {
	p.mount(corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: key.Name, Optional: ptr.To(true), DefaultMode: ptr.To[int32](0o440),
		Items: []corev1.KeyToPath{{Key: key.Key, Path: trackingKey}},
	}}}, dir)
}
