// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"maps"
	"slices"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func helloRequestToProto(epoch Epoch, worker string, r HelloRequest) *pb.HelloRequest {
	return &pb.HelloRequest{
		Epoch: epochToProto(epoch), Worker: worker, Stored: all(r.Stored, storedToProto),
		Playing: all(r.Playing, keyToProto),
	}
}

func helloRequestFromProto(r *pb.HelloRequest) (HelloRequest, error) {
	stored, err := each("stored", r.GetStored(), storedFromProto)
	if err != nil {
		return HelloRequest{}, err
	}
	playing, err := each("playing", r.GetPlaying(), keyFromProto)
	if err != nil {
		return HelloRequest{}, err
	}
	return HelloRequest{Stored: stored, Playing: playing}, nil
}

func helloReplyToProto(epoch Epoch, r HelloReply) *pb.HelloReply {
	return &pb.HelloReply{
		Epoch: epochToProto(epoch), Wanted: all(r.Wanted, keyToProto), Keep: all(r.Keep, leaseToProto),
		CoveredIndex: r.CoveredIndex, Play: r.Play, Session: r.Session,
	}
}

func helloReplyFromProto(r *pb.HelloReply) (HelloReply, error) {
	wanted, err := each("wanted", r.GetWanted(), keyFromProto)
	if err != nil {
		return HelloReply{}, err
	}
	keep, err := each("keep", r.GetKeep(), leaseFromProto)
	if err != nil {
		return HelloReply{}, err
	}
	return HelloReply{
		Wanted: wanted, Keep: keep, CoveredIndex: r.GetCoveredIndex(), Play: r.GetPlay(), Session: r.GetSession(),
	}, nil
}

func renewalToProto(epoch Epoch, worker string, r Renewal) *pb.RenewRequest {
	return &pb.RenewRequest{
		Epoch: epochToProto(epoch), Worker: worker, Throttled: int32(r.Throttled), QueueState: r.QueueState,
		DataState: pb.DataState(r.Data), DataProblem: r.DataProblem, JudgeProblem: r.JudgeProblem, FormatProblem: r.FormatProblem,
		EndpointProblem: endpointToProto(r.Endpoint),
		Progress: all(r.Progress, func(p Progress) *pb.Progress {
			return &pb.Progress{Key: keyToProto(p.Key), MembersDone: int32(p.MembersDone), SampledTokens: p.SampledTokens}
		}),
		Unavailable: all(slices.Sorted(maps.Keys(r.Unavailable)), func(name string) *pb.UnavailableEnvironment {
			return &pb.UnavailableEnvironment{Name: name, Problem: r.Unavailable[name]}
		}),
	}
}

func renewalFromProto(r *pb.RenewRequest) (Renewal, error) {
	progress, err := each("progress", r.GetProgress(), func(field string, p *pb.Progress) (Progress, error) {
		key, err := keyFromProto(field+".key", p.GetKey())
		return Progress{Key: key, MembersDone: int(p.GetMembersDone()), SampledTokens: p.GetSampledTokens()}, err
	})
	if err != nil {
		return Renewal{}, err
	}
	renewal := Renewal{
		Progress: progress, Throttled: int(r.GetThrottled()), QueueState: r.GetQueueState(),
		Data: DataState(r.GetDataState()), DataProblem: r.GetDataProblem(), JudgeProblem: r.GetJudgeProblem(), FormatProblem: r.GetFormatProblem(),
		Endpoint: endpointFromProto(r.GetEndpointProblem()),
	}
	for _, e := range r.GetUnavailable() {
		if renewal.Unavailable == nil {
			renewal.Unavailable = map[string]string{}
		}
		renewal.Unavailable[e.GetName()] = e.GetProblem()
	}
	return renewal, nil
}

func endpointToProto(p EndpointProblem) *pb.EndpointProblem {
	if p.Kind == "" {
		return nil
	}
	return &pb.EndpointProblem{Kind: p.Kind, Op: p.Op, Status: int32(p.Status), Evidence: p.Evidence}
}

func endpointFromProto(p *pb.EndpointProblem) EndpointProblem {
	return EndpointProblem{Kind: p.GetKind(), Op: p.GetOp(), Status: int(p.GetStatus()), Evidence: p.GetEvidence()}
}

func directiveToProto(epoch Epoch, d Directive) *pb.RenewReply {
	return &pb.RenewReply{
		Epoch: epochToProto(epoch), Revoked: all(d.Revoked, keyToProto), Credits: int32(d.Credits),
		CoveredIndex: d.CoveredIndex, Session: d.Session, Download: d.Download, Wanted: all(d.Wanted, keyToProto),
		Skipped: d.Skipped,
		CoveredEvaluations: all(d.CoveredEvaluations, func(e Evaluation) *pb.Evaluation {
			return &pb.Evaluation{Digest: e.Digest, Lineage: e.Lineage.String()}
		}),
		Rejected: all(d.Rejected, func(g RejectedGroup) *pb.RejectedGroup {
			return &pb.RejectedGroup{Key: keyToProto(g.Key), Outcome: pb.Outcome(g.Outcome), Reason: g.Reason}
		}),
	}
}

func directiveFromProto(r *pb.RenewReply) (Directive, error) {
	d := Directive{
		Credits: int(r.GetCredits()), CoveredIndex: r.GetCoveredIndex(), Session: r.GetSession(), Download: r.GetDownload(),
		Skipped: r.GetSkipped(),
	}
	var err error
	if d.Revoked, err = each("revoked", r.GetRevoked(), keyFromProto); err != nil {
		return Directive{}, err
	}
	if d.Wanted, err = each("wanted", r.GetWanted(), keyFromProto); err != nil {
		return Directive{}, err
	}
	if d.CoveredEvaluations, err = each("covered_evaluations", r.GetCoveredEvaluations(), evaluationFromProto); err != nil {
		return Directive{}, err
	}
	if d.Rejected, err = each("rejected", r.GetRejected(), rejectedFromProto); err != nil {
		return Directive{}, err
	}
	return d, nil
}

func evaluationFromProto(field string, e *pb.Evaluation) (Evaluation, error) {
	lineage, err := lineageFromProto(field+".lineage", e.GetLineage())
	return Evaluation{Digest: e.GetDigest(), Lineage: lineage}, err
}

func rejectedFromProto(field string, g *pb.RejectedGroup) (RejectedGroup, error) {
	key, err := keyFromProto(field+".key", g.GetKey())
	if err != nil {
		return RejectedGroup{}, err
	}
	outcome, err := outcomeFromProto(field+".outcome", g.GetOutcome())
	if err != nil {
		return RejectedGroup{}, err
	}
	if outcome == rl.Usable {
		return RejectedGroup{}, &rl.FieldError{Field: field + ".outcome", Problem: "is not a tombstone's"}
	}
	return RejectedGroup{Key: key, Outcome: outcome, Reason: g.GetReason()}, nil
}

func submitReplyToProto(epoch Epoch, r SubmitReply) *pb.SubmitReply {
	return &pb.SubmitReply{Epoch: epochToProto(epoch), Status: pb.SubmitReply_Status(r.Status), Field: r.Field}
}

func submitReplyFromProto(r *pb.SubmitReply) (SubmitReply, error) {
	if r.GetStatus() < 0 || int(r.GetStatus()) >= len(pb.SubmitReply_Status_name) {
		return SubmitReply{}, &rl.FieldError{Field: "status", Problem: "is invalid"}
	}
	return SubmitReply{Status: SubmitStatus(r.GetStatus()), Field: r.GetField()}, nil
}
