// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// Request is a request that the server bills.
type Request struct {
	// Run is the UID of the run, and Model the base model; the run's model if it is empty.
	Run, Model string
	// Tokens are the tokens of the prompt or of the data.
	Tokens endpoint.Tokens
	// Sampling says that the request is one for samples, and Samples how many tokens may be sampled in all.
	Sampling bool
	Samples  int64
}

// grant is the maximum cost of the requests of an account that have no future yet.
type grant struct {
	// stored is the newest record.
	stored endpoint.Tokens
	// left is the part of it for further requests, and flying the maximum cost of the requests in progress.
	left, flying endpoint.Tokens
	// wait waits until the newest record is on the disk.
	wait func(context.Context) error
	// second is the second of the newest request. during is the cost of the requests in that second, and prior the cost
	// in the second before.
	second        int64
	during, prior endpoint.Tokens
}

// next counts the cost of a request in its second.
func (g *grant) next(cost endpoint.Tokens, second int64) {
	switch second {
	case g.second:
	case g.second + 1:
		g.prior, g.during = g.during, endpoint.Tokens{}
	default:
		g.prior, g.during = endpoint.Tokens{}, endpoint.Tokens{}
	}
	g.second = second
	g.during = add(g.during, cost)
}

// Ticket is a request that may be forwarded.
type Ticket struct {
	meter   *Meter
	of      account
	grant   *grant
	cost    endpoint.Tokens
	request Request
	end     sync.Once
}

// errNoSettings is the error of requests that come before the settings: a new grant would take the place of a lost
// grant that is not counted yet.
var errNoSettings = errors.New("the meter has no settings yet")

// Reserve returns once the maximum cost of a request is on the disk. The request may then be forwarded. The caller
// calls Accept or Release in the end.
func (m *Meter) Reserve(ctx context.Context, r Request) (*Ticket, error) {
	if err := m.journal.Err(); err != nil {
		return nil, err
	}
	t := &Ticket{meter: m, of: account{r.Run, r.Model}, cost: r.Tokens, request: r}
	t.cost.Sample += r.Samples
	m.mu.Lock()
	if r.Model == "" {
		t.of.Model = m.runs[r.Run].Model
	}
	if m.present == nil {
		m.mu.Unlock()
		return nil, errNoSettings
	}
	g := m.grants[t.of]
	if g == nil {
		g = &grant{}
		m.grants[t.of] = g
	}
	t.grant = g
	g.next(t.cost, m.config.Now().Unix())
	g.flying = add(g.flying, t.cost)
	if g.wait != nil && fits(t.cost, g.left) {
		g.left = sub(g.left, t.cost)
	} else {
		g.left = most(g.prior, g.during)
		m.store(t.of, g)
	}
	wait := g.wait
	m.mu.Unlock()
	if err := wait(ctx); err != nil {
		t.Release()
		return nil, err
	}
	return t, nil
}

// store records a grant. The lock is held, so that records are in the order of the grants.
func (m *Meter) store(of account, g *grant) {
	g.stored = add(g.flying, g.left)
	g.wait = m.journal.Start(record{Grant: &grantRecord{of, g.stored}})
}

// correct reduces a grant to the requests in progress, and records it if this changes it. The lock is held.
func (m *Meter) correct(of account, g *grant) {
	if g.left = (endpoint.Tokens{}); g.stored != g.flying {
		m.store(of, g)
	}
}

// Release ends a request that the server did not accept.
func (t *Ticket) Release() {
	t.end.Do(func() {
		t.meter.mu.Lock()
		defer t.meter.mu.Unlock()
		t.land()
	})
}

// land takes the request from those in progress. The lock is held.
func (t *Ticket) land() {
	t.grant.flying = sub(t.grant.flying, t.cost)
}

// Accept ends a request that the server has accepted: id is its future. A future that is known already is not counted
// twice. The reply need not wait for the record: the request's grant is on the disk, and a later grant is written
// after the record.
func (t *Ticket) Accept(id string) {
	t.end.Do(func() {
		m := t.meter
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.open[id] == nil && !m.counted.has(id) {
			r := t.request
			opened := openedRecord{account: t.of, ID: id, Tokens: r.Tokens, Samples: r.Samples, Sampling: r.Sampling,
				At: m.config.Now().Unix()}
			m.applyOpened(opened, unwritten)
			m.journal.Start(record{Opened: &opened})
		}
		t.land()
	})
}

// unwritten is the segment of a future whose record is not on the disk yet.
const unwritten = -1

// future is a future that was not delivered yet.
type future struct {
	openedRecord
	segment int
	// polling counts the polls in progress. polled is when the last poll ended, or when the future became known.
	polling int
	polled  time.Time
	// settling says that the settled record of the future is being written.
	settling bool
	// doubtful says that an earlier process may have delivered it.
	doubtful bool
}

func (m *Meter) applyOpened(r openedRecord, segment int) {
	if known := m.open[r.ID]; known != nil {
		known.segment = segment
		return
	}
	if !m.counted.has(r.ID) {
		m.open[r.ID] = &future{openedRecord: r, segment: segment, polled: m.config.Now()}
	}
}

// Outcome is what became of a future.
type Outcome int

// The outcomes.
const (
	// Delivered is the delivery of a result.
	Delivered Outcome = iota
	// Failed is the failure of an operation.
	Failed
	// Lost is the loss of a future that the server does not have any more.
	Lost
)

// Settle counts a future whose outcome is known. sampled is the number of sampled tokens, and cached the number of
// tokens of the prompt from the server's cache. Only the first call for an id has an effect.
func (m *Meter) Settle(id string, outcome Outcome, sampled, cached int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.open[id]
	if f == nil || f.settling {
		return
	}
	f.settling = true
	tokens := f.Tokens
	switch {
	case outcome == Delivered:
		tokens.Sample += sampled
		tokens.CachedPrefill = max(0, min(cached, tokens.Prefill))
	case outcome == Lost && f.doubtful:
		tokens.Sample += f.Samples // It may have been delivered by the process that died.
	case !m.config.CountFailed:
		tokens = endpoint.Tokens{}
	}
	counted := m.count(f.account, tokens)
	counted.ID = id
	m.journal.Start(record{Settled: &counted})
}

// Poll notes that the result of a future is asked for. The caller calls done when it has an answer.
func (m *Meter) Poll(id string) (done func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.open[id]
	if f == nil {
		return func() {}
	}
	f.polling++
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		f.polling--
		f.polled = m.config.Now()
	}
}

// Unpolled is an open future that was not polled for a while.
type Unpolled struct {
	ID string
	// Sampling says that the future is of a request for samples. Made is when the future became known.
	Sampling bool
	Made     time.Time
}

// Unpolled returns the open futures that were not polled for as long as patience.
func (m *Meter) Unpolled(patience time.Duration) (unpolled []Unpolled) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.config.Now().Add(-patience)
	for id, f := range m.open {
		if f.polling == 0 && !f.settling && !f.polled.After(before) {
			unpolled = append(unpolled, Unpolled{ID: id, Sampling: f.Sampling, Made: time.Unix(f.At, 0)})
		}
	}
	return unpolled
}

// Unfinished returns the samples that are open, with the UIDs of their runs.
func (m *Meter) Unfinished() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	samples := map[string]string{}
	for id, f := range m.open {
		if f.Sampling && !f.settling {
			samples[id] = f.UID
		}
	}
	return samples
}

// Tick reduces grants that cover more than a second's cost, corrects grants that no request used in the last second,
// and notes the budgets that are reached. It is called each second.
func (m *Meter) Tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget()
	now := m.config.Now()
	for of, g := range m.grants {
		if now.Unix() <= g.second+1 {
			if ahead := most(g.prior, g.during); !fits(sub(g.stored, g.flying), ahead) {
				g.left = least(g.left, ahead)
				m.store(of, g)
			}
			continue
		}
		m.correct(of, g)
		if _, stored := m.onDisk[of]; !stored && g.flying == (endpoint.Tokens{}) {
			delete(m.grants, of)
		}
	}
	for _, budget := range m.budgets {
		m.isReached(budget, now)
	}
}
