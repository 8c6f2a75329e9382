// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// DecodePodDefaults decodes the defaults of podOverrides for all pods of runs and probes.
func DecodePodDefaults(data string) (v1alpha1.PodOverrides, error) {
	var defaults v1alpha1.PodOverrides
	decoder := json.NewDecoder(bytes.NewReader([]byte(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&defaults); err != nil {
		return v1alpha1.PodOverrides{}, fmt.Errorf("decoding the defaults of pods: %w", err)
	}
	if defaults.Image != "" || len(defaults.InitContainers)+len(defaults.ResourceClaims) > 0 {
		return v1alpha1.PodOverrides{}, errors.New("decoding the defaults of pods: image, initContainers and " +
			"resourceClaims have no default: give them in the spec of each run")
	}
	if err := checkVolumes(defaults); err != nil {
		return v1alpha1.PodOverrides{}, fmt.Errorf("decoding the defaults of pods: %w", err)
	}
	return defaults, nil
}

// ownDirs are the folders that the operator mounts itself, as the CEL rule of volumeMounts has them.
var ownDirs = []string{"/etc/tinker-operator", "/var/spill", "/var/tokenizers", "/var/data", "/artifacts"}

// checkVolumes checks the volumes of defaults, which no API server has checked.
func checkVolumes(defaults v1alpha1.PodOverrides) error {
	names := map[string]bool{}
	for i, v := range defaults.Volumes {
		sources := 0
		for _, given := range []bool{v.PersistentVolumeClaim != nil, v.ConfigMap != nil, v.Secret != nil, v.EmptyDir != nil,
			v.CSI != nil} {
			if given {
				sources++
			}
		}
		switch {
		case v.Name == "" || names[v.Name]:
			return fmt.Errorf("volumes[%d] needs a name of its own", i)
		case strings.HasPrefix(v.Name, "tinker-operator-"):
			return fmt.Errorf("volumes[%d] is named %s: names that begin with tinker-operator- are the operator's own", i,
				v.Name)
		case sources != 1:
			return fmt.Errorf("volumes[%d] (%s): give exactly one of persistentVolumeClaim, configMap, secret, emptyDir and csi",
				i, v.Name)
		}
		names[v.Name] = true
	}
	for i, m := range defaults.VolumeMounts {
		isIn := func(dir string) bool { return m.MountPath == dir || strings.HasPrefix(m.MountPath, dir+"/") }
		switch {
		case !names[m.Name]:
			return fmt.Errorf("volumeMounts[%d] mounts %q, which volumes do not have", i, m.Name)
		case !path.IsAbs(m.MountPath) || slices.ContainsFunc(ownDirs, isIn):
			return fmt.Errorf("volumeMounts[%d].mountPath %q: give an absolute path outside of %s", i, m.MountPath,
				strings.Join(ownDirs, ", "))
		}
	}
	return nil
}

// PodOverrides returns the changes of a run's pods of one target: the entry of the target over the entry of All.
func PodOverrides(run *v1alpha1.TrainingRun, target v1alpha1.PodTarget) v1alpha1.PodOverrides {
	var all, own v1alpha1.PodOverrides
	for _, entry := range run.Spec.PodOverrides {
		switch entry.Target {
		case v1alpha1.TargetAll:
			all = entry.PodOverrides
		case target:
			own = entry.PodOverrides
		}
	}
	return WithPodDefaults(own, all)
}

// WithPodDefaults merges given overrides over defaults. Maps are merged and lists are appended. Of two items with the
// same key, and of two values, the given one counts.
func WithPodDefaults(given, defaults v1alpha1.PodOverrides) v1alpha1.PodOverrides {
	given.Labels = mergedMap(defaults.Labels, given.Labels)
	given.Annotations = mergedMap(defaults.Annotations, given.Annotations)
	given.NodeSelector = mergedMap(defaults.NodeSelector, given.NodeSelector)
	given.ImagePullSecrets = mergedBy(defaults.ImagePullSecrets, given.ImagePullSecrets,
		func(r corev1.LocalObjectReference) string { return r.Name })
	given.Image = cmp.Or(given.Image, defaults.Image)
	given.Volumes = mergedBy(defaults.Volumes, given.Volumes, func(v v1alpha1.Volume) string { return v.Name })
	given.VolumeMounts = mergedBy(defaults.VolumeMounts, given.VolumeMounts,
		func(m v1alpha1.VolumeMount) string { return m.MountPath })
	given.InitContainers = mergedBy(defaults.InitContainers, given.InitContainers,
		func(c v1alpha1.InitContainer) string { return c.Name })
	given.ResourceClaims = mergedBy(defaults.ResourceClaims, given.ResourceClaims,
		func(c corev1.PodResourceClaim) string { return c.Name })
	given.Env = mergedBy(defaults.Env, given.Env, func(e corev1.EnvVar) string { return e.Name })
	given.Tolerations = overrideTolerations(slices.Clone(defaults.Tolerations), given.Tolerations)
	given.Resources = withResources(defaults.Resources, given.Resources)
	given.ServiceAccountName = cmp.Or(given.ServiceAccountName, defaults.ServiceAccountName)
	given.PriorityClassName = cmp.Or(given.PriorityClassName, defaults.PriorityClassName)
	given.SchedulerName = cmp.Or(given.SchedulerName, defaults.SchedulerName)
	given.RuntimeClassName = cmp.Or(given.RuntimeClassName, defaults.RuntimeClassName)
	given.ImagePullPolicy = cmp.Or(given.ImagePullPolicy, defaults.ImagePullPolicy)
	given.DNSPolicy = cmp.Or(given.DNSPolicy, defaults.DNSPolicy)
	given.DNSConfig = cmp.Or(given.DNSConfig, defaults.DNSConfig)
	given.EnvFrom = slices.Concat(defaults.EnvFrom, given.EnvFrom)
	given.TopologySpreadConstraints = mergedBy(defaults.TopologySpreadConstraints, given.TopologySpreadConstraints,
		func(c corev1.TopologySpreadConstraint) string {
			return c.TopologyKey + " " + string(c.WhenUnsatisfiable)
		})
	given.TerminationGracePeriodSeconds = cmp.Or(given.TerminationGracePeriodSeconds,
		defaults.TerminationGracePeriodSeconds)
	given.Affinity = cmp.Or(given.Affinity, defaults.Affinity)
	given.SecurityContext.RunAsUser = cmp.Or(given.SecurityContext.RunAsUser, defaults.SecurityContext.RunAsUser)
	given.SecurityContext.FSGroup = cmp.Or(given.SecurityContext.FSGroup, defaults.SecurityContext.FSGroup)
	return given
}

func mergedMap[V any](defaults, given map[string]V) map[string]V {
	if len(defaults) == 0 {
		return given
	}
	all := maps.Clone(defaults)
	maps.Copy(all, given)
	return all
}

// mergedBy returns the defaults whose key is not given, and then the given elements.
func mergedBy[T any](defaults, given []T, key func(T) string) []T {
	kept := slices.DeleteFunc(slices.Clone(defaults), func(d T) bool {
		return slices.ContainsFunc(given, func(g T) bool { return key(g) == key(d) })
	})
	return append(kept, given...)
}
