// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// Spending is what a worker's process has asked of the endpoint and of judges elsewhere. A nil Spending counts nothing.
type Spending struct {
	meter   *client.Meter
	process string

	mu sync.Mutex
	// accounts are those of the groups that no state covers yet.
	accounts map[rl.Key]*client.Account
}

// NewSpending returns the spending of this process by the meter of its clients.
func NewSpending(meter *client.Meter) *Spending {
	return &Spending{meter: meter, process: rand.Text(), accounts: map[rl.Key]*client.Account{}}
}

// Spent returns what was spent so far. It is made for exchange.ClientConfig.Spent.
func (s *Spending) Spent() exchange.Spent {
	if s == nil {
		return exchange.Spent{}
	}
	spent, _ := s.read(nil)
	return spent
}

// read returns what was spent so far, and at the same moment what some accounts have.
func (s *Spending) read(accounts []*client.Account) (exchange.Spent, []client.Account) {
	s.mu.Lock()
	all := slices.AppendSeq(slices.Clone(accounts), maps.Values(s.accounts))
	s.mu.Unlock()
	used, each := s.meter.Read(all...)
	spent := exchange.Spent{Process: s.process, Used: used}
	for _, account := range each[len(accounts):] {
		spent.Uncovered = spent.Uncovered.Add(account.Used)
	}
	return spent, each
}

// account returns the account of a group, which lasts until a state covers the group.
func (s *Spending) account(key rl.Key) *client.Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accounts[key] == nil {
		s.accounts[key] = &client.Account{}
	}
	return s.accounts[key]
}

// cover forgets the groups that a state or the row of an evaluation covers.
func (s *Spending) cover(index int64, evaluations []exchange.Evaluation) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.accounts, func(key rl.Key, _ *client.Account) bool {
		return key.Kind == rl.Train && key.Slot < index ||
			slices.Contains(evaluations, exchange.Evaluation{Digest: key.Evaluation, Lineage: key.Lineage})
	})
}

// report fills in what was spent, and which part of it the groups in progress have used.
func (s *Spending) report(renewal *exchange.Renewal, groups []*activeGroup) {
	accounts := make([]*client.Account, len(groups))
	for i, group := range groups {
		if accounts[i] = group.account; s == nil {
			accounts[i] = &client.Account{}
		}
		renewal.Progress = append(renewal.Progress, exchange.Progress{
			Key: group.key, MembersDone: int(group.progress.MembersDone.Load()),
			SampledTokens: group.progress.SampledTokens.Load(),
		})
	}
	if s == nil {
		return
	}
	spent, each := s.read(accounts)
	renewal.Spent = spent
	for i, group := range groups {
		p := &renewal.Progress[i]
		p.Used = each[i].Used
		p.Next = exchange.UnreportedRequests * int64(group.lease.Load().GroupSize-p.MembersDone) * each[i].Largest
	}
}

// of returns the context of a group, to whose account belongs what is asked with it.
func (s *Spending) of(ctx context.Context, group *activeGroup) context.Context {
	if s == nil {
		return ctx
	}
	group.progress.Judged = func(used environment.JudgeUsage) {
		s.meter.Add(spending.Usage{JudgePromptTokens: used.PromptTokens, JudgeSampledTokens: used.SampledTokens},
			group.account)
	}
	return client.WithAccount(ctx, group.account)
}
