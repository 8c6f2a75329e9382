// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// ReadKey returns the text of a ConfigMap's key, or why there is none, as in "ConfigMap "a" has no key "b"".
type ReadKey func(key ref.ConfigMapKey) (text, missing string, err error)

// FillCode replaces references to ConfigMaps by the code in them, so that no other function has to read ConfigMaps. It
// returns the digests of the code, or the problem of code that cannot be read.
func FillCode(reward *environment.Reward, interaction *environment.Interaction,
	read ReadKey) ([]v1alpha1.CodeStatus, *problem.Problem, error) {
	var digests []v1alpha1.CodeStatus
	for path, source := range environment.Sources(reward, interaction) {
		if source.ConfigMapKeyRef == nil {
			continue
		}
		text, missing, err := read(*source.ConfigMapKeyRef)
		if err != nil {
			return nil, nil, err
		}
		if missing == "" {
			missing = unfit(*source.ConfigMapKeyRef, text)
		}
		if missing != "" {
			field := "spec." + path + ".configMapKeyRef"
			return nil, &problem.Problem{Code: problem.CodeUnavailable, Evidence: field + ": " + missing, Field: field}, nil
		}
		source.Code, source.ConfigMapKeyRef = text, nil
		digests = append(digests, v1alpha1.CodeStatus{Function: path,
			SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))})
	}
	return digests, nil, nil
}

// unfit says why a text cannot be code; "" if it can be.
func unfit(key ref.ConfigMapKey, text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Sprintf("key %q of ConfigMap %q is empty", key.Key, key.Name)
	case len(text) > environment.MaxCode:
		return fmt.Sprintf("key %q of ConfigMap %q has %d bytes, and code has at most %d", key.Key, key.Name, len(text),
			environment.MaxCode)
	case !utf8.ValidString(text):
		return fmt.Sprintf("key %q of ConfigMap %q is not UTF-8", key.Key, key.Name)
	}
	return ""
}

// pinImage pins a definition with modules in an image to the image that the probe had.
func pinImage(definition *contract.Definition, image string) {
	if definition.Execution != nil && definition.HasModule() && strings.Contains(image, "@") {
		definition.Execution.Image = image
	}
}

// ImageOfProbe returns the image of a definition's modules as a pod reports it; "" for a definition without modules.
func ImageOfProbe(definition contract.Definition, reported string) string {
	if !definition.HasModule() {
		return ""
	}
	_, image, ok := strings.Cut(reported, "://") // as some runtimes write it
	if !ok {
		image = reported
	}
	return image
}

// FunctionContainer returns the name of the container of an environment's functions in the pod of its probe.
func FunctionContainer(environment string) string { return serverContainerName(environment) }
