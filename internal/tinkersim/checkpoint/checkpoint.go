// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkpoint stores training runs and their checkpoints in a directory, so that they
// outlive the process. It does not interpret the data of a checkpoint.
//
//	tinkersim.json                                    marks the directory as tinkersim's
//	tinkersim.lock                                    is locked while a store has the directory open
//	tinkersim-runs/<run>/run.json                     describes the run
//	tinkersim-runs/<run>/<kind>/<name>.json           describes the checkpoint and names the file with its data
//	tinkersim-runs/<run>/<kind>/<name>.<digest>.bin   holds its data
//
// Directories of an earlier version keep their folder "runs". Open removes nothing but unfinished files that
// have the store's own names.
//
// A checkpoint exists from the moment that its JSON file is renamed into place, which happens
// after its data were written. A save that is interrupted before that leaves a file that Open removes.
// An expired checkpoint does not exist for any caller, and the next call removes its files.
package checkpoint

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Errors that callers distinguish.
var (
	// ErrNotFound says that the run or checkpoint does not exist or has expired.
	ErrNotFound = errors.New("checkpoint not found")
	// ErrExists says that the name exists and the save does not overwrite it.
	ErrExists = errors.New("checkpoint already exists")
	// ErrCorrupt says that the data differ from the saved data.
	ErrCorrupt = errors.New("checkpoint is corrupt")
	// ErrLocked says that another store has the directory open.
	ErrLocked = errors.New("the directory is in use")
	// ErrName says that a name is not valid in a path.
	ErrName = errors.New("checkpoint name must be 1 to 200 characters of a-z, A-Z, 0-9, '.', '_' and '-', and not start " +
		"with a dot")
)

var validName = regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,199}$`)

// Ephemeral is the kind of sampler weights that are never listed and do not outlive the process.
const Ephemeral tinker.Kind = "ephemeral"

// runFile is the file that describes a run.
const runFile = "run.json"

// ephemeralKept is the number of ephemeral checkpoints of one run that are kept; older ones are removed.
const ephemeralKept = 64

// Run is one trained model.
type Run struct {
	ID        string `json:"id"`
	Session   string `json:"session"`
	Project   string `json:"project,omitempty"`
	BaseModel string `json:"baseModel"`
	Rank      int    `json:"rank"`

	TrainUnembed   bool `json:"trainUnembed"`
	TrainMLP       bool `json:"trainMLP"`
	TrainAttention bool `json:"trainAttention"`

	UserMetadata map[string]string `json:"userMetadata,omitempty"`
	Created      time.Time         `json:"created"`
	// LastRequest is not stored on disk.
	LastRequest time.Time `json:"-"`
}

// Checkpoint describes one checkpoint.
type Checkpoint struct {
	tinker.Path `json:"-"`
	// File is the name of the file with the data.
	File string    `json:"file"`
	Time time.Time `json:"time"`
	// Size is the number of bytes of the data.
	Size int64 `json:"size"`
	// Digest is the SHA-256 of the data in hexadecimal.
	Digest string `json:"sha256"`
	Public bool   `json:"public,omitempty"`
	// Expires is zero if the checkpoint never expires.
	Expires time.Time `json:"expires,omitzero"`

	UserMetadata map[string]string `json:"userMetadata,omitempty"`
}

// record is the content of a checkpoint's JSON file, whose folders name the run and the kind.
type record struct {
	Name string `json:"name"`
	Checkpoint
}

// validate checks a name that becomes part of a file name.
func validate(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("naming %q: %w", name, ErrName)
	}
	return nil
}

// folder returns the name of the run's folder: some file systems do not permit colons.
func folder(run string) string { return strings.ReplaceAll(run, ":", "_") }
