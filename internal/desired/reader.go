// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// ReaderContainer is the name of the container that reads artifacts, or asks the endpoint.
const ReaderContainer = "reader"

// forPods encodes the settings that all pods of an attempt have, for AnnotationPods.
func (s Settings) forPods() string {
	return string(encode(Settings{Image: s.Image, PodDefaults: s.PodDefaults, AssignedUsers: s.AssignedUsers}))
}

// PodSettings returns the settings that the pods of an attempt had, from the annotations of its run file; false if the
// annotations lack them.
func PodSettings(annotations map[string]string) (Settings, bool) {
	var s Settings
	err := json.Unmarshal([]byte(annotations[v1alpha1.AnnotationPods]), &s)
	return s, err == nil && s.Image != ""
}

// ReaderPod returns a pod that reads the artifacts of a run for a person. It has the program of the learner, the
// artifacts volume and the keys of the store, but no API key. It runs on the given node, since some volumes can be
// mounted on only one node at a time; "" means any node.
func ReaderPod(run *v1alpha1.TrainingRun, name, node string, args []string, settings Settings) *corev1.Pod {
	p := pod{container: corev1.Container{
		Name: ReaderContainer, Image: settings.Image, Command: []string{"/learner"}, Args: args, Resources: resources("10m"),
	}, grace: probeGraceSeconds}
	p.keepArtifacts(run.Spec.Artifacts)
	return p.forPerson(run, name, node, settings)
}

// RelayPod returns a pod that listens at an address and passes a person's requests on to the TinkerEndpoint of a run.
// It has the token of the run, from a Secret, and the run file of an attempt with the authority of the broker.
func RelayPod(run *v1alpha1.TrainingRun, name, secret string, attempt int32, address string,
	settings Settings) *corev1.Pod {
	args := []string{"relay", "--listen=" + address, "--run-file=" + runDir + "/" + contract.RunFileName}
	p := pod{container: corev1.Container{
		Name: ReaderContainer, Image: settings.Image, Command: []string{"/learner"}, Args: args, Resources: resources("10m"),
		Env: []corev1.EnvVar{keyEnv(ref.SecretKey{Name: secret, Key: contract.TokenKey})},
	}, grace: probeGraceSeconds}
	p.mount(configVolume(runVolume, RunFileName(run, attempt), contract.RunFileName), runDir)
	p.connect(run, attempt)
	return p.forPerson(run, name, "", settings)
}

// forPerson returns the pod in the form in which a person creates it.
func (p *pod) forPerson(run *v1alpha1.TrainingRun, name, node string, settings Settings) *corev1.Pod {
	given := WithPodDefaults(PodOverrides(run, v1alpha1.TargetLearner), settings.PodDefaults)
	given.Resources, given.InitContainers, given.ResourceClaims = corev1.ResourceRequirements{}, nil, nil
	if node != "" {
		given.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
				}}},
			}}}
	}
	made := p.template(merged(RunLabels(run), map[string]string{v1alpha1.LabelRole: v1alpha1.RoleReader}), nil, given,
		Settings{AssignedUsers: settings.AssignedUsers})
	meta := ownedByRun(run, name, made.Labels)
	// The person who creates the pod may lack the permission that these two fields need. The pod is deleted with the run
	// even without them.
	meta.OwnerReferences[0].Controller, meta.OwnerReferences[0].BlockOwnerDeletion = nil, nil
	meta.Annotations = made.Annotations
	made.Spec.ActiveDeadlineSeconds = new(int64(readerDeadlineSeconds))
	return &corev1.Pod{ObjectMeta: meta, Spec: made.Spec}
}

// readerDeadlineSeconds is the time after which a reader ends, in case its user is disconnected.
const readerDeadlineSeconds = 600
