// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// Fill copies the template of a warm pool to the environment whose programs have pods of the pool: image, resources,
// variables and scheduling, as if its spec had them. The probe then runs as the pods do, and the bounds of processes
// derive from the memory of the pods. Fill returns the problem of a pool that cannot be used; nil if it can. With a nil
// Link, no pool can be used.
func (l *Link) Fill(ctx context.Context, live client.Reader,
	env *v1alpha1.RewardEnvironment) (*problem.Problem, error) {
	name := PoolOf(env)
	if name == "" {
		return nil, nil
	}
	spec, unusable, err := l.podsOf(ctx, live, env.Namespace, name)
	if unusable != nil || err != nil {
		return unusable, err
	}
	container := runnerOf(spec, name)
	execution := env.Spec.Execution
	execution.Image, execution.Resources = container.Image, container.Resources
	execution.Env = slices.DeleteFunc(slices.Clone(container.Env), func(v corev1.EnvVar) bool {
		return fromSecret(v.Name, name)(v)
	})
	execution.Pods.RuntimeClassName = ptr.Deref(spec.RuntimeClassName, "")
	execution.Pods.NodeSelector, execution.Pods.Tolerations = spec.NodeSelector, spec.Tolerations
	execution.Pods.Affinity = spec.Affinity
	return nil, nil
}

// PoolOf returns the name of the warm pool of an environment; "" if it has none.
func PoolOf(env *v1alpha1.RewardEnvironment) string {
	if e := env.Spec.Execution; e != nil && e.Pods != nil && e.Pods.WarmPoolRef != nil {
		return e.Pods.WarmPoolRef.Name
	}
	return ""
}

// Check returns the problem of a warm pool that cannot be used; nil if it can. With a nil Link, no pool can be used.
func (l *Link) Check(ctx context.Context, live client.Reader, namespace, name string) (*problem.Problem, error) {
	_, unusable, err := l.podsOf(ctx, live, namespace, name)
	return unusable, err
}

// podsOf returns the spec of the pods of a warm pool from its template, or the problem of a pool that cannot be used.
func (l *Link) podsOf(ctx context.Context, live client.Reader, namespace,
	name string) (corev1.PodSpec, *problem.Problem, error) {
	var none corev1.PodSpec
	evidence := poolKind + " " + strconv.Quote(name)
	if l == nil {
		return none, &problem.Problem{Code: problem.WarmPoolsDisabled, Evidence: evidence}, nil
	}
	if served, err := l.Served(); err != nil {
		return none, nil, err
	} else if !served {
		return none, &problem.Problem{Code: problem.WarmPoolsMissing, Evidence: evidence}, nil
	}
	var named pool
	missing, err := read(ctx, live, poolKind, namespace, name, &named)
	if missing != nil || err != nil {
		return none, missing, err
	}
	var of template
	if missing, err = read(ctx, live, templateKind, namespace, named.Spec.SandboxTemplateRef.Name, &of); missing != nil ||
		err != nil {
		return none, missing, err
	}
	if lacks := unfit(of.Spec.PodTemplate.Spec, name); lacks != "" {
		return none, &problem.Problem{Code: problem.WarmPoolUnfit, Evidence: fmt.Sprintf("SandboxTemplate %q: %s",
			named.Spec.SandboxTemplateRef.Name, lacks)}, nil
	}
	return of.Spec.PodTemplate.Spec, nil, nil
}

// read reads an object, or returns the problem that it does not exist.
func read[T any](ctx context.Context, live client.Reader, kind, namespace, name string, into *T) (*problem.Problem,
	error) {
	found := object(kind)
	err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return &problem.Problem{Code: problem.WarmPoolNotFound, Evidence: kind + " " + strconv.Quote(name)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	return nil, parse(found, into)
}

// unfit returns the reason why pods cannot serve the workers of runs; "" if they can.
func unfit(spec corev1.PodSpec, pool string) string {
	container := runnerOf(spec, pool)
	const annotation = "metadata.annotations['" + v1alpha1.AnnotationProgramToken + "']"
	switch {
	case container == nil:
		return fmt.Sprintf("no container has %s from the Secret %q", protocol.CertificateVariable,
			contract.WarmPoolSecretName(pool))
	case !slices.ContainsFunc(container.Env, fromSecret(protocol.KeyVariable, pool)):
		return fmt.Sprintf("container %q has no %s from the Secret %q", container.Name, protocol.KeyVariable,
			contract.WarmPoolSecretName(pool))
	case !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
		return p.ContainerPort == contract.ProgramPort
	}):
		return fmt.Sprintf("container %q has no port %d", container.Name, contract.ProgramPort)
	case !slices.Contains(slices.Concat(container.Command, container.Args), "--token-file"):
		return fmt.Sprintf("container %q does not run the runner with --token-file", container.Name)
	case !slices.ContainsFunc(spec.Volumes, downward(annotation)):
		return fmt.Sprintf("no volume of downwardAPI has %s", annotation)
	case ptr.Deref(spec.AutomountServiceAccountToken, false):
		return "automountServiceAccountToken is true, and what a policy writes may run there"
	case ptr.Deref(spec.ShareProcessNamespace, false):
		return "shareProcessNamespace is true, so that programs could end the runner"
	}
	return ""
}

// runnerOf returns the container of a pod that has the runner; nil if there is none.
func runnerOf(spec corev1.PodSpec, pool string) *corev1.Container {
	for i := range spec.Containers {
		if slices.ContainsFunc(spec.Containers[i].Env, fromSecret(protocol.CertificateVariable, pool)) {
			return &spec.Containers[i]
		}
	}
	return nil
}

// fromSecret returns a function that reports whether a variable of a container comes from the Secret of a pool.
func fromSecret(variable, pool string) func(corev1.EnvVar) bool {
	return func(v corev1.EnvVar) bool {
		return v.Name == variable && v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil &&
			v.ValueFrom.SecretKeyRef.Name == contract.WarmPoolSecretName(pool)
	}
}

// downward returns a function that reports whether a volume has a field of the pod.
func downward(field string) func(corev1.Volume) bool {
	return func(v corev1.Volume) bool {
		return v.DownwardAPI != nil && slices.ContainsFunc(v.DownwardAPI.Items, func(f corev1.DownwardAPIVolumeFile) bool {
			return f.FieldRef != nil && f.FieldRef.FieldPath == field
		})
	}
}
