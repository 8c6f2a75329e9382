// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Definitions are the definitions of environments by the digests of the environments. A message stores each of them
// once, however many of its lists name the environment.
type Definitions map[string]Definition

// Keep stores the definition of an environment under its digest, unless the digest already has a definition. It
// reports whether the stored definition equals the given one.
func (d Definitions) Keep(digest string, definition Definition) bool {
	known, ok := d[digest]
	if !ok {
		d[digest] = definition
	}
	return !ok || reflect.DeepEqual(known, definition)
}

// Definitions returns the definitions of a run file's environments.
func (f RunFile) Definitions() Definitions { return storeFile(f).Definitions }

// take keeps the definitions of a list of environments, and returns the environments without the definitions that d
// has.
func (d Definitions) take(environments []Environment) []Environment {
	taken := slices.Clone(environments)
	for i, e := range taken {
		if d.Keep(e.Digest, e.Definition) {
			taken[i].Definition = Definition{}
		}
	}
	return taken
}

// give sets the definitions of the environments of a list that have none.
func (d Definitions) give(environments []Environment) error {
	for i, e := range environments {
		if e.Definition != (Definition{}) {
			continue
		}
		definition, ok := d[e.Digest]
		if !ok {
			return fmt.Errorf("the environment %q has the digest %q, of which there is no definition", e.Name, e.Digest)
		}
		environments[i].Definition = definition
	}
	return nil
}

// storedFile is a run file as it is stored.
type storedFile struct {
	RunFile
	Definitions Definitions `json:"definitions,omitempty"`
}

func storeFile(f RunFile) storedFile {
	stored := storedFile{RunFile: f, Definitions: Definitions{}}
	stored.Fixed.Environments = stored.Definitions.take(f.Fixed.Environments)
	if f.Evaluation != nil {
		evaluation := *f.Evaluation
		evaluation.Environments = stored.Definitions.take(evaluation.Environments)
		stored.Evaluation = &evaluation
	}
	return stored
}

func (s storedFile) file() (RunFile, error) {
	err := s.Definitions.give(s.Fixed.Environments)
	if err == nil && s.Evaluation != nil {
		err = s.Definitions.give(s.Evaluation.Environments)
	}
	return s.RunFile, err
}

// storedPlay is a Play as it is sent.
type storedPlay struct {
	Play
	Definitions Definitions `json:"definitions,omitempty"`
}

func storePlay(p Play) ([]byte, error) {
	stored := storedPlay{Play: p, Definitions: Definitions{}}
	stored.Environments = stored.Definitions.take(p.Environments)
	stored.Evaluations = nil
	for plan, environments := range p.Evaluations {
		if stored.Evaluations == nil {
			stored.Evaluations = map[string][]Environment{}
		}
		stored.Evaluations[plan] = stored.Definitions.take(environments)
	}
	return json.Marshal(stored)
}

func (s storedPlay) play() (Play, error) {
	err := s.Definitions.give(s.Environments)
	for _, environments := range s.Evaluations {
		if err == nil {
			err = s.Definitions.give(environments)
		}
	}
	return s.Play, err
}
