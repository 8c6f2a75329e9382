// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package sample reads the files of config/samples and makes run files of them, as the manager does.
package sample

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

// Sample has the objects of a file, with their defaults.
type Sample struct {
	Environments []*v1alpha1.RewardEnvironment
	Runs         []*v1alpha1.TrainingRun
	ConfigMaps   []*corev1.ConfigMap
}

// Read reads a file by its path below config/samples.
func Read(t testing.TB, path string) Sample {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder(t), path))
	if err != nil {
		t.Fatal(err)
	}
	var s Sample
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return s
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		s.add(t, path, document)
	}
}

// folder returns config/samples, which a test finds from its own folder up.
func folder(t testing.TB) string {
	t.Helper()
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return filepath.Join(at, "config/samples")
		}
	}
	t.Fatal("the test does not run within the module")
	return ""
}

// add decodes an object, and ignores objects of other kinds.
func (s *Sample) add(t testing.TB, path string, document []byte) {
	t.Helper()
	var object struct {
		Kind string `json:"kind"`
	}
	err := yaml.Unmarshal(document, &object)
	switch object.Kind {
	case "RewardEnvironment":
		env := new(v1alpha1.RewardEnvironment)
		err = yaml.UnmarshalStrict(document, env)
		admit.Default(env)
		s.Environments = append(s.Environments, env)
	case "TrainingRun":
		run := new(v1alpha1.TrainingRun)
		err = yaml.UnmarshalStrict(document, run)
		admit.Default(run)
		s.Runs = append(s.Runs, run)
	case "ConfigMap":
		object := new(corev1.ConfigMap)
		err = yaml.UnmarshalStrict(document, object)
		s.ConfigMaps = append(s.ConfigMaps, object)
	}
	if err != nil {
		t.Fatalf("%s: decoding %q: %v", path, object.Kind, err)
	}
}

// WriteConfigMaps writes the data of the ConfigMaps below root, as pods have them mounted below contract.DataDir.
func (s Sample) WriteConfigMaps(t testing.TB, root string) {
	t.Helper()
	for _, object := range s.ConfigMaps {
		folder := filepath.Join(root, "configmap", object.Name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for key, value := range object.Data {
			if err := os.WriteFile(filepath.Join(folder, key), []byte(value), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Pins builds the environments and returns the pins that their probes would give.
func (s Sample) Pins(t testing.TB, builder registry.Builder) desired.Pins {
	t.Helper()
	return s.PinsOf(t, builder, func(*contract.Definition) {})
}

// PinsOf does what Pins does after change has altered the definitions, for example to name a server that simulates a
// hosted server.
func (s Sample) PinsOf(t testing.TB, builder registry.Builder, change func(*contract.Definition)) desired.Pins {
	t.Helper()
	pins := desired.Pins{}
	for _, env := range s.Environments {
		pin := desired.Pin{Digest: strings.Repeat("d", 64), Definition: desired.Definition(env.Spec),
			Splits: map[string]int64{}}
		change(&pin.Definition)
		built, err := builder.Build(t.Context(), pin.Definition)
		if err != nil {
			t.Fatalf("building environment %s: %v", env.Name, err)
		}
		splits, err := built.Splits(t.Context())
		if err != nil {
			t.Fatalf("reading the splits of environment %s: %v", env.Name, err)
		}
		for _, split := range splits {
			pin.Splits[split.Name] = split.Tasks
		}
		pins[env.Name] = pin
	}
	return pins
}

// RunFile returns the run file of the sample's only run.
func (s Sample) RunFile(t testing.TB, pins desired.Pins) contract.RunFile {
	t.Helper()
	if len(s.Runs) != 1 {
		t.Fatalf("the sample has %d runs, want 1", len(s.Runs))
	}
	run := s.Runs[0].DeepCopy()
	run.Namespace, run.UID = "default", "1f3a9c2b-0000-4000-8000-000000000001"
	file, err := desired.File(desired.FileInput{Run: run, Attempt: 1, Pins: pins,
		DefaultBaseURL: "https://tinker.example.com"})
	if err != nil {
		t.Fatalf("making the run file of %s: %v", run.Name, err)
	}
	return file
}
