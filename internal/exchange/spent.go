// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

func spentToProto(s Spent) *pb.Spent {
	if s.Process == "" {
		return nil
	}
	return &pb.Spent{
		Process: s.Process, Tokens: tokensToProto(s.Used), Uncovered: tokensToProto(s.Uncovered), Sequence: s.Sequence,
	}
}

func tokensToProto(u spending.Usage) *pb.Tokens {
	return &pb.Tokens{
		Prompt: u.PromptTokens, Sampled: u.SampledTokens, JudgePrompt: u.JudgePromptTokens,
		JudgeSampled: u.JudgeSampledTokens,
		Reference:    u.ReferenceTokens, Unconfirmed: u.UnconfirmedTokens, CachedPrompt: u.CachedPromptTokens,
		Teacher: u.TeacherTokens,
	}
}

func (d *decoder) spent(s *pb.Spent) Spent {
	return Spent{
		Process: s.GetProcess(), Used: d.tokens(s.GetTokens()), Uncovered: d.tokens(s.GetUncovered()),
		Sequence: max(0, s.GetSequence()),
	}
}

func groupSpentToProto(g GroupSpent) *pb.GroupSpent {
	return &pb.GroupSpent{Key: keyToProto(g.Key), Used: tokensToProto(g.Used)}
}

func (d *decoder) groupSpent(field string, g *pb.GroupSpent) GroupSpent {
	return GroupSpent{Key: d.key(field+".key", g.GetKey()), Used: d.tokens(g.GetUsed())}
}

// tokens reads counters, which are never negative.
func (d *decoder) tokens(t *pb.Tokens) spending.Usage {
	used := spending.Usage{
		PromptTokens: t.GetPrompt(), SampledTokens: t.GetSampled(), JudgePromptTokens: t.GetJudgePrompt(),
		JudgeSampledTokens: t.GetJudgeSampled(), ReferenceTokens: t.GetReference(), UnconfirmedTokens: t.GetUnconfirmed(),
		CachedPromptTokens: t.GetCachedPrompt(), TeacherTokens: t.GetTeacher(),
	}
	return used.Max(spending.Usage{})
}

// spent returns the worker's spending so far.
func (c *Client) spent() *pb.Spent {
	if c.config.Spent == nil {
		return nil
	}
	return spentToProto(c.config.Spent())
}

// report passes the spending that a Submit or a Release carries to the handler, with the groups that the worker has
// ended.
func (s *Server) report(worker string, message *pb.Spent, ended []rl.Key) {
	var d decoder
	if spent := d.spent(message); spent.Process != "" {
		s.handler.Report(worker, spent, ended)
	}
}
