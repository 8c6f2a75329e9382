// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"fmt"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// decoder converts messages, and records the first invalid field. Values that it returns after that do not count.
type decoder struct{ err error }

func (d *decoder) fail(field, format string, values ...any) {
	if d.err == nil {
		d.err = &rl.FieldError{Field: field, Problem: fmt.Sprintf(format, values...)}
	}
}

// each converts a list; fields of its elements are named with their index.
func each[In, Out any](field string, in []In, convert func(field string, in In) Out) []Out {
	var out []Out
	for i, element := range in {
		out = append(out, convert(fmt.Sprintf("%s[%d]", field, i), element))
	}
	return out
}

// all converts a list whose elements are valid.
func all[In, Out any](in []In, convert func(In) Out) []Out {
	var out []Out
	for _, element := range in {
		out = append(out, convert(element))
	}
	return out
}

func keyToProto(k rl.Key) *pb.GroupKey {
	return &pb.GroupKey{Kind: pb.Kind(k.Kind), Slot: k.Slot, Lineage: k.Lineage.String(), Evaluation: k.Evaluation}
}

func (d *decoder) key(field string, k *pb.GroupKey) rl.Key {
	if k.GetKind() != pb.Kind_TRAIN && k.GetKind() != pb.Kind_EVALUATE {
		d.fail(field+".kind", "%d is invalid", k.GetKind())
	}
	lineage := d.lineage(field+".lineage", k.GetLineage())
	return rl.Key{Kind: rl.Kind(k.GetKind()), Slot: k.GetSlot(), Lineage: lineage, Evaluation: k.GetEvaluation()}
}

func (d *decoder) lineage(field, text string) rl.Lineage {
	lineage, err := rl.ParseLineage(text)
	if err != nil {
		d.fail(field, "%s", err)
	}
	return lineage
}

func (d *decoder) outcome(field string, o pb.Outcome) rl.Outcome {
	if o < 0 || int(o) >= len(pb.Outcome_name) {
		d.fail(field, "%d is invalid", o)
	}
	return rl.Outcome(o)
}

func storedToProto(g StoredGroup) *pb.StoredGroup {
	return &pb.StoredGroup{Key: keyToProto(g.Key), Outcome: pb.Outcome(g.Outcome)}
}

func (d *decoder) stored(field string, g *pb.StoredGroup) StoredGroup {
	return StoredGroup{Key: d.key(field+".key", g.GetKey()), Outcome: d.outcome(field+".outcome", g.GetOutcome())}
}

func leaseToProto(l Lease) *pb.Lease {
	return &pb.Lease{
		Key: keyToProto(l.Key), Environment: l.Environment, Split: l.Split, Task: l.Task,
		GroupSize: int32(l.GroupSize), MinMembers: int32(l.MinMembers), Sampler: l.Sampler,
		Seed: l.Seed, SamplingSession: l.SamplingSession, Transcript: l.Transcript,
		Alone: l.Alone, Faulty: all(l.Faulty, func(member int) int32 { return int32(member) }),
	}
}

func (d *decoder) lease(field string, l *pb.Lease) Lease {
	return Lease{
		Key: d.key(field+".key", l.GetKey()), Environment: l.GetEnvironment(), Split: l.GetSplit(), Task: l.GetTask(),
		GroupSize: int(l.GetGroupSize()), MinMembers: int(l.GetMinMembers()), Sampler: l.GetSampler(),
		Seed: l.GetSeed(), SamplingSession: l.GetSamplingSession(), Transcript: l.GetTranscript(),
		Alone: l.GetAlone(), Faulty: all(l.GetFaulty(), func(member int32) int { return int(member) }),
	}
}
