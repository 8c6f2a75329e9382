// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func helloRequestToProto(epoch *Epoch, worker string, r HelloRequest) *pb.HelloRequest {
	return &pb.HelloRequest{
		Epoch: epoch, Worker: worker, Stored: all(r.Stored, storedToProto),
		Playing: all(r.Playing, keyToProto), Spent: spentToProto(r.Spent), Groups: all(r.Groups, groupSpentToProto),
	}
}

func helloRequestFromProto(r *pb.HelloRequest) (HelloRequest, error) {
	var d decoder
	request := HelloRequest{
		Stored: each("stored", r.GetStored(), d.stored), Playing: each("playing", r.GetPlaying(), d.key),
		Spent: d.spent(r.GetSpent()), Groups: each("groups", r.GetGroups(), d.groupSpent),
	}
	return request, d.err
}

func helloReplyToProto(epoch *Epoch, r HelloReply) *pb.HelloReply {
	return &pb.HelloReply{
		Epoch: epoch, Wanted: all(r.Wanted, keyToProto), Keep: all(r.Keep, leaseToProto),
		CoveredIndex: r.CoveredIndex, Play: r.Play, Session: r.Session,
	}
}

func helloReplyFromProto(r *pb.HelloReply) (HelloReply, error) {
	var d decoder
	reply := HelloReply{
		Wanted: each("wanted", r.GetWanted(), d.key), Keep: each("keep", r.GetKeep(), d.lease),
		CoveredIndex: r.GetCoveredIndex(), Play: r.GetPlay(), Session: r.GetSession(),
	}
	return reply, d.err
}

func renewalToProto(epoch *Epoch, worker string, r Renewal) *pb.RenewRequest {
	return &pb.RenewRequest{
		Epoch: epoch, Worker: worker, Spent: spentToProto(r.Spent), State: r.State,
		Groups: all(r.Groups, groupSpentToProto),
		Progress: all(r.Progress, func(p Progress) *pb.Progress {
			return &pb.Progress{
				Key: keyToProto(p.Key), MembersDone: int32(p.MembersDone), SampledTokens: p.SampledTokens,
				Next: p.Next,
			}
		}),
	}
}

func renewalFromProto(r *pb.RenewRequest) (Renewal, error) {
	var d decoder
	renewal := Renewal{
		Progress: each("progress", r.GetProgress(), func(field string, p *pb.Progress) Progress {
			return Progress{
				Key: d.key(field+".key", p.GetKey()), MembersDone: int(p.GetMembersDone()), SampledTokens: p.GetSampledTokens(),
				Next: max(0, p.GetNext()),
			}
		}),
		Spent: d.spent(r.GetSpent()), State: r.GetState(), Groups: each("groups", r.GetGroups(), d.groupSpent),
	}
	return renewal, d.err
}

func directiveToProto(epoch *Epoch, d Directive) *pb.RenewReply {
	return &pb.RenewReply{
		Epoch: epoch, Revoked: all(d.Revoked, keyToProto), Credits: int32(d.Credits),
		CoveredIndex: d.CoveredIndex, Session: d.Session, Download: d.Download, Wanted: all(d.Wanted, keyToProto),
		Skipped: d.Skipped,
		Permits: all(d.Permits, func(p Permit) *pb.Permit {
			return &pb.Permit{Key: keyToProto(p.Key), Member: int32(p.Member)}
		}),
		CoveredEvaluations: all(d.CoveredEvaluations, func(e Evaluation) *pb.Evaluation {
			return &pb.Evaluation{Digest: e.Digest, Lineage: e.Lineage.String()}
		}),
		Rejected: all(d.Rejected, func(g RejectedGroup) *pb.RejectedGroup {
			return &pb.RejectedGroup{Key: keyToProto(g.Key), Outcome: pb.Outcome(g.Outcome), Reason: g.Reason}
		}),
	}
}

func directiveFromProto(r *pb.RenewReply) (Directive, error) {
	var d decoder
	directive := Directive{
		Credits: int(r.GetCredits()), CoveredIndex: r.GetCoveredIndex(), Session: r.GetSession(), Download: r.GetDownload(),
		Skipped: r.GetSkipped(), Revoked: each("revoked", r.GetRevoked(), d.key),
		Wanted:             each("wanted", r.GetWanted(), d.key),
		CoveredEvaluations: each("covered_evaluations", r.GetCoveredEvaluations(), d.evaluation),
		Rejected:           each("rejected", r.GetRejected(), d.rejected),
		Permits:            each("permits", r.GetPermits(), d.permit),
	}
	return directive, d.err
}

func (d *decoder) permit(field string, p *pb.Permit) Permit {
	return Permit{Key: d.key(field+".key", p.GetKey()), Member: int(p.GetMember())}
}

func (d *decoder) evaluation(field string, e *pb.Evaluation) Evaluation {
	return Evaluation{Digest: e.GetDigest(), Lineage: d.lineage(field+".lineage", e.GetLineage())}
}

func (d *decoder) rejected(field string, g *pb.RejectedGroup) RejectedGroup {
	group := RejectedGroup{
		Key: d.key(field+".key", g.GetKey()), Outcome: d.outcome(field+".outcome", g.GetOutcome()), Reason: g.GetReason(),
	}
	if group.Outcome == rl.Usable {
		d.fail(field+".outcome", "is not a tombstone's")
	}
	return group
}

// checkStatus refuses a reply whose status is not known.
func checkStatus(r *SubmitReply) error {
	if _, known := pb.SubmitReply_Status_name[int32(r.GetStatus())]; !known {
		return &rl.FieldError{Field: "status", Problem: "is invalid"}
	}
	return nil
}
