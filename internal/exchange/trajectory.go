// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
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

func (d *decoder) trajectory(field string, t *pb.Trajectory) rl.Trajectory {
	return rl.Trajectory{
		Role: t.GetRole(), Key: t.GetKey(), Reward: t.GetReward(), StepRewards: t.GetStepRewards(),
		StopReason: t.GetStopReason(),
		Segments:   each(field+".segments", t.GetSegments(), d.segment),
		Judgements: all(t.GetJudgements(), judgementFromProto),
	}
}
