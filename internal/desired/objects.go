// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// PinsKey is the key of the run file's ConfigMap that the manager alone reads: the environments as the
// run pinned them.
const PinsKey = "pins.json"

// RunFile returns the ConfigMap of one attempt. It is immutable, so that the pods of an attempt never see the file of
// another attempt.
func RunFile(run *v1alpha1.TrainingRun, file contract.RunFile, pins Pins,
	settings Settings) (*corev1.ConfigMap, error) {
	encoded, err := contract.EncodeRunFile(file)
	if err != nil {
		return nil, err
	}
	pinned, err := encodePins(pins, file)
	if err != nil {
		return nil, err
	}
	meta := ownedByRun(run, RunFileName(run, file.Attempt), LearnerLabels(run, file.Attempt))
	meta.Annotations = map[string]string{v1alpha1.AnnotationSettings: learnerSettings(run),
		v1alpha1.AnnotationPods: settings.forPods()}
	return &corev1.ConfigMap{
		ObjectMeta: meta,
		Immutable:  new(true),
		Data:       map[string]string{contract.RunFileName: string(encoded), PinsKey: string(pinned)},
	}, nil
}

// encodePins returns the JSON of pins without the definitions that a run file has.
func encodePins(pins Pins, file contract.RunFile) ([]byte, error) {
	definitions, stored := file.Definitions(), Pins{}
	for name, pin := range pins {
		if _, ok := definitions[pin.Digest]; ok && definitions.Keep(pin.Digest, pin.Definition) {
			pin.Definition = contract.Definition{}
		}
		stored[name] = pin
	}
	encoded, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encoding pinned environments: %w", err)
	}
	return encoded, nil
}

// DecodePins reads the pins of a ConfigMap that RunFile has made, whose run file is decoded.
func DecodePins(config *corev1.ConfigMap, file contract.RunFile) (Pins, error) {
	pins, definitions := Pins{}, file.Definitions()
	if err := json.Unmarshal([]byte(config.Data[PinsKey]), &pins); err != nil {
		return nil, fmt.Errorf("decoding pinned environments: %w", err)
	}
	for name, pin := range pins {
		if pin.Definition != (contract.Definition{}) {
			continue
		}
		definition, ok := definitions[pin.Digest]
		if !ok {
			return nil, fmt.Errorf("decoding pinned environments: the run file lacks the definition %q of %q", pin.Digest,
				name)
		}
		pin.Definition = definition
		pins[name] = pin
	}
	return pins, nil
}

// HistoryMap returns a ConfigMap with a part of the run's history. It lacks the labels by which run files are found, so
// that no manager takes it for a run file.
func HistoryMap(run *v1alpha1.TrainingRun, name string, data map[string]string) *corev1.ConfigMap {
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelRun: run.Name}
	return &corev1.ConfigMap{ObjectMeta: ownedByRun(run, name, labels), Data: data}
}

// CredentialsSecret is the run's tokens and TLS key pair, as contract.DeriveCredentials derives them. Its name is
// CredentialsName's.
func CredentialsSecret(run *v1alpha1.TrainingRun, secrets contract.Credentials, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: ownedByRun(run, name, RunLabels(run)),
		Immutable:  new(true),
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			contract.TokenKey:        []byte(secrets.Token),
			contract.ManagerTokenKey: []byte(secrets.ManagerToken),
			contract.CertificateKey:  secrets.Certificate,
			contract.PrivateKeyKey:   secrets.PrivateKey,
		},
	}
}

// Service leads workers to the learner of one attempt. It has a cluster IP: kube-proxy moves the IP to another learner
// within a second, and refuses connections while there is no learner. The DNS records of a headless Service would stay
// in caches for 5 to 30 seconds. Learners are reachable before they are ready, since a worker that is refused tries
// again sooner than a readiness probe would run.
func Service(run *v1alpha1.TrainingRun, attempt int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: ownedByRun(run, ServiceName(run), RunLabels(run)),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP,
			Selector: merged(LearnerLabels(run, attempt),
				map[string]string{batchv1.JobNameLabel: LearnerJobName(run, attempt)}),
			PublishNotReadyAddresses: true,
			Ports: []corev1.ServicePort{{
				Name:       "exchange",
				Protocol:   corev1.ProtocolTCP,
				Port:       ExchangePort,
				TargetPort: intstr.FromInt32(ExchangePort),
			}},
		},
	}
}
