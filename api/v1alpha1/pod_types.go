// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// PodTarget selects pods of a run.
// +kubebuilder:validation:Enum=All;Learner;Workers
type PodTarget string

// The values of PodTarget.
const (
	TargetAll     PodTarget = "All"
	TargetLearner PodTarget = "Learner"
	TargetWorkers PodTarget = "Workers"
)

// TargetedPodOverrides are PodOverrides with a target: the pods of a run that they change.
type TargetedPodOverrides struct {
	// target selects the pods: the learner, which trains, the workers, which sample and play the environments, or both.
	// +required
	Target       PodTarget `json:"target"`
	PodOverrides `json:",inline"`
}

// Override returns the overrides of a target, for programs that write a spec. It adds the entry if the list has none;
// an entry that Override returned before is then no longer part of the spec.
func (s *TrainingRunSpec) Override(target PodTarget) *PodOverrides {
	for i := range s.PodOverrides {
		if s.PodOverrides[i].Target == target {
			return &s.PodOverrides[i].PodOverrides
		}
	}
	s.PodOverrides = append(s.PodOverrides, TargetedPodOverrides{Target: target})
	return &s.PodOverrides[len(s.PodOverrides)-1].PodOverrides
}

// PodOverrides change a pod that the operator makes. The operator sets the fields that the restricted security profile
// requires; they cannot be changed here.
// +kubebuilder:validation:XValidation:rule="!has(self.volumeMounts) || self.volumeMounts.all(m, has(self.volumes) && self.volumes.exists(v, v.name == m.name))",message="volumeMounts names a volume that volumes does not have: add it to volumes, or correct the name"
// +kubebuilder:validation:XValidation:rule="!has(self.dnsPolicy) || self.dnsPolicy != 'None' || (has(self.dnsConfig) && has(self.dnsConfig.nameservers) && self.dnsConfig.nameservers.size() > 0)",message="dnsPolicy None needs dnsConfig.nameservers: give at least one, or another policy"
// +kubebuilder:validation:XValidation:rule="!has(self.initContainers) || self.initContainers.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m, has(self.volumes) && self.volumes.exists(v, v.name == m.name)))",message="initContainers mounts a volume that volumes does not have: add it to volumes, or correct the name"
// +kubebuilder:validation:XValidation:rule="has(self.resourceClaims) || ((!has(self.resources) || !has(self.resources.claims)) && (!has(self.initContainers) || self.initContainers.all(c, !has(c.resources) || !has(c.resources.claims))))",message="resources.claims refers to resourceClaims, which the pod does not have: add them, or remove it"
type PodOverrides struct {
	// labels are added to the labels of the pod.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('rl.tinker-operator.dev/') && !k.startsWith('batch.kubernetes.io/') && !(k in ['app.kubernetes.io/managed-by', 'controller-uid', 'job-name']))",message="labels must not have a reserved key: remove it (reserved are app.kubernetes.io/managed-by, controller-uid, job-name, and keys that begin with rl.tinker-operator.dev/ or batch.kubernetes.io/)"
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// annotations are added to the annotations of the pod.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// image replaces the operator's image.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`
	// imagePullPolicy says when the images of the pod are pulled. Defaults to Always for the tag latest, and to
	// IfNotPresent for other tags.
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// imagePullSecrets are Secrets for pulling the images.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// serviceAccountName is the pod's service account, for a cloud's workload identity. The token for the API server is
	// never mounted.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// resources are the resources of the main container; its claims refer to resourceClaims.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// env are environment variables of the main container.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(e, !(e.name in ['TINKER_API_KEY', 'POD_IP', 'POD_NAME']))",message="env has a variable that the operator sets itself: remove TINKER_API_KEY, POD_IP and POD_NAME (the API key comes from tinker.apiKeySecretKeyRef)"
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// envFrom are Secrets and ConfigMaps whose keys become environment variables of the main container. Variables of env
	// and of the operator take precedence.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// volumes are added to the volumes of the pod.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Volumes []Volume `json:"volumes,omitempty"`
	// volumeMounts are the volume mounts of the main container.
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=16
	// +optional
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty"`
	// initContainers run one after the other before the main container, or beside the main container if their
	// restartPolicy is Always. They have the pod's user and no privileges.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +optional
	InitContainers []InitContainer `json:"initContainers,omitempty"`
	// resourceClaims are claims of devices for the pod, to which resources.claims of its containers refer. They need
	// Kubernetes 1.34 or later.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +optional
	ResourceClaims []corev1.PodResourceClaim `json:"resourceClaims,omitempty"`
	// terminationGracePeriodSeconds is the time that a deleted pod has to end by itself. Defaults to 180 for a learner, 60
	// for a worker and 5 for a probe.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// nodeSelector is the node selector of the pod.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations are the tolerations of the pod.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// affinity is the affinity of the pod.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// topologySpreadConstraints spread pods over zones and nodes. A constraint selects pods by labels, for instance
	// rl.tinker-operator.dev/run.
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// schedulerName is the scheduler of the pod. Defaults to the cluster's default scheduler.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`
	// runtimeClassName is the runtime class of the pod, such as gvisor. Defaults to the node's runtime.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
	// dnsPolicy says where names are resolved. Defaults to ClusterFirst. None needs dnsConfig.
	// +kubebuilder:validation:Enum=ClusterFirst;Default;None
	// +optional
	DNSPolicy corev1.DNSPolicy `json:"dnsPolicy,omitempty"`
	// dnsConfig has servers, search domains and options that are added to those of dnsPolicy.
	// +optional
	DNSConfig *corev1.PodDNSConfig `json:"dnsConfig,omitempty"`
	// priorityClassName is the priority class of the pod.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// securityContext is the part of the security context that may be changed.
	// +optional
	SecurityContext PodSecurity `json:"securityContext,omitzero"`
}

// InitContainer is a container that runs before the main container, or beside it.
type InitContainer struct {
	// name is the name of the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['learner', 'rollout', 'probe']) && !self.startsWith('environment-')",message="learner, rollout, probe and names that begin with environment- are the operator's own: rename the container"
	// +required
	Name string `json:"name"`
	// image is the image of the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Image string `json:"image"`
	// restartPolicy Always makes the container a sidecar, which runs until the main container has ended.
	// +kubebuilder:validation:Enum=Always
	// +optional
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy,omitempty"`
	// command replaces the entry point of the image.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	// +optional
	Command []string `json:"command,omitempty"`
	// args are the arguments of the command.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	// +optional
	Args []string `json:"args,omitempty"`
	// env are environment variables of the container.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// resources are the resources of the container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// volumeMounts are the volume mounts of the container.
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=16
	// +optional
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
type LabelValue string

// PodSecurity is the part of a pod's security context that can be changed; the rest is the restricted profile.
type PodSecurity struct {
	// runAsUser is the user id. Defaults to the image's user.
	// +kubebuilder:validation:Minimum=1
	// +optional
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// fsGroup is the group that owns the pod's volumes.
	// +kubebuilder:validation:Minimum=1
	// +optional
	FSGroup *int64 `json:"fsGroup,omitempty"`
}

// Volume is a volume of a kind that the restricted security profile permits.
// +kubebuilder:validation:XValidation:rule="(has(self.persistentVolumeClaim)?1:0)+(has(self.configMap)?1:0)+(has(self.secret)?1:0)+(has(self.emptyDir)?1:0)+(has(self.csi)?1:0)==1",message="give exactly one of persistentVolumeClaim, configMap, secret, emptyDir and csi"
type Volume struct {
	// name is the name of the volume in volumeMounts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('tinker-operator-')",message="names of volumes that begin with tinker-operator- are the operator's own: rename the volume"
	// +required
	Name string `json:"name"`
	// persistentVolumeClaim is a claim of the namespace.
	// +optional
	PersistentVolumeClaim *corev1.PersistentVolumeClaimVolumeSource `json:"persistentVolumeClaim,omitempty"`
	// configMap is a ConfigMap of the namespace.
	// +optional
	ConfigMap *corev1.ConfigMapVolumeSource `json:"configMap,omitempty"`
	// secret is a Secret of the namespace.
	// +optional
	Secret *corev1.SecretVolumeSource `json:"secret,omitempty"`
	// emptyDir is an empty folder that lives as long as the pod.
	// +optional
	EmptyDir *corev1.EmptyDirVolumeSource `json:"emptyDir,omitempty"`
	// csi is an ephemeral volume, for example of the Secrets Store driver.
	// +optional
	CSI *corev1.CSIVolumeSource `json:"csi,omitempty"`
}

// VolumeMount mounts a volume into a container.
type VolumeMount struct {
	// name is the name of the volume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
	// mountPath is the path within the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.contains(':')",message="mountPath must be absolute and have no colon: correct it"
	// +kubebuilder:validation:XValidation:rule="!['/etc/tinker-operator', '/var/spill', '/var/tokenizers', '/var/data', '/artifacts'].exists(p, self == p || self.startsWith(p + '/'))",message="mountPath is a folder that the operator mounts itself (/etc/tinker-operator, /var/spill, /var/tokenizers, /var/data, /artifacts): choose another"
	// +required
	MountPath string `json:"mountPath"`
	// subPath is the path within the volume.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	SubPath string `json:"subPath,omitempty"`
	// readOnly mounts the volume read-only.
	// +optional
	ReadOnly *bool `json:"readOnly,omitempty"`
}
