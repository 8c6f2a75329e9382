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
}

// Parse reads the documents of a file, which are RewardEnvironments and TrainingRuns.
func Parse(data []byte) (Manifests, error) {
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
		parsed := &unstructured.Unstructured{Object: object}
		switch {
		case parsed.GetAPIVersion() != v1alpha1.SchemeGroupVersion.String():
			return Manifests{}, fmt.Errorf("document %d: apiVersion is %q, want %s: apply other objects with kubectl apply", number, parsed.GetAPIVersion(),
				v1alpha1.SchemeGroupVersion)
		case parsed.GetKind() == KindRun:
			all.Runs = append(all.Runs, parsed)
		case parsed.GetKind() == KindEnvironment:
			all.Environments = append(all.Environments, parsed)
		default:
			return Manifests{}, fmt.Errorf("document %d: kind is %q, want %s or %s", number, parsed.GetKind(), KindRun, KindEnvironment)
		}
	}
}
