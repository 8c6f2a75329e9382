// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// dataBytes limits the rows and downloads on a pod's disk. dataLimit is the size of the volume, which leaves room for
// other files.
const (
	dataBytes = 16 << 30
	dataLimit = "17Gi"
	// dataRequest is the part of the node's disk that a pod requests for the volume. Most data sets are far smaller than
	// the limit.
	dataRequest = 256 << 20
)

// datasetOf returns a data set in which each split that is not a part of another split has its source.
func datasetOf(spec environment.Dataset) *contract.Dataset {
	d := &contract.Dataset{Dataset: *spec.DeepCopy()}
	for i := range d.Splits {
		if split := &d.Splits[i]; split.From == "" {
			split.Source = cmp.Or(split.Source, split.Name)
		}
	}
	return d
}

// PinnedDefinition returns the definition of an environment, pinned to what the probe found: the image, the packages
// and the contents of the data set.
func PinnedDefinition(env *v1alpha1.RewardEnvironment) contract.Definition {
	definition := Definition(env.Spec)
	pinImage(&definition, env.Status.Image)
	pinPackages(&definition, env.Status.Packages)
	read := env.Status.Dataset
	if read == nil || definition.Dataset == nil || definition.Dataset.Generated() {
		return definition
	}
	definition.Dataset.Contents = contentsIn(*read)
	return definition
}

// Data lists the mounts of a run's data sets in the pods that read them, sorted, with commas between. It is empty if no
// data set is read.
func (p Pins) Data() string {
	var all []string
	for _, pin := range p {
		all = append(all, dataMounts(pin.Definition)...)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}

// disk is the mount that stands for the disk of the rows.
const disk = "disk"

// dataMounts lists the mounts of a definition; nil if it reads nothing.
func dataMounts(definition contract.Definition) []string {
	if definition.ORS != nil {
		return orsMounts(*definition.ORS)
	}
	mounts := judgeMounts(definition.Reward)
	data := definition.Dataset
	if data == nil || data.Generated() {
		return mounts
	}
	mounts = append(mounts, disk)
	if data.JSONL != nil && contract.FilesMount(*data.JSONL) != "" {
		mounts = append(mounts, contract.FilesMount(*data.JSONL))
	}
	if data.Hub != nil && data.Hub.TokenSecretKeyRef != nil {
		mounts = append(mounts, contract.SecretMount(*data.Hub.TokenSecretKeyRef))
	}
	return mounts
}

// DataOf returns the mounts of a Job's pods for data sets, as in Pins.Data. The Job of a learner, which may have rows
// of its own mounted, has the list of its workers.
func DataOf(job *batchv1.Job) string { return job.Annotations[v1alpha1.AnnotationData] }

// AnnotateData notes the mounts of a run's data sets in a Job.
func AnnotateData(job *batchv1.Job, data string) {
	if data != "" {
		job.Annotations = merged(job.Annotations, map[string]string{v1alpha1.AnnotationData: data})
	}
}

// MountData mounts the ConfigMaps, Secrets and volumes of data sets in the pods of a Job, and a disk for their rows.
// The pods request a part of it, unless a user gives them another request.
func MountData(job *batchv1.Job, data string, by v1alpha1.PodOverrides, settings Settings) {
	AnnotateData(job, data)
	mountData(job, data, by, settings)
}

func mountData(job *batchv1.Job, data string, by v1alpha1.PodOverrides, settings Settings) {
	if data == "" {
		return
	}
	spec := &job.Spec.Template.Spec
	container := &spec.Containers[0]
	container.Args = append(container.Args, "--data-dir="+dataDir, "--data-bytes="+strconv.Itoa(dataBytes))
	for i, mount := range strings.Split(data, ",") {
		volume, at := dataVolumeOf(dataVolume+"-"+strconv.Itoa(i), mount)
		spec.Volumes = append(spec.Volumes, volume)
		if mount == disk {
			requestBytes(container, dataRequest)
		}
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: at,
			ReadOnly: mount != disk})
	}
	container.Resources = withResources(container.Resources, WithPodDefaults(by, settings.PodDefaults).Resources)
}

// dataVolumeOf returns the volume of a mount, and its folder. ConfigMaps and Secrets are optional, so that the program
// can report a missing one: the kubelet would keep the pod waiting.
func dataVolumeOf(name, mount string) (volume corev1.Volume, folder string) {
	folder = path.Join(contract.DataDir, mount)
	switch kind, object := path.Split(mount); kind {
	case "configmap/":
		volume = configVolume(name, object)
		volume.ConfigMap.Optional = ptr.To(true)
	case "secret/":
		volume = secretVolume(name, object)
		volume.Secret.Optional = ptr.To(true)
	case "claim/":
		volume = claimVolume(name, object)
		volume.PersistentVolumeClaim.ReadOnly = true
	default:
		return emptyVolume(name, dataLimit), dataDir
	}
	return volume, folder
}
