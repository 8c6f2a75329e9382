// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// player is one process of a worker.
type player struct {
	*walk
	name, process string
	sequence      int64
	used          int64
	// open has the requests without an answer, and counted the answered requests, each of which counts once.
	open    map[string]*play
	counted map[string]bool
	// playing has the groups in progress, and stored the finished groups. accounts has the usage of each group that, as
	// far as the process knows, no state covers.
	playing  map[rl.Key]*play
	stored   map[rl.Key]bool
	accounts map[rl.Key]int64
	// connected is set once the worker has said Hello. received, renewals, directives and others are messages on their
	// way. The first three arrive in the order in which they were sent; others may overtake each other.
	connected  bool
	received   []exchange.Lease
	crossed    bool // set if the worker has said Hello since it asked for the received leases
	renewals   []exchange.Renewal
	directives []exchange.Directive
	others     []func()
}

// play is a group in progress.
type play struct {
	lease           exchange.Lease
	asked, answered int
	submitted       bool
}

func newPlayer(w *walk, name, process string) *player {
	return &player{walk: w, name: name, process: process, playing: map[rl.Key]*play{}, stored: map[rl.Key]bool{},
		accounts: map[rl.Key]int64{}, open: map[string]*play{}, counted: map[string]bool{}}
}

func (p *player) note(format string, args ...any) {
	p.walk.note("%s (%s): %s", p.name, p.process, fmt.Sprintf(format, args...))
}

// spent returns the current report of the process.
func (p *player) spent() (exchange.Spent, []exchange.GroupSpent) {
	p.sequence++
	spent := exchange.Spent{Process: p.process, Sequence: p.sequence, Used: spending.Usage{
		SampledTokens: p.used, UnconfirmedTokens: int64(len(p.open)) * requestTokens,
	}}
	var groups []exchange.GroupSpent
	for _, key := range slices.SortedFunc(maps.Keys(p.accounts), rl.Key.Compare) {
		used := spending.Usage{SampledTokens: p.accounts[key]}
		spent.Uncovered = spent.Uncovered.Add(used)
		groups = append(groups, exchange.GroupSpent{Key: key, Used: used})
	}
	return spent, groups
}

// act performs one random action.
func (p *player) act() {
	if !p.connected {
		switch p.random.IntN(4) {
		case 0:
			p.hello()
		case 1:
			p.answer()
		default:
			p.ask()
		}
		return
	}
	switch p.random.IntN(16) {
	case 0, 1:
		p.acquire()
	case 2, 3:
		p.receive()
	case 4, 5, 6:
		p.ask()
	case 7, 8:
		p.answer()
	case 9:
		p.finish()
	case 10:
		p.renew()
	case 11:
		p.deliverRenewal()
	case 12:
		p.direct()
	case 13, 14:
		p.deliverOther()
	default:
		p.trouble()
	}
}

// hello says Hello. The process may make further requests between sending the message and its arrival.
func (p *player) hello() {
	request := exchange.HelloRequest{Playing: slices.SortedFunc(maps.Keys(p.playing), rl.Key.Compare)}
	for _, key := range slices.SortedFunc(maps.Keys(p.stored), rl.Key.Compare) {
		request.Stored = append(request.Stored, exchange.StoredGroup{Key: key, Outcome: rl.Usable})
	}
	request.Spent, request.Groups = p.spent()
	p.crossed = true
	p.note("Hello with %d used, %d open, playing %v", p.used, len(p.open), slotNumbers(request.Playing))
	for range p.random.IntN(4) {
		p.ask()
		p.answer()
		p.receive()
	}
	reply := hello(p.t, p.table, p.name, request)
	p.write() // a learner records which processes there are before it leases groups to them
	kept := map[rl.Key]bool{}
	for _, lease := range reply.Keep {
		kept[lease.Key] = true
	}
	for _, key := range request.Playing {
		if !kept[key] && p.playing[key] != nil {
			p.note("stops %d", key.Slot)
			delete(p.playing, key)
		}
	}
	p.connected = true
	for _, key := range reply.Wanted {
		p.submit(key)
	}
	if p.random.IntN(2) > 0 {
		p.renew()
	}
}

func slotNumbers(keys []rl.Key) []int64 {
	slots := []int64{}
	for _, key := range keys {
		slots = append(slots, key.Slot)
	}
	return slots
}

// disconnect breaks the connection, possibly because the learner has died.
func (p *player) disconnect(learnerDied bool) {
	if !p.connected {
		return
	}
	p.connected, p.renewals, p.directives, p.others = false, nil, nil, nil
	if learnerDied || p.random.IntN(3) == 0 {
		return // the learner does not notice
	}
	p.note("is disconnected")
	p.table.Disconnected(p.name)
}

// acquire asks for leases.
func (p *player) acquire() {
	if len(p.received) > 0 {
		return
	}
	p.crossed = false
	p.received = p.table.grant(p.name, members*(1+p.random.IntN(2)))
	for _, lease := range p.received {
		p.note("is granted %d of learner %d", lease.Key.Slot, p.attempt)
	}
	if p.granted += len(p.received); p.granted > 2 {
		p.write()
	}
}

// receive begins to play the granted leases.
func (p *player) receive() {
	for _, lease := range p.received {
		switch {
		case p.crossed:
			p.note("does not begin %d", lease.Key.Slot)
		case p.stored[lease.Key]:
			p.submit(lease.Key)
		case p.playing[lease.Key] == nil:
			p.note("begins %d", lease.Key.Slot)
			p.playing[lease.Key] = &play{lease: lease}
			p.accounts[lease.Key] += 0
		}
	}
	p.received = nil
}

// pick picks a group in progress; nil if there is none.
func (p *player) pick(suits func(*play) bool) *play {
	var list []*play
	for _, key := range slices.SortedFunc(maps.Keys(p.playing), rl.Key.Compare) {
		if suits(p.playing[key]) {
			list = append(list, p.playing[key])
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[p.random.IntN(len(list))]
}

// ask sends the request of a member, which the endpoint executes.
func (p *player) ask() {
	group := p.pick(func(g *play) bool { return g.asked < members })
	if group == nil {
		return
	}
	key := group.lease.Key
	p.note("asks for member %d of %d", group.asked, key.Slot)
	request := fmt.Sprint(group.lease.Sampler, "/", key.Slot, "/", group.asked)
	p.execute(request, p.process)
	group.asked++
	p.open[request] = group
}

// answer receives an answer to an open request. The worker may have stopped the group.
func (p *player) answer() {
	if len(p.open) == 0 {
		return
	}
	requests := slices.Sorted(maps.Keys(p.open))
	request := requests[p.random.IntN(len(requests))]
	group := p.open[request]
	p.note("is answered for %d", group.lease.Key.Slot)
	delete(p.open, request)
	group.answered++
	if !p.counted[request] {
		p.counted[request] = true
		p.used += requestTokens
		p.accounts[group.lease.Key] += requestTokens
	}
}

// finish stores a group whose members are done, and submits it.
func (p *player) finish() {
	done := p.pick(func(g *play) bool { return g.answered == members && !g.submitted })
	if done == nil {
		return
	}
	done.submitted = true
	p.stored[done.lease.Key] = true
	p.submit(done.lease.Key)
}

// submit sends a group. The group stays in progress until the message has arrived.
func (p *player) submit(slot rl.Key) {
	spent, _ := p.spent()
	p.note("submits %d with %d used", slot.Slot, p.used)
	p.others = append(p.others, func() {
		p.note("submit of %d arrives", slot.Slot)
		p.table.Report(p.name, spent, []rl.Key{slot})
		submit(p.table, p.name, group(slot.Slot, members))
		delete(p.playing, slot)
	})
}

// renew sends a renewal.
func (p *player) renew() {
	spent, groups := p.spent()
	renewal := exchange.Renewal{Spent: spent, Groups: groups}
	for _, key := range slices.SortedFunc(maps.Keys(p.playing), rl.Key.Compare) {
		group := p.playing[key]
		progress := exchange.Progress{Key: key, MembersDone: group.answered}
		if group.asked > 0 {
			progress.Next = exchange.UnreportedRequests * int64(members-group.answered) * requestTokens
		}
		renewal.Progress = append(renewal.Progress, progress)
	}
	p.note("renews with %d used, %d open", p.used, len(p.open))
	p.renewals = append(p.renewals, renewal)
}

func (p *player) deliverRenewal() {
	if len(p.renewals) == 0 {
		return
	}
	p.note("a renewal arrives")
	directive := p.table.Renew(p.name, p.renewals[0])
	p.renewals = p.renewals[1:]
	p.directives = append(p.directives, directive)
}

// direct receives a directive.
func (p *player) direct() {
	if len(p.directives) == 0 {
		return
	}
	directive := p.directives[0]
	p.directives = p.directives[1:]
	for _, key := range directive.Revoked {
		if group := p.playing[key]; group != nil && !group.submitted {
			p.note("stops %d", key.Slot)
			delete(p.playing, key)
		}
	}
	for _, key := range directive.Wanted {
		if p.stored[key] {
			p.submit(key)
		}
	}
	for key := range p.stored {
		if key.Slot < directive.CoveredIndex {
			delete(p.stored, key)
		}
	}
}

func (p *player) deliverOther() {
	if len(p.others) == 0 {
		return
	}
	i := p.random.IntN(len(p.others))
	deliver := p.others[i]
	p.others = slices.Delete(p.others, i, i+1)
	deliver()
}

// trouble makes something go wrong.
func (p *player) trouble() {
	switch p.random.IntN(4) {
	case 0: // it is drained of one group
		group := p.pick(func(g *play) bool { return !g.submitted })
		if group == nil {
			return
		}
		delete(p.playing, group.lease.Key)
		spent, _ := p.spent()
		p.note("releases %d", group.lease.Key.Slot)
		p.others = append(p.others, func() {
			p.note("release of %d arrives", group.lease.Key.Slot)
			p.table.Report(p.name, spent, []rl.Key{group.lease.Key})
			p.table.Release(p.name, []rl.Key{group.lease.Key}, exchange.Drained)
		})
	case 1:
		p.note("dies")
		p.disconnect(false)
		p.workers = slices.DeleteFunc(p.workers, func(other *player) bool { return other == p })
	default:
		p.disconnect(false)
	}
}
