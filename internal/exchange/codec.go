// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"fmt"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// each converts a list; the error names the element.
func each[In, Out any](field string, in []In, convert func(field string, in In) (Out, error)) ([]Out, error) {
	var out []Out
	for i, element := range in {
		converted, err := convert(fmt.Sprintf("%s[%d]", field, i), element)
		if err != nil {
			return nil, err
		}
		out = append(out, converted)
	}
	return out, nil
}

// all converts a list whose elements are valid.
func all[In, Out any](in []In, convert func(In) Out) []Out {
	var out []Out
	for _, element := range in {
		out = append(out, convert(element))
	}
	return out
}

func epochToProto(e Epoch) *pb.Epoch {
	return &pb.Epoch{RunUid: e.RunUID, SpecDigest: e.SpecDigest, Attempt: e.Attempt, Version: int32(e.Version), Proof: []byte(e.Proof)}
}

func keyToProto(k rl.Key) *pb.GroupKey {
	return &pb.GroupKey{Kind: pb.Kind(k.Kind), Slot: k.Slot, Lineage: k.Lineage.String(), Evaluation: k.Evaluation}
}

func keyFromProto(field string, k *pb.GroupKey) (rl.Key, error) {
	if k.GetKind() != pb.Kind_TRAIN && k.GetKind() != pb.Kind_EVALUATE {
		return rl.Key{}, &rl.FieldError{Field: field + ".kind", Problem: fmt.Sprintf("%d is invalid", k.GetKind())}
	}
	lineage, err := lineageFromProto(field+".lineage", k.GetLineage())
	if err != nil {
		return rl.Key{}, err
	}
	return rl.Key{Kind: rl.Kind(k.GetKind()), Slot: k.GetSlot(), Lineage: lineage, Evaluation: k.GetEvaluation()}, nil
}

func lineageFromProto(field, text string) (rl.Lineage, error) {
	lineage, err := rl.ParseLineage(text)
	if err != nil {
		return rl.Lineage{}, &rl.FieldError{Field: field, Problem: err.Error()}
	}
	return lineage, nil
}

func outcomeFromProto(field string, o pb.Outcome) (rl.Outcome, error) {
	if o < 0 || int(o) >= len(pb.Outcome_name) {
		return 0, &rl.FieldError{Field: field, Problem: fmt.Sprintf("%d is invalid", o)}
	}
	return rl.Outcome(o), nil
}

func storedToProto(g StoredGroup) *pb.StoredGroup {
	return &pb.StoredGroup{Key: keyToProto(g.Key), Outcome: pb.Outcome(g.Outcome)}
}

func storedFromProto(field string, g *pb.StoredGroup) (StoredGroup, error) {
	key, err := keyFromProto(field+".key", g.GetKey())
	if err != nil {
		return StoredGroup{}, err
	}
	outcome, err := outcomeFromProto(field+".outcome", g.GetOutcome())
	if err != nil {
		return StoredGroup{}, err
	}
	return StoredGroup{Key: key, Outcome: outcome}, nil
}

func leaseToProto(l Lease) *pb.Lease {
	return &pb.Lease{
		Key: keyToProto(l.Key), Environment: l.Environment, Split: l.Split, Task: l.Task,
		GroupSize: int32(l.GroupSize), MinMembers: int32(l.MinMembers), Sampler: l.Sampler,
		Seed: l.Seed, SamplingSession: l.SamplingSession, Transcript: l.Transcript,
	}
}

func leaseFromProto(field string, l *pb.Lease) (Lease, error) {
	key, err := keyFromProto(field+".key", l.GetKey())
	if err != nil {
		return Lease{}, err
	}
	return Lease{
		Key: key, Environment: l.GetEnvironment(), Split: l.GetSplit(), Task: l.GetTask(),
		GroupSize: int(l.GetGroupSize()), MinMembers: int(l.GetMinMembers()), Sampler: l.GetSampler(),
		Seed: l.GetSeed(), SamplingSession: l.GetSamplingSession(), Transcript: l.GetTranscript(),
	}, nil
}
