// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// programGraceSeconds is the time that the pod of a program has to end. Its work is done again elsewhere.
const programGraceSeconds = 5

// HasPods reports whether some program runs in pods of its own, and the name of the first environment with such a
// program.
func (p Pins) HasPods() (name string, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if p[name].Definition.InPods() {
			return name, true
		}
	}
	return "", false
}

// inPods reports whether a program runs in pods of its own.
func (p program) inPods() bool { return p.Placement == environment.PlacementPods }

// pods returns an environment's settings for the pods of a program.
func (p program) pods() (v1alpha1.ExecutionPods, error) {
	pods := v1alpha1.ExecutionPods{Replicas: 1, Network: environment.PodNetworkNone}
	if len(p.Pods) == 0 {
		return pods, nil
	}
	if err := json.Unmarshal(p.Pods, &pods); err != nil {
		return pods, fmt.Errorf("decoding the pods of a program: %w", err)
	}
	return pods, nil
}

// all returns the programs of a sidecar, by the prefixes of their containers' names.
func (s sidecar) all() map[string]*program {
	programs := map[string]*program{"": s.Program, "-agent-": s.Agent, "-sandbox-": s.Sandbox}
	maps.DeleteFunc(programs, func(_ string, p *program) bool { return p == nil })
	return programs
}

// ProgramLabels are on the objects of a run's programs that have pods of their own.
func ProgramLabels(run *v1alpha1.TrainingRun) map[string]string {
	return merged(RunLabels(run), map[string]string{v1alpha1.LabelRole: v1alpha1.RoleProgram})
}

// ProgramPods returns the Deployments of the programs that run in pods of their own, except pods of warm pools. The
// list is the output of Pins.Servers. suffix is contract.SecretSuffix's, by which their Secrets are named.
func ProgramPods(run *v1alpha1.TrainingRun, list, suffix string, settings Settings) ([]*appsv1.Deployment, error) {
	sidecars, err := decodeServers(list)
	if err != nil {
		return nil, err
	}
	var deployments []*appsv1.Deployment
	for _, name := range slices.Sorted(maps.Keys(sidecars)) {
		programs := sidecars[name].all()
		for _, kind := range slices.Sorted(maps.Keys(programs)) {
			if p := programs[kind]; !p.inPods() || p.fromPool() {
				continue
			}
			deployment, err := programPods(run, kind+name, *programs[kind], suffix, settings)
			if err != nil {
				return nil, err
			}
			deployments = append(deployments, deployment)
		}
	}
	return deployments, nil
}

// programPods returns the Deployment of a program. Its pods run like the run's workers: with their security context and
// their image pull secrets, but without their volumes and without a service account.
func programPods(run *v1alpha1.TrainingRun, name string, p program, suffix string,
	settings Settings) (*appsv1.Deployment, error) {
	pods, err := p.pods()
	if err != nil {
		return nil, err
	}
	selector := merged(ProgramLabels(run), map[string]string{v1alpha1.LabelProgram: p.ID,
		v1alpha1.LabelNetwork: strings.ToLower(string(pods.Network))})
	pod := RolloutJob(run, 1, "", settings).Spec.Template
	spec := &pod.Spec
	spec.Volumes, spec.InitContainers, spec.ResourceClaims, spec.ServiceAccountName = nil, nil, nil, ""
	installRunner(spec)
	container, err := programContainer(spec, "0", name, p, settings,
		[]string{"--listen", ":" + strconv.Itoa(contract.ProgramPort)})
	if err != nil {
		return nil, err
	}
	secret := ProgramSecretName(run, p.ID, suffix)
	container.Env = withEnv([]corev1.EnvVar{
		secretEnv(protocol.CertificateVariable, secret, contract.ProgramCertificateKey),
		secretEnv(protocol.KeyVariable, secret, contract.ProgramPrivateKeyKey),
		secretEnv(protocol.TokenVariable, secret, contract.ProgramTokenKey),
	}, container.Env)
	container.Ports = []corev1.ContainerPort{{Name: "runner", ContainerPort: contract.ProgramPort,
		Protocol: corev1.ProtocolTCP}}
	container.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(contract.ProgramPort)}},
		PeriodSeconds: 2, TimeoutSeconds: 5, FailureThreshold: 5,
	}
	spec.Containers = []corev1.Container{container}
	spec.RestartPolicy, spec.TerminationGracePeriodSeconds = corev1.RestartPolicyAlways, ptr.To[int64](programGraceSeconds)
	schedule(spec, pods)
	if pods.Affinity == nil {
		spec.Affinity = antiAffinity(selector)
	}
	pod.Labels = merged(pod.Labels, selector)
	meta := ownedByRun(run, contract.ProgramName(ServiceName(run), p.ID), selector)
	meta.Annotations = map[string]string{v1alpha1.AnnotationTemplate: templateDigest(struct {
		Environment, Secret, Workers string
		Program                      program
	}{name, secret, RolloutTemplateDigest(run), p})}
	return &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(pods.Replicas),
			// A surplus pod might find no GPU.
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromInt32(1)),
					MaxSurge: ptr.To(intstr.FromInt32(0))}},
			RevisionHistoryLimit: ptr.To[int32](0),
			Selector:             &metav1.LabelSelector{MatchLabels: selector},
			Template:             pod,
		},
	}, nil
}

// schedule copies the scheduling that an environment wants for its programs to a pod.
func schedule(spec *corev1.PodSpec, by v1alpha1.ExecutionPods) {
	if by.RuntimeClassName != "" {
		spec.RuntimeClassName = &by.RuntimeClassName
	}
	if by.NodeSelector != nil {
		spec.NodeSelector = by.NodeSelector
	}
	if by.Affinity != nil {
		spec.Affinity = by.Affinity
	}
	spec.Tolerations = overrideTolerations(spec.Tolerations, by.Tolerations)
}

// ProgramSecretName is the name of the Secret of a program's pods.
func ProgramSecretName(run *v1alpha1.TrainingRun, id, suffix string) string {
	return contract.ProgramName(ServiceName(run), id) + "-" + suffix
}

// ProgramSecret has the secrets with which the pods of a program and the workers authenticate to each other. They
// derive from the token of the run's workers and do not include that token.
func ProgramSecret(run *v1alpha1.TrainingRun, id, token, suffix string) (*corev1.Secret, error) {
	secrets, err := contract.DeriveProgramCredentials(token, id)
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: ownedByRun(run, ProgramSecretName(run, id, suffix), ProgramLabels(run)),
		Immutable:  ptr.To(true),
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			contract.ProgramCertificateKey: secrets.Certificate,
			contract.ProgramPrivateKeyKey:  secrets.PrivateKey,
			contract.ProgramTokenKey:       []byte(secrets.TokenSHA256()),
		},
	}, nil
}

// ProgramService leads workers to the pods of a program that are ready, each by its own address. The Deployment owns
// it.
func ProgramService(deployment *appsv1.Deployment) *corev1.Service {
	service := serviceOf(deployment, "runner")
	service.Spec.ClusterIP = corev1.ClusterIPNone
	return service
}

// ProgramPolicy permits the workers of the run, and no other pods, to connect to the pods of a program. With the
// network None, the pods may not connect to anything; with Open, their connections are not restricted.
func ProgramPolicy(run *v1alpha1.TrainingRun, deployment *appsv1.Deployment) *networkingv1.NetworkPolicy {
	network := environment.PodNetworkNone
	if deployment.Labels[v1alpha1.LabelNetwork] == strings.ToLower(string(environment.PodNetworkOpen)) {
		network = environment.PodNetworkOpen
	}
	return programPolicy(run, ownedByRun(run, deployment.Name, deployment.Labels), *deployment.Spec.Selector.DeepCopy(),
		network)
}

// programPolicy is the policy of the pods of a program that a selector selects.
func programPolicy(run *v1alpha1.TrainingRun, meta metav1.ObjectMeta, pods metav1.LabelSelector,
	network environment.PodNetwork) *networkingv1.NetworkPolicy {
	port := intstr.FromInt32(contract.ProgramPort)
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: meta,
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: pods,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: RolloutLabels(run)}}},
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: ptr.To(corev1.ProtocolTCP), Port: &port}},
			}},
		},
	}
	if network != environment.PodNetworkOpen {
		policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	}
	return policy
}
