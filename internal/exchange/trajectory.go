// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"fmt"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func trajectoryToProto(t rl.Trajectory) *pb.Trajectory {
	return &pb.Trajectory{
		Role: t.Role, Key: t.Key, Reward: t.Reward, StepRewards: t.StepRewards, StopReason: t.StopReason,
		Segments: all(t.Segments, segmentToProto), Judgements: all(t.Judgements, judgementToProto),
	}
}

func judgementToProto(j rl.Judgement) *pb.Judgement {
	return &pb.Judgement{Criterion: j.Criterion, Rating: j.Rating, Rationale: j.Rationale}
}

func judgementFromProto(j *pb.Judgement) rl.Judgement {
	return rl.Judgement{Criterion: j.GetCriterion(), Rating: j.GetRating(), Rationale: j.GetRationale()}
}

func judgeUsageToProto(u rl.JudgeUsage) *pb.JudgeUsage {
	if u == (rl.JudgeUsage{}) {
		return nil
	}
	return &pb.JudgeUsage{
		Calls: u.Calls, Errors: u.Errors, Unreadable: u.Unreadable, PromptTokens: u.PromptTokens,
		SampledTokens: u.SampledTokens,
	}
}

func judgeUsageFromProto(u *pb.JudgeUsage) rl.JudgeUsage {
	return rl.JudgeUsage{
		Calls: u.GetCalls(), Errors: u.GetErrors(), Unreadable: u.GetUnreadable(),
		PromptTokens: u.GetPromptTokens(), SampledTokens: u.GetSampledTokens(),
	}
}

func (d *groupDecoder) trajectory(field string, t *pb.Trajectory) rl.Trajectory {
	return rl.Trajectory{
		Role: t.GetRole(), Key: t.GetKey(), Reward: t.GetReward(), StepRewards: t.GetStepRewards(),
		StopReason: t.GetStopReason(),
		Segments:   each(field+".segments", t.GetSegments(), d.segment),
		Judgements: all(t.GetJudgements(), judgementFromProto),
	}
}

// simpleSegments returns the segments of a member as version 1 has them. The error is a *rl.FieldError when that
// version cannot express the member.
func simpleSegments(field string, m rl.Member) ([]*pb.Segment, error) {
	if !m.IsSimple() || m.Outcome == rl.Usable && m.Trajectories[0].Reward != m.Reward {
		return nil, &rl.FieldError{Field: field + ".trajectories",
			Problem: "need format version 2, and the run has version 1"}
	}
	var segments []*pb.Segment
	for _, t := range m.Trajectories {
		for _, s := range t.Segments {
			segment := segmentToProto(s)
			segment.Role = t.Role
			segments = append(segments, segment)
		}
	}
	return segments, nil
}

// simpleTrajectories returns the one trajectory of a usable member of version 1, and none of another.
func (d *groupDecoder) simpleTrajectories(field string, m *pb.Member) []rl.Trajectory {
	segments := each(field+".segments", m.GetSegments(), d.segment)
	if len(m.GetTrajectories()) > 0 {
		d.fail(field+".trajectories", "are those of format version 2")
	}
	if m.GetOutcome() != pb.Outcome_USABLE {
		if len(segments) > 0 {
			d.fail(field+".segments", "are given, but the member is not usable")
		}
		return nil
	}
	t := rl.Trajectory{Reward: m.GetReward(), StopReason: m.GetStopReason(), Segments: segments}
	for i, s := range m.GetSegments() {
		if i > 0 && s.GetRole() != t.Role {
			d.fail(fmt.Sprintf("%s.segments[%d].role", field, i), "is not that of the segment before")
		}
		t.Role = s.GetRole()
	}
	return []rl.Trajectory{t}
}
