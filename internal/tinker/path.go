// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"fmt"
	"strings"
)

// Kind is the kind of a checkpoint in paths.
type Kind string

// KindState is a training state; KindSampler is weights for sampling alone; KindExternal is weights in the format of
// other programs, which can be neither loaded nor sampled from, so that ParsePath does not accept it.
const (
	KindState    Kind = "weights"
	KindSampler  Kind = "sampler_weights"
	KindExternal Kind = "external_weights"
)

// CheckpointType returns training, sampler or external, which is the kind in listings.
func (k Kind) CheckpointType() string {
	switch k {
	case KindSampler:
		return CheckpointSampler
	case KindExternal:
		return CheckpointExternal
	default:
		return CheckpointTraining
	}
}

const pathScheme = "tinker://"

// Path is tinker://RUN/KIND/NAME.
type Path struct {
	// Run is the id of the training run, which is also the id of the model.
	Run  string
	Kind Kind
	Name string
}

// String returns the path as text.
func (p Path) String() string {
	return pathScheme + p.Run + "/" + string(p.Kind) + "/" + p.Name
}

// CheckpointID returns KIND/NAME, which is the checkpoint's id in listings and REST endpoints.
func (p Path) CheckpointID() string { return string(p.Kind) + "/" + p.Name }

// ParsePath parses the path of a state or of sampler weights, tinker://RUN/KIND/NAME. Run and name consist of visible
// ASCII without / ? # % and \.
func ParsePath(s string) (Path, error) {
	p, err := ParseCheckpoint(s)
	if err == nil && p.Kind == KindExternal {
		return Path{}, fmt.Errorf("path %q is neither of kind %s nor of kind %s", s, KindState, KindSampler)
	}
	return p, err
}

// ParseCheckpoint is ParsePath for checkpoints of all kinds, external weights included.
func ParseCheckpoint(s string) (Path, error) {
	rest, ok := strings.CutPrefix(s, pathScheme)
	if !ok {
		return Path{}, fmt.Errorf("path %q does not start with %s", s, pathScheme)
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 {
		return Path{}, fmt.Errorf("path %q does not have the form %sRUN/KIND/NAME", s, pathScheme)
	}
	p := Path{Run: parts[0], Kind: Kind(parts[1]), Name: parts[2]}
	if p.Kind != KindState && p.Kind != KindSampler && p.Kind != KindExternal {
		return Path{}, fmt.Errorf("path %q is of none of the kinds %s, %s and %s", s, KindState, KindSampler, KindExternal)
	}
	if !isPathPart(p.Run) || !isPathPart(p.Name) {
		return Path{}, fmt.Errorf("path %q has an empty or invalid part", s)
	}
	return p, nil
}

func isPathPart(s string) bool {
	if s == "" || s == "." || s == ".." {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("/?#%\\", r)
	})
}
