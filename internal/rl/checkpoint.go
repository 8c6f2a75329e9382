// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// CheckpointName is the loop state that the name of a saved state, or of its sampler weights, spells out:
//
//	r1f3a9c2b-s000123-c00004567-a002m1-0123456789-abcdef0123
type CheckpointName struct {
	// Run is 8 hex digits of the run's uid, as RunTag gives them.
	Run string
	// Step is the number of steps that were trained: the version of the policy.
	Step int64
	// Cursor is the first slot that no step has taken.
	Cursor int64
	// Attempt is the attempt that saved the state, and Model is the number of the attempt's model. Both count from 1.
	Attempt int32
	Model   int
	// Lineage is the lineage of the version, and Parent the lineage of the version before it. The name has the first 10
	// hex digits of each.
	Lineage, Parent Lineage
}

var checkpointPattern = regexp.MustCompile(
	`^r([0-9a-f]{8})-s([0-9]{6,18})-c([0-9]{8,18})-a([0-9]{3,9})m([0-9]{1,9})-([0-9a-f]{10})-([0-9a-f]{10})$`)

// RunTag returns the 8 hex digits that stand for a run's uid in names: the first digits of the uid if it is a UUID,
// or else of its SHA-256.
func RunTag(uid string) string {
	head, _, _ := strings.Cut(uid, "-")
	if raw, err := hex.DecodeString(head); err == nil && len(raw) == 4 {
		return strings.ToLower(head)
	}
	sum := sha256.Sum256([]byte(uid))
	return hex.EncodeToString(sum[:4])
}

// String spells the name. Numbers are padded for readers; programs compare them as numbers.
func (n CheckpointName) String() string {
	return fmt.Sprintf("r%s-s%06d-c%08d-a%03dm%d-%s-%s", n.Run, n.Step, n.Cursor, n.Attempt, n.Model, n.Lineage.Short(),
		n.Parent.Short())
}

// ParseCheckpointName reads a name. Any name that String does not make is an error: the checkpoints of other programs
// are paths and have no state of the loop.
func ParseCheckpointName(name string) (CheckpointName, error) {
	parts := checkpointPattern.FindStringSubmatch(name)
	if parts == nil {
		return CheckpointName{}, fmt.Errorf("parsing checkpoint name %q: not of the form "+
			"rRUN-sSTEP-cCURSOR-aATTEMPTmMODEL-LINEAGE-PARENT", name)
	}
	var numbers [4]int64
	for i := range numbers {
		n, err := strconv.ParseInt(parts[2+i], 10, 64)
		if err != nil {
			return CheckpointName{}, fmt.Errorf("parsing checkpoint name %q: %w", name, err)
		}
		numbers[i] = n
	}
	parsed := CheckpointName{
		Run: parts[1], Step: numbers[0], Cursor: numbers[1], Attempt: int32(numbers[2]), Model: int(numbers[3]),
		Lineage: lineageFromShort(parts[6]), Parent: lineageFromShort(parts[7]),
	}
	if parsed.String() != name {
		return CheckpointName{}, fmt.Errorf("parsing checkpoint name %q: it is spelled %s", name, parsed)
	}
	return parsed, nil
}

// Version returns the version that was saved.
func (n CheckpointName) Version() Version { return Version{n.Step, n.Lineage} }

// Compare orders names by age: by attempt, then model, then step. The cursor does not count: a late save of a
// dead attempt may have the higher one.
func (n CheckpointName) Compare(other CheckpointName) int {
	return cmp.Or(
		cmp.Compare(n.Attempt, other.Attempt),
		cmp.Compare(n.Model, other.Model),
		cmp.Compare(n.Step, other.Step),
	)
}
