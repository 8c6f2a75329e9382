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

// Spending counts the tokens that a worker's process uses at the endpoint and at judges on other servers. A nil
// Spending counts nothing.
type Spending struct {
	meter   *client.Meter
	process string

	mu sync.Mutex
	// sequence counts how often the meter was read.
	sequence int64
	// accounts are the accounts of the groups that no state covers yet. listed is the usage of each group that was last
	// reported to the learner.
	accounts map[rl.Key]*client.Account
	listed   map[rl.Key]spending.Usage
	// covered are the groups whose accounts are forgotten after the next report to the learner.
	covered map[rl.Key]bool
}

// NewSpending returns the spending of this process by the meter of its clients.
func NewSpending(meter *client.Meter) *Spending {
	return &Spending{meter: meter, process: rand.Text(), accounts: map[rl.Key]*client.Account{},
		listed: map[rl.Key]spending.Usage{}, covered: map[rl.Key]bool{}}
}

// Spent returns the usage so far. It is made for exchange.ClientConfig.Spent.
func (s *Spending) Spent() exchange.Spent {
	if s == nil {
		return exchange.Spent{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	spent, _ := s.read()
	return spent
}

// read returns the usage so far, and the usage at the same moment of each group that no state covers. The lock is
// held.
func (s *Spending) read() (exchange.Spent, map[rl.Key]client.Account) {
	keys := slices.Collect(maps.Keys(s.accounts))
	accounts := make([]*client.Account, len(keys))
	for i, key := range keys {
		accounts[i] = s.accounts[key]
	}
	used, each := s.meter.Read(accounts...)
	s.sequence++
	spent := exchange.Spent{Process: s.process, Used: used, Sequence: s.sequence}
	groups := map[rl.Key]client.Account{}
	for i, account := range each {
		groups[keys[i]] = account
		spent.Uncovered = spent.Uncovered.Add(account.Used)
	}
	return spent, groups
}

// hello fills in the usage, in total and by group.
func (s *Spending) hello(request *exchange.HelloRequest) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	spent, groups := s.read()
	request.Spent, s.listed = spent, map[rl.Key]spending.Usage{}
	request.Groups = s.list(groups)
}

// list lists the groups that have used more than was listed before. The lock is held.
func (s *Spending) list(groups map[rl.Key]client.Account) (more []exchange.GroupSpent) {
	for key, account := range groups {
		if listed, known := s.listed[key]; !known || listed != account.Used {
			more = append(more, exchange.GroupSpent{Key: key, Used: account.Used})
			s.listed[key] = account.Used
		}
		if s.covered[key] {
			delete(s.accounts, key)
			delete(s.listed, key)
		}
	}
	clear(s.covered)
	slices.SortFunc(more, func(a, b exchange.GroupSpent) int { return a.Key.Compare(b.Key) })
	return more
}

// account returns the account of a group, which lasts until a state covers the group.
func (s *Spending) account(key rl.Key) *client.Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.covered, key)
	if s.accounts[key] == nil {
		s.accounts[key] = &client.Account{}
	}
	return s.accounts[key]
}

// cover marks the groups that a state or the row of an evaluation covers. Their accounts are forgotten after the next
// report.
func (s *Spending) cover(index int64, evaluations []exchange.Evaluation) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.accounts {
		if key.Kind == rl.Train && key.Slot < index ||
			slices.Contains(evaluations, exchange.Evaluation{Digest: key.Evaluation, Lineage: key.Lineage}) {
			s.covered[key] = true
		}
	}
}

// report fills in the usage, in total and by group, and bounds on the next costs of groups in progress.
func (s *Spending) report(renewal *exchange.Renewal, groups []*activeGroup) {
	for _, group := range groups {
		renewal.Progress = append(renewal.Progress, exchange.Progress{
			Key: group.key, MembersDone: int(group.progress.MembersDone.Load()),
			SampledTokens: group.progress.SampledTokens.Load(),
		})
	}
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	spent, each := s.read()
	renewal.Spent = spent
	for i, group := range groups {
		p := &renewal.Progress[i]
		p.Next = exchange.UnreportedRequests * int64(group.lease.Load().GroupSize-p.MembersDone) * each[group.key].Largest
	}
	renewal.Groups = s.list(each)
}

// of returns the context of a group. Requests with it belong to the account of the group.
func (s *Spending) of(ctx context.Context, group *activeGroup) context.Context {
	if s == nil {
		return ctx
	}
	group.progress.Judged = func(used environment.JudgeUsage) {
		s.meter.Add(spending.Usage{JudgePromptTokens: used.PromptTokens, JudgeSampledTokens: used.SampledTokens},
			group.account)
	}
	// A request is counted when its reply comes, from the endpoint or from the replies that an earlier process has kept.
	// The usage of the group by that process stays held.
	group.progress.Inherited = func(prompt, sampled int) {
		s.meter.Add(spending.Usage{PromptTokens: int64(prompt), SampledTokens: int64(sampled)}, group.account)
	}
	return client.WithAccount(ctx, group.account)
}
