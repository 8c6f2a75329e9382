// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// applyOverrides merges a user's changes into a pod, which inherits labels of its owner. The operator's own labels,
// variables and volumes take precedence over a user's of the same name; everything else that a user gives takes
// precedence.
func applyOverrides(made *corev1.PodTemplateSpec, container *corev1.Container, inherited map[string]string,
	by v1alpha1.PodOverrides) {
	labels := map[string]string{}
	maps.Copy(labels, inherited)
	for key, value := range by.Labels {
		labels[key] = string(value)
	}
	made.Labels = mergedMap(labels, made.Labels)
	if len(by.Annotations) > 0 {
		made.Annotations = maps.Clone(by.Annotations)
	}
	spec := &made.Spec
	spec.ImagePullSecrets = by.ImagePullSecrets
	spec.ServiceAccountName = by.ServiceAccountName
	overrideScheduling(spec, by)
	spec.DNSPolicy = cmp.Or(by.DNSPolicy, spec.DNSPolicy)
	spec.DNSConfig = by.DNSConfig
	spec.TerminationGracePeriodSeconds = cmp.Or(by.TerminationGracePeriodSeconds, spec.TerminationGracePeriodSeconds)
	spec.SecurityContext.RunAsUser = cmp.Or(by.SecurityContext.RunAsUser, spec.SecurityContext.RunAsUser)
	spec.SecurityContext.FSGroup = cmp.Or(by.SecurityContext.FSGroup, spec.SecurityContext.FSGroup)
	for _, volume := range by.Volumes {
		spec.Volumes = append(spec.Volumes, volumeOf(volume))
	}
	if by.Image != "" {
		container.Image = by.Image
	}
	container.ImagePullPolicy = cmp.Or(by.ImagePullPolicy, container.ImagePullPolicy)
	for _, init := range by.InitContainers {
		spec.InitContainers = append(spec.InitContainers, initContainer(init, by.ImagePullPolicy))
	}
	spec.ResourceClaims = by.ResourceClaims
	// The later of two sources of a variable wins.
	container.EnvFrom = slices.Concat(by.EnvFrom, container.EnvFrom)
	container.Resources = withResources(container.Resources, by.Resources)
	container.Env = withEnv(container.Env, by.Env)
	container.VolumeMounts = append(container.VolumeMounts, volumeMounts(by.VolumeMounts)...)
}

// initContainer returns a container that a user adds, with the restricted security profile. Its root file system is
// writable, because many images need that.
func initContainer(given v1alpha1.InitContainer, pull corev1.PullPolicy) corev1.Container {
	return corev1.Container{
		Name: given.Name, Image: given.Image, ImagePullPolicy: pull, RestartPolicy: given.RestartPolicy,
		Command: given.Command, Args: given.Args,
		Env: given.Env, Resources: given.Resources, VolumeMounts: volumeMounts(given.VolumeMounts),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

func volumeMounts(given []v1alpha1.VolumeMount) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for _, mount := range given {
		mounts = append(mounts, corev1.VolumeMount{
			Name: mount.Name, MountPath: mount.MountPath, SubPath: mount.SubPath, ReadOnly: ptr.Deref(mount.ReadOnly, false),
		})
	}
	return mounts
}

// overrideScheduling merges the settings that decide where a pod runs and which scheduler places it.
func overrideScheduling(spec *corev1.PodSpec, by v1alpha1.PodOverrides) {
	spec.NodeSelector = by.NodeSelector
	spec.Tolerations = overrideTolerations(spec.Tolerations, by.Tolerations)
	spec.Affinity = cmp.Or(by.Affinity, spec.Affinity)
	spec.TopologySpreadConstraints = by.TopologySpreadConstraints
	spec.PriorityClassName = by.PriorityClassName
	spec.SchedulerName = cmp.Or(by.SchedulerName, spec.SchedulerName)
	if by.RuntimeClassName != "" {
		spec.RuntimeClassName = &by.RuntimeClassName
	}
}

// overrideTolerations keeps each of our own tolerations unless one with the same key and effect is given.
func overrideTolerations(own, given []corev1.Toleration) []corev1.Toleration {
	kept := slices.DeleteFunc(own, func(t corev1.Toleration) bool {
		return slices.ContainsFunc(given, func(g corev1.Toleration) bool {
			return g.Key == t.Key && (g.Effect == t.Effect || g.Effect == "")
		})
	})
	return append(kept, given...)
}

// withResources replaces each resource that is given. A request above our own limit raises the limit; a request above a
// given limit is lowered to it.
func withResources(own, given corev1.ResourceRequirements) corev1.ResourceRequirements {
	merged := corev1.ResourceRequirements{
		Requests: overrideList(own.Requests, given.Requests),
		Limits:   overrideList(own.Limits, given.Limits),
		Claims: mergedBy(own.Claims, given.Claims,
			func(c corev1.ResourceClaim) string { return c.Name + " " + c.Request }),
	}
	for name, request := range merged.Requests {
		limit, limited := merged.Limits[name]
		if !limited || request.Cmp(limit) <= 0 {
			continue
		}
		if _, asked := given.Limits[name]; asked {
			merged.Requests[name] = limit
			continue
		}
		merged.Limits[name] = request
	}
	return merged
}

func overrideList(own, given corev1.ResourceList) corev1.ResourceList {
	merged := own.DeepCopy()
	for name, quantity := range given {
		if merged == nil {
			merged = corev1.ResourceList{}
		}
		merged[name] = quantity
	}
	return merged
}

// withEnv adds variables to a container's own, which take precedence over variables of the same name.
func withEnv(own, given []corev1.EnvVar) []corev1.EnvVar {
	merged := slices.Clone(own)
	for _, variable := range given {
		if !slices.ContainsFunc(own, func(o corev1.EnvVar) bool { return o.Name == variable.Name }) {
			merged = append(merged, variable)
		}
	}
	return merged
}

func volumeOf(v v1alpha1.Volume) corev1.Volume {
	return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: v.PersistentVolumeClaim,
		ConfigMap:             v.ConfigMap,
		Secret:                v.Secret,
		EmptyDir:              v.EmptyDir,
		CSI:                   v.CSI,
	}}
}
