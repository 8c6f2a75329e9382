// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The kinds of usage that a bill lists, as the API names them. Nothing of a prompt is billed as cached.
const (
	UsageTraining   = "training"
	UsagePrefill    = "sampling_prefill"
	UsageSample     = "sampling_sample"
	UsageCheckpoint = "checkpoint"
)

// Payer is the session and the base model that usage is billed to, with the time of the usage. Session is empty for
// samples outside of a session.
type Payer struct {
	Session, BaseModel string
	At                 time.Time
}

// Usage is the usage of one kind by one session in an hour: tokens, or checkpoints.
type Usage struct {
	Hour                     time.Time
	Session, BaseModel, Kind string
	Count                    int64
}

// Account is the description of a session in a bill.
type Account struct {
	Project  string
	Metadata map[string]string
}

// bill has the usage over all restarts.
type bill struct {
	used     map[Usage]int64 // whose keys have no count
	accounts map[string]Account
}

func newBill() bill { return bill{used: map[Usage]int64{}, accounts: map[string]Account{}} }

func (b bill) add(to Payer, kind string, count int) {
	if count > 0 {
		b.used[Usage{Hour: to.At.UTC().Truncate(time.Hour), Session: to.Session, BaseModel: to.BaseModel, Kind: kind}] +=
			int64(count)
	}
}

// CountCheckpoint bills a save.
func (c *Counters) CountCheckpoint(to Payer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bill.add(to, UsageCheckpoint, 1)
}

// OpenAccount notes the description of a session for the bill.
func (c *Counters) OpenAccount(session string, account Account) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bill.accounts[session] = account
}

// Bill returns the usage in the hours from the first up to the second time, by hour and then the greatest first, and
// the accounts of its sessions.
func (c *Counters) Bill(from, to time.Time) (all []Usage, accounts map[string]Account) {
	c.mu.Lock()
	defer c.mu.Unlock()
	accounts = map[string]Account{}
	for _, used := range slices.Collect(maps.Keys(c.bill.used)) {
		if used.Hour.Before(from) || !used.Hour.Before(to) {
			continue
		}
		if account, ok := c.bill.accounts[used.Session]; ok {
			accounts[used.Session] = account
		}
		count := c.bill.used[used]
		used.Count = count
		all = append(all, used)
	}
	slices.SortFunc(all, func(a, b Usage) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Session, b.Session),
			cmp.Compare(a.BaseModel, b.BaseModel), cmp.Compare(a.Kind, b.Kind))
	})
	return all, accounts
}
