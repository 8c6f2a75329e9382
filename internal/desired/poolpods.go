// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// PoolsVersion is the API of agent-sandbox that has warm pools and claims.
var PoolsVersion = schema.GroupVersion{Group: "extensions.agents.x-k8s.io", Version: "v1beta1"}

// ClaimKind is the kind of a claim to a sandbox of a warm pool.
const ClaimKind = "SandboxClaim"

// PoolProgram is a program whose pods come from a warm pool.
type PoolProgram struct {
	ID, Pool string
	Replicas int32
	Network  environment.PodNetwork
}

// fromPool reports whether the pods of a program come from a warm pool.
func (p program) fromPool() bool { return p.pool() != "" }

// pool returns the warm pool of a program; "" if it has none.
func (p program) pool() string { return contract.Definition{Execution: &p.Execution}.WarmPool() }

// PoolPrograms returns the programs whose pods come from warm pools. The list is the output of Pins.Servers.
func PoolPrograms(list string) ([]PoolProgram, error) {
	sidecars, err := decodeServers(list)
	if err != nil {
		return nil, err
	}
	var found []PoolProgram
	for _, name := range slices.Sorted(maps.Keys(sidecars)) {
		programs := sidecars[name].all()
		for _, kind := range slices.Sorted(maps.Keys(programs)) {
			p := programs[kind]
			if !p.fromPool() {
				continue
			}
			pods, err := p.pods()
			if err != nil {
				return nil, err
			}
			found = append(found, PoolProgram{ID: p.ID, Pool: p.pool(), Replicas: pods.Replicas, Network: pods.Network})
		}
	}
	return found, nil
}

// Pools returns the warm pools of the programs of pins, sorted.
func (p Pins) Pools() []string {
	var pools []string
	for _, pin := range p {
		if pool := pin.Definition.WarmPool(); pool != "" {
			pools = append(pools, pool)
		}
	}
	slices.Sort(pools)
	return slices.Compact(pools)
}

// Claims returns the claims of a program, one for each pod. token is the token of the run's workers. A pod gets only
// the digest of the token that derives from it, as an annotation: a claim with environment variables would not get a
// warm pod.
func (p PoolProgram) Claims(run *v1alpha1.TrainingRun, token string) ([]*unstructured.Unstructured, error) {
	secrets, err := contract.DeriveProgramCredentials(token, p.ID)
	if err != nil {
		return nil, err
	}
	name := contract.ProgramName(ServiceName(run), p.ID)
	spec := map[string]any{
		"warmPoolRef": map[string]any{"name": p.Pool},
		"additionalPodMetadata": map[string]any{
			"labels":      map[string]any{v1alpha1.LabelPoolProgram: name},
			"annotations": map[string]any{v1alpha1.AnnotationProgramToken: secrets.TokenSHA256()},
		},
	}
	// A claim cannot be changed once it has a pod, so a claim with another spec has another name.
	digest := templateDigest(spec)
	var claims []*unstructured.Unstructured
	for i := range p.Replicas {
		// A sandbox that is made because no warm one is left has the name of its claim, and a Service of this name.
		meta := ownedByRun(run, fmt.Sprintf("%s-%s-%s-%d", ServiceName(run), p.ID[:8], digest[:4], i), p.labels(run))
		meta.Annotations = map[string]string{v1alpha1.AnnotationTemplate: digest}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&meta)
		if err != nil {
			return nil, fmt.Errorf("making a claim: %w", err)
		}
		claim := &unstructured.Unstructured{Object: map[string]any{"metadata": object,
			"spec": runtime.DeepCopyJSON(spec)}}
		claim.SetGroupVersionKind(PoolsVersion.WithKind(ClaimKind))
		claims = append(claims, claim)
	}
	return claims, nil
}

func (p PoolProgram) labels(run *v1alpha1.TrainingRun) map[string]string {
	return merged(ProgramLabels(run), map[string]string{v1alpha1.LabelProgram: p.ID})
}

// selector selects the pods that the claims of a program have.
func (p PoolProgram) selector(run *v1alpha1.TrainingRun) map[string]string {
	return map[string]string{v1alpha1.LabelPoolProgram: contract.ProgramName(ServiceName(run), p.ID)}
}

// Service leads workers to the pods of a program that are ready, each by its own address.
func (p PoolProgram) Service(run *v1alpha1.TrainingRun) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: ownedByRun(run, contract.ProgramName(ServiceName(run), p.ID), p.labels(run)),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone, Selector: p.selector(run),
			Ports: []corev1.ServicePort{{Name: "runner", Protocol: corev1.ProtocolTCP, Port: contract.ProgramPort,
				TargetPort: intstr.FromInt32(contract.ProgramPort)}},
		},
	}
}

// Policy permits the workers of the run to connect to the pods of a program, as ProgramPolicy does for pods that the
// manager makes. What the policy of the pool's template permits is permitted as well.
func (p PoolProgram) Policy(run *v1alpha1.TrainingRun) *networkingv1.NetworkPolicy {
	meta := ownedByRun(run, contract.ProgramName(ServiceName(run), p.ID), p.labels(run))
	return programPolicy(run, meta, metav1.LabelSelector{MatchLabels: p.selector(run)}, p.Network)
}

// trustPool mounts the certificate of a warm pool, without its key, in the main container of a pod. It does nothing if
// pool is empty.
func trustPool(spec *corev1.PodSpec, pool string) {
	if pool == "" {
		return
	}
	name := "warm-pool-" + templateDigest(pool)[:8]
	if slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
		return
	}
	spec.Volumes = append(spec.Volumes,
		secretVolume(name, contract.WarmPoolSecretName(pool), contract.ProgramCertificateKey))
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: name, MountPath: path.Dir(contract.WarmPoolCertificate(pool)), ReadOnly: true})
}
