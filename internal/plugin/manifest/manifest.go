// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// The kinds that manifests have.
const (
	KindRun         = "TrainingRun"
	KindEnvironment = "RewardEnvironment"
)

// Manifests are the objects of a file.
type Manifests struct {
	Runs, Environments []*unstructured.Unstructured
	// Others are ConfigMaps and Secrets, which ParseAll reads.
	Others []*unstructured.Unstructured
}

// Parse reads the documents of a file, which are RewardEnvironments and TrainingRuns.
func Parse(data []byte) (Manifests, error) { return parse(data, false) }

// ParseAll is Parse for a file that may also have ConfigMaps and Secrets.
func ParseAll(data []byte) (Manifests, error) { return parse(data, true) }

func parse(data []byte, others bool) (Manifests, error) {
	var all Manifests
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return Manifests{}, fmt.Errorf("document %d: %w", number, err)
		}
		object := map[string]any{}
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			return Manifests{}, fmt.Errorf("document %d: %w", number, err)
		}
		if len(object) == 0 {
			continue
		}
		if err := all.add(object, others); err != nil {
			return Manifests{}, fmt.Errorf("document %d: %w", number, err)
		}
	}
}

// add adds the object of a document.
func (m *Manifests) add(object map[string]any, others bool) error {
	parsed := &unstructured.Unstructured{Object: object}
	switch kind := parsed.GetKind(); {
	case others && parsed.GetAPIVersion() == "v1" && (kind == "ConfigMap" || kind == "Secret"):
		m.Others = append(m.Others, parsed)
	case parsed.GetAPIVersion() != v1alpha1.SchemeGroupVersion.String():
		return fmt.Errorf("apiVersion is %q, want %s: apply other objects with kubectl apply", parsed.GetAPIVersion(),
			v1alpha1.SchemeGroupVersion)
	case kind == KindRun:
		m.Runs = append(m.Runs, parsed)
	case kind == KindEnvironment:
		m.Environments = append(m.Environments, parsed)
	default:
		return fmt.Errorf("kind is %q, want %s or %s", kind, KindRun, KindEnvironment)
	}
	return nil
}
