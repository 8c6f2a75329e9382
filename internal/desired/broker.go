// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// BrokerSettings are the manager's own settings for brokers.
type BrokerSettings struct {
	// Pod has the settings of the pods of brokers, such as imagePullSecrets and tolerations.
	Pod v1alpha1.PodOverrides
	// StorageClass is the storage class of the records' claims; empty for the cluster's default.
	StorageClass string
	// AccessMode is the access mode of the records' claims. With ReadWriteOnce the replicas prefer one node.
	AccessMode corev1.PersistentVolumeAccessMode
	// StorageSize is the size that the records' claims request.
	StorageSize resource.Quantity
}

// brokerReplicas is the number of pods of a broker. One of them serves.
const brokerReplicas = 2

// brokerGraceSeconds is the time that a broker has to drain.
const brokerGraceSeconds = 30

// Folders and files of a broker's pod.
const (
	brokerTLSDir     = "/tls"
	brokerKeyDir     = "/key"
	brokerRecordsDir = "/records"
	brokerCADir      = "/ca"
	brokerCertDir    = "/client-cert"

	apiKeyFile   = "api-key"
	tokenKeyFile = "token-key"
)

// BrokerContainer is the name of the container of a broker's pod.
const BrokerContainer = "broker"

// BrokerKeys are the secrets of a broker's pods other than the API key.
type BrokerKeys struct {
	// Certificate and PrivateKey are contract.DeriveBrokerCertificate's, and TokenKey is contract.DeriveEndpointKey's.
	Certificate, PrivateKey, TokenKey []byte
	// Suffix distinguishes the keys of different manager keys: contract.SecretSuffix.
	Suffix string
}

// BrokerLabels are on the objects of the broker of an endpoint, and on its pods.
func BrokerLabels(name string) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelEndpoint: name,
		v1alpha1.LabelRole: v1alpha1.RoleBroker}
}

// ownedByEndpoint is the metadata of an object of an endpoint, in the operator's namespace.
func ownedByEndpoint(of *v1alpha1.TinkerEndpoint, name string, settings Settings) metav1.ObjectMeta {
	meta := owned(of, "TinkerEndpoint", name, BrokerLabels(of.Name))
	meta.Namespace = settings.Namespace
	return meta
}

// BrokerSecret returns the Secret with the keys of a broker. It is named after the keys, since the manager can create a
// Secret but never read or change it.
func BrokerSecret(of *v1alpha1.TinkerEndpoint, keys BrokerKeys, settings Settings) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: ownedByEndpoint(of, brokerSecretName(of, keys), settings),
		Immutable:  ptr.To(true),
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{corev1.TLSCertKey: keys.Certificate, corev1.TLSPrivateKeyKey: keys.PrivateKey,
			tokenKeyFile: keys.TokenKey},
	}
}

func brokerSecretName(of *v1alpha1.TinkerEndpoint, keys BrokerKeys) string {
	return endpoint.ObjectName(of.Name) + "-keys-" + keys.Suffix
}

// BrokerClaim is the claim of a broker's records. It outlives the endpoint: the records say which run owns which
// checkpoint, and an endpoint that is created again under the name has them.
func BrokerClaim(of *v1alpha1.TinkerEndpoint, settings Settings) *corev1.PersistentVolumeClaim {
	meta := ownedByEndpoint(of, brokerClaimName(of), settings)
	meta.OwnerReferences = nil
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: meta,
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{settings.Broker.AccessMode},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: settings.Broker.StorageSize}},
		},
	}
	if settings.Broker.StorageClass != "" {
		claim.Spec.StorageClassName = ptr.To(settings.Broker.StorageClass)
	}
	return claim
}

func brokerClaimName(of *v1alpha1.TinkerEndpoint) string {
	return endpoint.ObjectName(of.Name) + "-records"
}

// BrokerSettingsMap is the ConfigMap with the settings of a broker, encoded.
func BrokerSettingsMap(of *v1alpha1.TinkerEndpoint, encoded []byte, settings Settings) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: ownedByEndpoint(of, endpoint.SettingsName(of.Name), settings),
		Data: map[string]string{endpoint.SettingsKey: string(encoded)}}
}

// BrokerObjects returns the objects of a broker that the manager keeps up to date: the broker's account, the
// permissions of the account, its Service and its Deployment. Each has the digest of its contents as an annotation.
func BrokerObjects(of *v1alpha1.TinkerEndpoint, keys BrokerKeys, settings Settings, now time.Time) []client.Object {
	name := endpoint.ObjectName(of.Name)
	meta := func() metav1.ObjectMeta { return ownedByEndpoint(of, name, settings) }
	objects := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta(), AutomountServiceAccountToken: ptr.To(false)},
		&rbacv1.Role{ObjectMeta: meta(), Rules: brokerRules(of.Name, now)},
		&rbacv1.RoleBinding{ObjectMeta: meta(),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: settings.Namespace}}},
		&corev1.Service{ObjectMeta: meta(), Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: BrokerLabels(of.Name),
			Ports: []corev1.ServicePort{{Name: "https", Protocol: corev1.ProtocolTCP, Port: BrokerPort,
				TargetPort: intstr.FromInt32(BrokerPort)}},
		}},
		brokerDeployment(of, keys, settings),
	}
	for _, object := range objects {
		object.SetAnnotations(merged(object.GetAnnotations(),
			map[string]string{v1alpha1.AnnotationTemplate: templateDigest(object)}))
	}
	return objects
}

// usageDaysBefore and usageDaysAfter are the numbers of days before and after today whose usage a broker may write. The
// manager moves these days along.
const (
	usageDaysBefore = 2
	usageDaysAfter  = 7
)

// brokerRules let a broker read its settings, and write its report, its usage and its Lease. Create cannot be limited
// to names.
func brokerRules(name string, now time.Time) []rbacv1.PolicyRule {
	written := []string{endpoint.ReportName(name)}
	for day := -usageDaysBefore; day <= usageDaysAfter; day++ {
		written = append(written, endpoint.UsageName(name, now.AddDate(0, 0, day)))
	}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{endpoint.SettingsName(name)},
			Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: written,
			Verbs: []string{"get", "update", "patch"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
			ResourceNames: []string{endpoint.ObjectName(name)}, Verbs: []string{"get", "update", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
	}
}

// brokerDeployment returns the Deployment of the broker. A standby is never ready, so that a roll-out must not wait for
// readiness: it replaces the pods at once, and the new pods take the Lease that the old pods release.
func brokerDeployment(of *v1alpha1.TinkerEndpoint, keys BrokerKeys, settings Settings) *appsv1.Deployment {
	pod := brokerPod(of, keys, settings)
	return &appsv1.Deployment{
		ObjectMeta: ownedByEndpoint(of, endpoint.ObjectName(of.Name), settings),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](brokerReplicas),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromInt32(brokerReplicas)),
					MaxSurge: ptr.To(intstr.FromInt32(1))}},
			RevisionHistoryLimit: ptr.To[int32](1),
			Selector:             &metav1.LabelSelector{MatchLabels: BrokerLabels(of.Name)},
			Template:             pod,
		},
	}
}

func brokerPod(of *v1alpha1.TinkerEndpoint, keys BrokerKeys, settings Settings) corev1.PodTemplateSpec {
	const healthPortName = "health"
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString(healthPortName), Scheme: corev1.URISchemeHTTP}}, TimeoutSeconds: 5}
	}
	live, ready := probe("/healthz"), probe("/readyz")
	live.PeriodSeconds, live.FailureThreshold = 10, 6
	ready.PeriodSeconds, ready.FailureThreshold = 2, 1
	p := pod{
		container: corev1.Container{
			Name:    BrokerContainer,
			Image:   settings.Image,
			Command: []string{"/broker"},
			Args: []string{"--endpoint=" + of.Name, "--namespace=" + settings.Namespace, "--dir=" + brokerRecordsDir,
				"--listen=:" + strconv.Itoa(BrokerPort), "--tls-dir=" + brokerTLSDir, "--key-dir=" + brokerKeyDir},
			Ports: []corev1.ContainerPort{
				{Name: "https", ContainerPort: BrokerPort, Protocol: corev1.ProtocolTCP},
				{Name: healthPortName, ContainerPort: healthPort, Protocol: corev1.ProtocolTCP},
			},
			Resources:      resources("100m"),
			LivenessProbe:  live,
			ReadinessProbe: ready,
		},
		grace:    brokerGraceSeconds,
		affinity: brokerAffinity(of.Name, settings.Broker.AccessMode),
	}
	secret := brokerSecretName(of, keys)
	p.mount(secretVolume("tls", secret, corev1.TLSCertKey, corev1.TLSPrivateKeyKey), brokerTLSDir)
	p.mount(brokerKeyVolume(of, secret), brokerKeyDir)
	p.mount(claimVolume("records", brokerClaimName(of)), brokerRecordsDir)
	if ref := of.Spec.CABundleConfigMapKeyRef; ref != nil {
		volume := configVolume("ca", ref.Name)
		volume.ConfigMap.Items = []corev1.KeyToPath{{Key: ref.Key, Path: "ca.crt"}}
		p.mount(volume, brokerCADir)
		p.container.Args = append(p.container.Args, "--ca-file="+brokerCADir+"/ca.crt")
	}
	if ref := of.Spec.ClientCertificateSecretRef; ref != nil {
		p.mount(secretVolume("client-cert", ref.Name, corev1.TLSCertKey, corev1.TLSPrivateKeyKey), brokerCertDir)
		p.container.Args = append(p.container.Args, "--client-cert-dir="+brokerCertDir)
	}
	settings.PodDefaults = v1alpha1.PodOverrides{}
	made := p.template(BrokerLabels(of.Name), nil, settings.Broker.Pod, settings)
	made.Spec.RestartPolicy = corev1.RestartPolicyAlways
	made.Spec.ServiceAccountName = endpoint.ObjectName(of.Name)
	made.Spec.AutomountServiceAccountToken = ptr.To(true)
	return made
}

// brokerKeyVolume has the API key of the platform's Secret beside the key of the tokens.
func brokerKeyVolume(of *v1alpha1.TinkerEndpoint, secret string) corev1.Volume {
	from := func(name, key, path string) corev1.VolumeProjection {
		return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
			Items:                []corev1.KeyToPath{{Key: key, Path: path}}}}
	}
	key := of.Spec.APIKeySecretKeyRef
	return corev1.Volume{Name: "key", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o440),
		Sources: []corev1.VolumeProjection{from(key.Name, key.Key, apiKeyFile),
			from(secret, tokenKeyFile, tokenKeyFile)},
	}}}
}

// brokerAffinity makes the replicas prefer the same node if only one node can mount their volume, and different nodes
// otherwise.
func brokerAffinity(name string, mode corev1.PersistentVolumeAccessMode) *corev1.Affinity {
	apart := antiAffinity(BrokerLabels(name))
	if mode == corev1.ReadWriteMany {
		return apart
	}
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: apart.
		PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution}}
}
