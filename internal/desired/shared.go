// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// serverGraceSeconds is the time that a shared server has to end.
const serverGraceSeconds = 30

// HasShared reports whether some server runs once for the run, and the name of the first environment whose server does.
func (p Pins) HasShared() (name string, ok bool) {
	servers := p.servers()
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if servers[name].Shared {
			return name, true
		}
	}
	return "", false
}

// ServersSelector selects the Deployments of all runs: their shared servers, and their programs that have pods of their
// own.
const ServersSelector = v1alpha1.LabelManagedBy + "=" + v1alpha1.ManagedByValue + "," + v1alpha1.LabelRole + " in (" +
	v1alpha1.RoleServer + "," + v1alpha1.RoleProgram + ")"

// SharedLabels are on the Deployments of a run's shared servers.
func SharedLabels(run *v1alpha1.TrainingRun) map[string]string {
	return merged(RunLabels(run), map[string]string{v1alpha1.LabelRole: v1alpha1.RoleServer})
}

// SharedServers returns the Deployments of the shared servers of a run. The list is the output of Pins.Servers. Each
// has one replica, since a session is in the memory of one process. Its strategy is Recreate, since a second process
// would not know the sessions of the first.
func SharedServers(run *v1alpha1.TrainingRun, list string, settings Settings) ([]*appsv1.Deployment, error) {
	servers, err := decodeServers(list)
	if err != nil {
		return nil, err
	}
	var deployments []*appsv1.Deployment
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if !servers[name].Shared {
			continue
		}
		deployment, err := sharedServer(run, name, servers[name].Server, settings)
		if err != nil {
			return nil, err
		}
		deployments = append(deployments, deployment)
	}
	return deployments, nil
}

// sharedServer returns the Deployment of a server. Its pod runs like the run's workers: with their security context, on
// their nodes, with their image pull secrets.
func sharedServer(run *v1alpha1.TrainingRun, name string, server contract.Server,
	settings Settings) (*appsv1.Deployment, error) {
	tmp := emptyVolume(serverVolume, serverLimit)
	container, err := serverContainer(name, server, tmp)
	if err != nil {
		return nil, err
	}
	pod := RolloutJob(run, 1, "", settings).Spec.Template
	container.RestartPolicy = nil
	container.SecurityContext = pod.Spec.Containers[0].SecurityContext
	container.ImagePullPolicy = pod.Spec.Containers[0].ImagePullPolicy
	container.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: server.Port, Protocol: corev1.ProtocolTCP}}
	container.ReadinessProbe = &corev1.Probe{ProbeHandler: container.StartupProbe.ProbeHandler, PeriodSeconds: 5,
		TimeoutSeconds: 5}
	pod.Spec.Containers, pod.Spec.InitContainers, pod.Spec.ResourceClaims = []corev1.Container{container}, nil, nil
	pod.Spec.Volumes, pod.Spec.RestartPolicy = []corev1.Volume{tmp}, corev1.RestartPolicyAlways
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](serverGraceSeconds)
	selector := merged(SharedLabels(run), map[string]string{v1alpha1.LabelServerPort: strconv.Itoa(int(server.Port))})
	pod.Labels = merged(pod.Labels, selector)
	meta := ownedByRun(run, contract.SharedServerName(ServiceName(run), server.Port), selector)
	meta.Annotations = map[string]string{v1alpha1.AnnotationTemplate: sharedServerDigest(run, name, server)}
	return &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas:             ptr.To[int32](1),
			Strategy:             appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			RevisionHistoryLimit: ptr.To[int32](0),
			Selector:             &metav1.LabelSelector{MatchLabels: selector},
			Template:             pod,
		},
	}, nil
}

// sharedServerDigest digests the identity of a server: its environment, the environment's settings for it, and the
// settings of the workers' pods that a user can change.
func sharedServerDigest(run *v1alpha1.TrainingRun, name string, server contract.Server) string {
	return templateDigest(struct {
		Environment string
		Server      contract.Server
		Workers     string
	}{name, server, RolloutTemplateDigest(run)})
}

// SharedService leads workers to a shared server. The Deployment owns it.
func SharedService(deployment *appsv1.Deployment) *corev1.Service {
	return serviceOf(deployment, "http")
}

// serviceOf returns the Service of a Deployment with one port.
func serviceOf(deployment *appsv1.Deployment, port string) *corev1.Service {
	number := deployment.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: deployment.Namespace, Name: deployment.Name, Labels: deployment.Labels,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: deployment.Name, UID: deployment.UID,
				Controller: ptr.To(true),
			}},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: deployment.Spec.Selector.MatchLabels,
			Ports: []corev1.ServicePort{{Name: port, Protocol: corev1.ProtocolTCP, Port: number,
				TargetPort: intstr.FromInt32(number)}},
		},
	}
}
