// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	apitracking "github.com/tinker-operator/tinker-operator/api/v1alpha1/tracking"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// mountTrackingKeys mounts the keys of the services that track a run in the learner, as files. A missing Secret does
// not stop the pod, and a change of the Secret changes the file.
func (p *pod) mountTrackingKeys(spec *apitracking.Tracking) {
	if spec == nil {
		return
	}
	if spec.WandB != nil {
		p.mountKey(wandbVolume, spec.WandB.APIKeySecretKeyRef, WandBDir)
	}
	if spec.MLflow != nil && spec.MLflow.Key() != nil {
		p.mountKey(mlflowVolume, *spec.MLflow.Key(), MLflowDir)
	}
	if spec.OpenReward != nil {
		p.mountKey(openRewardVolume, spec.OpenReward.APIKeySecretKeyRef, OpenRewardDir)
	}
}

// mountTokenizerToken mounts the token for the tokenizer's repository, as a file, in a pod that downloads the
// tokenizer.
func (p *pod) mountTokenizerToken(tokenizer *v1alpha1.Tokenizer) {
	if tokenizer == nil || tokenizer.TokenSecretKeyRef == nil {
		return
	}
	p.mountKey(tokenVolume, *tokenizer.TokenSecretKeyRef, tokenDir)
	p.container.Env = append(p.container.Env,
		corev1.EnvVar{Name: contract.TokenizerTokenVariable, Value: tokenDir + "/" + KeyFile})
}

// mountKey mounts one key of a Secret as the file KeyFile of a folder. A missing Secret does not stop the pod.
func (p *pod) mountKey(volume string, key ref.SecretKey, dir string) {
	p.mount(corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: key.Name, Optional: ptr.To(true), DefaultMode: ptr.To[int32](0o440),
		Items: []corev1.KeyToPath{{Key: key.Key, Path: KeyFile}},
	}}}, dir)
}
