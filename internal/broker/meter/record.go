// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"hash/fnv"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// record is a line of the journal. One of its fields is set.
type record struct {
	Run     *endpoint.Run   `json:"run,omitempty"`
	Grant   *grantRecord    `json:"grant,omitempty"`
	Opened  *openedRecord   `json:"opened,omitempty"`
	Settled *settledRecord  `json:"settled,omitempty"`
	Lost    *settledRecord  `json:"lost,omitempty"`
	Row     *endpoint.Usage `json:"row,omitempty"`
	Budget  *budgetRecord   `json:"budget,omitempty"`
	Reached *reachedRecord  `json:"reached,omitempty"`
}

// account is the run and the base model of a request.
type account struct {
	UID   string `json:"uid"`
	Model string `json:"model"`
}

// grantRecord takes the place of the earlier grant of its account.
type grantRecord struct {
	account
	Tokens endpoint.Tokens `json:"tokens,omitzero"`
}

// openedRecord is a future that was not delivered yet.
type openedRecord struct {
	account
	ID string `json:"id"`
	// Tokens are the tokens of the request, and Samples how many tokens may be sampled.
	Tokens  endpoint.Tokens `json:"tokens,omitzero"`
	Samples int64           `json:"samples,omitempty"`
	// Sampling says that the request is one for samples.
	Sampling bool `json:"sampling,omitempty"`
	// At is when the future became known, in seconds since 1970.
	At int64 `json:"at"`
}

// settledRecord adds to the row of its account and day, and to budgets. A lost record also removes the grant.
type settledRecord struct {
	account
	ID string `json:"id,omitempty"`
	// At is when it was counted, in seconds since 1970.
	At       int64           `json:"at"`
	Tokens   endpoint.Tokens `json:"tokens,omitzero"`
	USD      float64         `json:"usd,omitempty"`
	Unpriced int64           `json:"unpriced,omitempty"`
	Budgets  []string        `json:"budgets,omitempty"`
}

// budgetRecord takes the place of the earlier counts of a budget and period.
type budgetRecord struct {
	Name string `json:"name"`
	// Since is when the period began, in seconds since 1970; 0 for the period without end.
	Since  int64   `json:"since,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	USD    float64 `json:"usd,omitempty"`
	// Reached is when the budget was found to be reached, in seconds since 1970, or 0.
	Reached int64 `json:"reached,omitempty"`
}

// reachedRecord says when a budget was found to be reached. At is 0 if the budget is not reached any more.
type reachedRecord struct {
	Name  string `json:"name"`
	Since int64  `json:"since,omitempty"`
	At    int64  `json:"at,omitempty"`
}

// rowKey names a row.
type rowKey struct {
	day int64
	account
}

// dayOf returns the first second of a day in UTC.
func dayOf(at time.Time) int64 { return at.UTC().Truncate(24 * time.Hour).Unix() }

// budgetKey names the counts of a budget in a period.
type budgetKey struct {
	name  string
	since int64
}

// monthOf returns the first second of a month in UTC.
func monthOf(at time.Time) int64 {
	year, month, _ := at.UTC().Date()
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Unix()
}

// idSet has the newest ids that were added to it, by digests of 64 bits.
type idSet struct{ newer, older map[uint64]struct{} }

// manyIDs is the minimum number of newest ids that an idSet keeps.
const manyIDs = 1 << 20

func digest(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return h.Sum64()
}

func (s *idSet) add(id string) {
	if s.newer == nil || len(s.newer) >= manyIDs {
		s.newer, s.older = map[uint64]struct{}{}, s.newer
	}
	s.newer[digest(id)] = struct{}{}
}

func (s *idSet) has(id string) bool {
	key := digest(id)
	_, newer := s.newer[key]
	_, older := s.older[key]
	return newer || older
}
