// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// packagesDir is the folder of the packages of execution.requirements in the container of functions, and indexDir the
// folder of their index's authorities in the container that installs them.
const (
	packagesDir = "/opt/tinker-operator-packages"
	indexDir    = "/etc/tinker-operator/index"
	indexCAFile = "ca.crt"

	packagesVolume = "tinker-operator-packages"
	indexVolume    = "tinker-operator-index"
)

// packagesLimit bounds the packages of a container. Packages with kernels for GPUs belong in an image.
const packagesLimit = "4Gi"

// The keys of the Secret of a package index.
const (
	indexUsernameKey = "username"
	indexPasswordKey = "password"
)

// installPackages is the program of the container that installs packages.
//
//go:embed install_packages.py
var installPackages string

// addPackages adds an init container that installs the packages of a program's requirements. In a probe, whose program
// has no pinned packages yet, one init container finds and installs the packages for all containers of an environment.
func addPackages(spec *corev1.PodSpec, n string, container *corev1.Container, p program, settings Settings) {
	if len(p.Requirements) == 0 {
		return
	}
	if len(p.Packages) == 0 {
		n, _, _ = strings.Cut(n, "-")
	}
	volume := emptyVolume(packagesVolume+"-"+n, packagesLimit)
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: volume.Name, MountPath: packagesDir, ReadOnly: true})
	container.Command = append(container.Command, "--python-path", packagesDir)
	if slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name }) {
		return
	}
	spec.Volumes = append(spec.Volumes, volume)
	spec.InitContainers = append(spec.InitContainers, packagesContainer(spec, n, *container, volume, p, settings))
}

// packagesContainer returns the container that installs packages. It has the image of the container that uses the
// packages, and none of the variables of that container.
func packagesContainer(spec *corev1.PodSpec, n string, beside corev1.Container, volume corev1.Volume, p program,
	settings Settings) corev1.Container {
	temporary := emptyVolume(packagesVolume+"-"+n+"-temporary", packagesLimit)
	spec.Volumes = append(spec.Volumes, temporary)
	requirements := make([]string, len(p.Requirements))
	for i, requirement := range p.Requirements {
		requirements[i] = string(requirement)
	}
	installer := corev1.Container{
		Name: v1alpha1.PackagesContainerPrefix + n, Image: beside.Image, ImagePullPolicy: beside.ImagePullPolicy,
		Command: []string{"python3", "-c", installPackages},
		Env: []corev1.EnvVar{
			{Name: "REQUIREMENTS", Value: strings.Join(requirements, "\n")},
			{Name: "LOCK", Value: strings.Join(p.Packages, "\n")},
			{Name: "PACKAGES_DIR", Value: packagesDir},
			{Name: "TERMINATION_LOG", Value: terminationLog},
			{Name: "HOME", Value: temporaryDir},
		},
		// It ends before the main container begins, and needs no more than the container that it installs for.
		Resources: *beside.Resources.DeepCopy(), SecurityContext: beside.SecurityContext,
		TerminationMessagePath:   terminationLog,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{
			{Name: volume.Name, MountPath: packagesDir},
			{Name: temporary.Name, MountPath: temporaryDir},
		},
	}
	requestStorage(&installer, volume)
	addIndex(spec, n, &installer, ptr.Deref(p.Index, environment.PackageIndex{}), settings)
	return installer
}

// addIndex adds the address, credentials and authorities of the package index to a container.
func addIndex(spec *corev1.PodSpec, n string, container *corev1.Container, index environment.PackageIndex,
	settings Settings) {
	if index.URL == "" {
		index.URL = settings.PackageIndex
	}
	if index.URL != "" {
		container.Env = append(container.Env, corev1.EnvVar{Name: "INDEX_URL", Value: index.URL})
	}
	if secret := index.SecretRef; secret != nil {
		container.Env = append(container.Env, secretEnv("INDEX_USERNAME", secret.Name, indexUsernameKey),
			secretEnv("INDEX_PASSWORD", secret.Name, indexPasswordKey))
	}
	if bundle := index.CABundleConfigMapKeyRef; bundle != nil {
		volume := configVolume(indexVolume+"-"+n, bundle.Name)
		volume.ConfigMap.Items = []corev1.KeyToPath{{Key: bundle.Key, Path: indexCAFile}}
		spec.Volumes = append(spec.Volumes, volume)
		container.VolumeMounts = append(container.VolumeMounts,
			corev1.VolumeMount{Name: volume.Name, MountPath: indexDir, ReadOnly: true})
		container.Env = append(container.Env, corev1.EnvVar{Name: "INDEX_CA", Value: indexDir + "/" + indexCAFile})
	}
}

func secretEnv(name, secret, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key,
	}}}
}

// pinPackages pins a definition's requirements to the wheels that the probe found.
func pinPackages(definition *contract.Definition, packages []string) {
	if definition.Execution != nil && len(definition.Execution.Requirements) > 0 {
		definition.Execution.Packages = packages
	}
}

// MaxPackages bounds the wheels that a probe pins.
const MaxPackages = 64

// packageLine is the form of a pinned wheel: its name, its version and its SHA-256 in base64.
var packageLine = regexp.MustCompile(
	`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?==[A-Za-z0-9][A-Za-z0-9.!+_-]* [A-Za-z0-9+/]{43}=$`)

// PackagesOfProbe returns the wheels that the pod of a probe has pinned, by the termination message of its container;
// nil for a definition without requirements. The message is checked, because a program in a user's image has written
// it.
func PackagesOfProbe(definition contract.Definition, message string) ([]string, error) {
	if definition.Execution == nil || len(definition.Execution.Requirements) == 0 {
		return nil, nil
	}
	lines := strings.Split(strings.TrimSpace(message), "\n")
	if len(lines) > MaxPackages {
		return nil, fmt.Errorf("execution.requirements: the probe found %d packages, at most %d can be pinned: put them "+
			"into an image, and name it as execution.image", len(lines), MaxPackages)
	}
	for _, line := range lines {
		if !packageLine.MatchString(line) {
			return nil, fmt.Errorf("execution.requirements: the probe's pod pinned no packages: it says %q",
				contract.Truncate(line, 100))
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(lines))), nil
}

// PackagesContainer is the container of a probe's pod whose termination message has the packages.
const PackagesContainer = v1alpha1.PackagesContainerPrefix + "0"
