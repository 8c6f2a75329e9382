// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rl

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
)

// Lineage identifies a policy by how it was made: two attempts that trained on the same batches with
// the same settings have the same lineage, whatever was lost in between. No policy has the zero Lineage.
//
// A lineage is a function of its first digits, which are part of a checkpoint's name: a resume may know nothing but
// the name, and has to continue the same chain.
type Lineage [32]byte

// shortBytes is the number of bytes of a lineage in a name.
const shortBytes = 5

// Settings decide how a step changes the weights with its batch.
type Settings struct {
	// LearningRate is the rate of this very step, with the schedule applied.
	LearningRate float64
	// Algorithm has every default filled in. Settings that only decide which batch a step gets are no part of a lineage.
	Algorithm algorithm.Algorithm
	// Teachers are the teachers by the names of their environments.
	Teachers map[string]algorithm.Teacher
}

// Genesis returns the lineage of version 0. specDigest digests the fixed part of the run's spec, which names the base
// model, its seed and the source of its first weights.
func Genesis(specDigest string) Lineage {
	c := newCanonical("tinker-operator lineage genesis 1")
	c.text(specDigest)
	return seal(c.sum())
}

// Next returns the lineage of the version that results from training version l on the manifest's batch. A step whose
// batch has nothing usable advances the lineage like any other.
func (l Lineage) Next(manifest Manifest, settings Settings) Lineage {
	c := newCanonical("tinker-operator lineage next 1")
	c.bytes(l[:])
	digest := manifest.Digest()
	c.bytes(digest[:])
	settings.write(c)
	return seal(c.sum())
}

// seal derives the remaining bytes of a lineage from its first bytes.
func seal(l Lineage) Lineage {
	rest := sha256.Sum256(l[:shortBytes])
	copy(l[shortBytes:], rest[:])
	return l
}

func (s Settings) write(c *canonical) {
	a, o := s.Algorithm, s.Algorithm.Optimizer
	c.float(s.LearningRate)
	c.optional(o.Beta1)
	c.optional(o.Beta2)
	for _, v := range []float64{o.Epsilon, o.WeightDecay, o.GradClipNorm} {
		c.float(v)
	}
	writeLoss(c, a.Loss)
	writeAdvantage(c, a.Advantage)
	c.int(int64(a.Substeps))
	c.text(string(a.Grouping))
	c.int(int64(len(a.Roles)))
	for _, role := range a.Roles {
		name := string(role.Name)
		c.text(name)
		writeLoss(c, a.LossOf(name))
		writeAdvantage(c, a.AdvantageOf(name))
	}
	if kl := a.KL; kl != nil {
		c.float(kl.Coefficient)
		c.float(kl.Discount)
		if kl.Reference != nil {
			c.text(kl.Reference.Model)
			c.text(kl.Reference.Checkpoint)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Teachers)) {
		t := s.Teachers[name]
		c.text("teacher of " + name)
		c.text(t.Model)
		c.text(t.Checkpoint)
		c.text(t.SystemPrompt)
		c.float(t.Coefficient)
		c.float(t.Discount)
	}
}

func writeLoss(c *canonical, loss algorithm.Loss) {
	c.text(string(loss.Name))
	c.optional(loss.ClipLow)
	c.optional(loss.ClipHigh)
}

func writeAdvantage(c *canonical, a algorithm.Advantage) {
	c.text(string(a.Baseline))
	c.text(string(a.Scale))
	c.int(int64(a.DDoF))
}

// String returns 64 hex digits.
func (l Lineage) String() string { return hex.EncodeToString(l[:]) }

// Short returns the first 10 hex digits, as names of checkpoints have them.
func (l Lineage) Short() string { return hex.EncodeToString(l[:shortBytes]) }

// IsZero reports whether this is the zero Lineage, which is the parent of version 0.
func (l Lineage) IsZero() bool { return l == Lineage{} }

// ParseLineage reads 64 hex digits in lower case.
func ParseLineage(text string) (Lineage, error) {
	var l Lineage
	if err := parseHex(l[:], text); err != nil {
		return Lineage{}, fmt.Errorf("parsing lineage: %w", err)
	}
	return l, nil
}

// MarshalText returns 64 hex digits.
func (l Lineage) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads 64 hex digits in lower case.
func (l *Lineage) UnmarshalText(text []byte) error {
	parsed, err := ParseLineage(string(text))
	*l = parsed
	return err
}

// lineageFromShort returns the lineage whose Short this is; ten zeros give the zero Lineage.
func lineageFromShort(short string) Lineage {
	var l Lineage
	// The pattern of names has made sure that the digits are hexadecimal.
	_, _ = hex.Decode(l[:shortBytes], []byte(short))
	if l.IsZero() {
		return l
	}
	return seal(l)
}

// Version identifies a version of the policy.
type Version struct {
	Step    int64   `json:"step"`
	Lineage Lineage `json:"lineage"`
}
