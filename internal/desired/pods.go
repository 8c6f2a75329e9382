// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// ArtifactsDir is the folder in which the learner mounts the artifacts claim.
const ArtifactsDir = "/artifacts"

// Folders of the pods, and names of their volumes. Volumes of pod overrides must not have the prefix of these names.
const (
	runDir         = "/etc/tinker-operator/run"
	credentialsDir = "/etc/tinker-operator/credentials"
	definitionDir  = "/etc/tinker-operator/definition"
	spillDir       = "/var/spill"
	tokenizerDir   = "/var/tokenizers"
	dataDir        = "/var/data"
	tokenDir       = "/etc/tinker-operator/tokenizer"

	runVolume         = "tinker-operator-run"
	credentialsVolume = "tinker-operator-link"
	definitionVolume  = "tinker-operator-definition"
	spillVolume       = "tinker-operator-spill"
	tokenizerVolume   = "tinker-operator-tokenizers"
	artifactsVolume   = "tinker-operator-artifacts"
	dataVolume        = "tinker-operator-data"
	serverVolume      = "tinker-operator-server"
	wandbVolume       = "tinker-operator-wandb"
	mlflowVolume      = "tinker-operator-mlflow"
	openRewardVolume  = "tinker-operator-openreward"
	tokenVolume       = "tinker-operator-tokenizer-token"

	healthPort = 8081

	definitionFile = contract.DefinitionName
	terminationLog = corev1.TerminationMessagePathDefault
)

// These are the limits of volumes: spillLimit for finished groups (the worker itself stores at most 1 GiB of them),
// tokenizerLimit for tokenizers, and artifactsLimit for the learner's copy of artifacts at a URL.
const (
	spillLimit     = "1280Mi"
	tokenizerLimit = "512Mi"
	artifactsLimit = "2Gi"
)

// LearnerContainer, RolloutContainer and ProbeContainer are the names of the main containers.
const (
	LearnerContainer = "learner"
	RolloutContainer = "rollout"
	ProbeContainer   = "probe"
)

// defaultMemoryLimit is the memory limit of pods without a limit in their overrides. GOMEMLIMIT follows from the limit.
const defaultMemoryLimit = "1Gi"

func learnerTemplate(run *v1alpha1.TrainingRun, attempt int32, linkName string,
	settings Settings) corev1.PodTemplateSpec {
	p := pod{
		container: corev1.Container{
			Name:    LearnerContainer,
			Image:   settings.Image,
			Command: []string{"/learner"},
			Args: []string{
				"--run-file=" + runDir + "/" + contract.RunFileName,
				"--credentials-dir=" + credentialsDir,
				"--exchange-listen=:" + strconv.Itoa(ExchangePort),
				"--heartbeat-listen=:" + strconv.Itoa(HeartbeatPort),
				"--termination-log=" + terminationLog,
			},
			Env: append(runEnv(run, linkName), fieldEnv("POD_IP", "status.podIP")),
			Ports: []corev1.ContainerPort{
				{Name: "exchange", ContainerPort: ExchangePort, Protocol: corev1.ProtocolTCP},
				{Name: "heartbeat", ContainerPort: HeartbeatPort, Protocol: corev1.ProtocolTCP},
			},
			Resources: resources("100m"),
			// The probe fails if heartbeats hang for two minutes. The learner holds no lock that a heartbeat needs during a
			// call of the endpoint, so that a slow endpoint does not fail the probe.
			LivenessProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Path: "/healthz", Port: intstr.FromInt32(HeartbeatPort), Scheme: corev1.URISchemeHTTPS,
				}},
				InitialDelaySeconds:           60,
				PeriodSeconds:                 10,
				TimeoutSeconds:                10,
				FailureThreshold:              12,
				TerminationGracePeriodSeconds: ptr.To[int64](30),
			},
		},
		grace:    learnerGraceSeconds,
		affinity: antiAffinity(RolloutLabels(run)),
	}
	p.mount(configVolume(runVolume, RunFileName(run, attempt), contract.RunFileName), runDir)
	p.mount(secretVolume(credentialsVolume, linkName, contract.TokenKey, contract.ManagerTokenKey, contract.CertificateKey,
		contract.PrivateKeyKey), credentialsDir)
	p.connect(run, attempt)
	if named := run.Spec.Tinker.EndpointRef; named != nil {
		p.container.Env = append(p.container.Env, corev1.EnvVar{Name: contract.EndpointVariable, Value: named.Name})
	}
	p.mountTokenizerToken(run.Spec.Model.Tokenizer)
	p.keepArtifacts(run.Spec.Artifacts)
	p.mountTrackingKeys(run.Spec.Tracking)
	return p.template(LearnerLabels(run, attempt), userLabels(run), PodOverrides(run, v1alpha1.TargetLearner), settings)
}

func rolloutTemplate(run *v1alpha1.TrainingRun, attempt int32, linkName string,
	settings Settings) corev1.PodTemplateSpec {
	labels := RolloutLabels(run)
	p := pod{
		container: corev1.Container{
			Name:    RolloutContainer,
			Image:   settings.Image,
			Command: []string{"/rollout"},
			Args: []string{
				"--run-file=" + runDir + "/" + contract.RunFileName,
				"--credentials-dir=" + credentialsDir,
				"--spill-dir=" + spillDir,
				"--tokenizer-dir=" + tokenizerDir,
				"--health-listen=:" + strconv.Itoa(healthPort),
			},
			Env:       append(runEnv(run, linkName), fieldEnv("POD_IP", "status.podIP")),
			Ports:     []corev1.ContainerPort{{Name: "health", ContainerPort: healthPort, Protocol: corev1.ProtocolTCP}},
			Resources: resources("50m"),
			// A worker becomes ready when a learner has answered it for the first time.
			ReadinessProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Path: "/readyz", Port: intstr.FromInt32(healthPort), Scheme: corev1.URISchemeHTTP,
				}},
				PeriodSeconds:  5,
				TimeoutSeconds: 5,
			},
		},
		grace: rolloutGraceSeconds,
		// Workers prefer nodes without a learner of any attempt and without other workers, so that the loss of a node costs
		// little.
		affinity: antiAffinity(merged(RunLabels(run), map[string]string{v1alpha1.LabelRole: v1alpha1.RoleLearner}), labels),
	}
	p.mount(configVolume(runVolume, RunFileName(run, attempt), contract.RunFileName), runDir)
	p.mount(secretVolume(credentialsVolume, linkName, contract.TokenKey, contract.CertificateKey), credentialsDir)
	p.connect(run, attempt)
	p.mount(emptyVolume(spillVolume, spillLimit), spillDir)
	p.mount(emptyVolume(tokenizerVolume, tokenizerLimit), tokenizerDir)
	p.mountTokenizerToken(run.Spec.Model.Tokenizer)
	return p.template(labels, userLabels(run), PodOverrides(run, v1alpha1.TargetWorkers), settings)
}

func probeTemplate(env *v1alpha1.RewardEnvironment, name string, labels map[string]string,
	settings Settings) corev1.PodTemplateSpec {
	p := pod{
		container: corev1.Container{
			Name:    ProbeContainer,
			Image:   settings.Image,
			Command: []string{"/rollout"},
			Args: []string{
				"probe",
				"--definition=" + definitionDir + "/" + definitionFile,
				"--termination-log=" + terminationLog,
			},
			Resources: resources("50m"),
		},
		grace: probeGraceSeconds,
	}
	p.mount(configVolume(definitionVolume, name, definitionFile), definitionDir)
	return p.template(labels, nil, env.Spec.Pod, settings)
}

func runEnv(run *v1alpha1.TrainingRun, credentials string) []corev1.EnvVar {
	return []corev1.EnvVar{keyEnv(keyOf(run, credentials)), fieldEnv("POD_NAME", "metadata.name")}
}

// keyEnv returns the variable with the API key, or with the token of the run at a TinkerEndpoint.
func keyEnv(from ref.SecretKey) corev1.EnvVar {
	return corev1.EnvVar{Name: "TINKER_API_KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: from.Name},
		Key:                  from.Key,
	}}}
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

// resources returns the resources of a container. Besides its volumes it uses the node's disk only for its log, and a
// kubelet keeps 50 MiB of a log.
func resources(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse(cpu),
			corev1.ResourceMemory:           resource.MustParse("64Mi"),
			corev1.ResourceEphemeralStorage: resource.MustParse("64Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(defaultMemoryLimit)},
	}
}
