// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// userID is the user that the image runs as.
const userID = 65532

// silentNodeSeconds is the time for which a pod stays on a node that does not answer.
const silentNodeSeconds = 60

// pod is a pod in the making: one container and its volumes.
type pod struct {
	container corev1.Container
	volumes   []corev1.Volume
	grace     int64
	affinity  *corev1.Affinity
}

func (p *pod) mount(volume corev1.Volume, path string) {
	readOnly := volume.ConfigMap != nil || volume.Secret != nil
	requestStorage(&p.container, volume)
	p.volumes = append(p.volumes, volume)
	p.container.VolumeMounts = append(p.container.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: path,
		ReadOnly: readOnly})
}

// template finishes the pod: the restricted security profile, no API token, never restarted in place, and the user's
// overrides on top.
func (p *pod) template(labels, inherited map[string]string, by v1alpha1.PodOverrides,
	settings Settings) corev1.PodTemplateSpec {
	p.container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	p.container.TerminationMessagePath = corev1.TerminationMessagePathDefault
	p.container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	made := template(labels, corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		TerminationGracePeriodSeconds: ptr.To(p.grace),
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		SecurityContext:               settings.securityContext(),
		Tolerations:                   silentNodeTolerations(),
		Affinity:                      p.affinity,
		Volumes:                       p.volumes,
	})
	applyOverrides(&made, &p.container, inherited, WithPodDefaults(by, settings.PodDefaults))
	limitGoMemory(&p.container)
	made.Spec.Containers = []corev1.Container{p.container}
	return made
}

// securityContext is the security context that the restricted Pod Security profile requires, with the user of the image
// unless the cluster assigns one.
func (s Settings) securityContext() *corev1.PodSecurityContext {
	restricted := &corev1.PodSecurityContext{
		RunAsNonRoot:   ptr.To(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if !s.AssignedUsers {
		restricted.RunAsUser, restricted.RunAsGroup = ptr.To[int64](userID), ptr.To[int64](userID)
		restricted.FSGroup = ptr.To[int64](userID)
	}
	return restricted
}

func silentNodeTolerations() []corev1.Toleration {
	tolerations := make([]corev1.Toleration, 0, 2)
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerations = append(tolerations, corev1.Toleration{
			Key:               taint,
			Operator:          corev1.TolerationOpExists,
			Effect:            corev1.TaintEffectNoExecute,
			TolerationSeconds: ptr.To[int64](silentNodeSeconds),
		})
	}
	return tolerations
}

// antiAffinity returns an affinity that prefers nodes without pods that have any of the label sets.
func antiAffinity(labelSets ...map[string]string) *corev1.Affinity {
	terms := make([]corev1.WeightedPodAffinityTerm, 0, len(labelSets))
	for _, labels := range labelSets {
		terms = append(terms, corev1.WeightedPodAffinityTerm{
			Weight: 50,
			PodAffinityTerm: corev1.PodAffinityTerm{
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
				TopologyKey:   corev1.LabelHostname,
			},
		})
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: terms}}
}

// limitGoMemory sets GOMEMLIMIT to nine tenths of the memory limit, so that the Go runtime collects garbage before the
// kernel kills the container.
func limitGoMemory(container *corev1.Container) {
	limit := container.Resources.Limits.Memory()
	given := slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
	if limit.IsZero() || given {
		return
	}
	value := strconv.FormatInt(limit.Value()/10*9, 10)
	container.Env = append(container.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: value})
}

func configVolume(name, configMap string, keys ...string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap},
		Items:                items(keys),
	}}}
}

// secretVolume returns a volume with files that only their owner and their group can read. fsGroup gives the pod that
// group.
func secretVolume(name, secret string, keys ...string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName:  secret,
		Items:       items(keys),
		DefaultMode: ptr.To[int32](0o440),
	}}}
}

func claimVolume(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

func emptyVolume(name, limit string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse(limit))},
	}}
}

// storageShare is the part of a volume on the node's disk that a container requests: an eighth of the volume's maximum
// size.
const storageShare = 8

// requestStorage adds the share of a volume to a container's request of the node's disk.
func requestStorage(container *corev1.Container, volume corev1.Volume) {
	if volume.EmptyDir != nil && volume.EmptyDir.SizeLimit != nil {
		requestBytes(container, volume.EmptyDir.SizeLimit.Value()/storageShare)
	}
}

// requestBytes adds to a container's request of the node's disk.
func requestBytes(container *corev1.Container, size int64) {
	request := container.Resources.Requests[corev1.ResourceEphemeralStorage]
	request.Add(*resource.NewQuantity(size, resource.BinarySI))
	container.Resources.Requests[corev1.ResourceEphemeralStorage] = request
}

func items(keys []string) []corev1.KeyToPath {
	paths := make([]corev1.KeyToPath, 0, len(keys))
	for _, key := range keys {
		paths = append(paths, corev1.KeyToPath{Key: key, Path: key})
	}
	return paths
}
