// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// keyOf returns the key of a budget's counts in its present period.
func keyOf(b endpoint.Budget, now time.Time) budgetKey {
	if b.Period == endpoint.PeriodMonth {
		return budgetKey{b.Name, monthOf(now)}
	}
	return budgetKey{name: b.Name}
}

// isReached reports whether a budget is reached, and since when. It records each change. The lock is held.
func (m *Meter) isReached(b endpoint.Budget, now time.Time) (since time.Time, reached bool) {
	used := m.budget(keyOf(b, now))
	over := b.Tokens > 0 && used.Tokens >= b.Tokens || b.USD > 0 && used.USD >= b.USD
	if over == (used.Reached != 0) {
		return time.Unix(used.Reached, 0), over
	}
	used.Reached = 0
	if over {
		used.Reached = now.Unix()
	}
	m.journal.Start(record{Reached: &reachedRecord{Name: used.Name, Since: used.Since, At: used.Reached}})
	return time.Unix(used.Reached, 0), over
}

// Reached is the error of a run whose budget is reached and whose grace is over.
type Reached struct {
	Budget endpoint.BudgetUsage
}

// Error names the budget and its usage.
func (r *Reached) Error() string {
	return fmt.Sprintf("budget %s is reached: %d tokens for %.2f dollars are used", r.Budget.Name, r.Budget.Tokens,
		r.Budget.USD)
}

// Admit returns an error if a run may ask for nothing more that is billed.
func (m *Meter) Admit(uid string) *Reached {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, names := m.config.Now(), m.runs[uid].Budgets
	for _, budget := range m.budgets {
		if !slices.Contains(names, budget.Name) {
			continue
		}
		if since, reached := m.isReached(budget, now); reached && !now.Before(since.Add(m.config.Grace)) {
			return &Reached{m.usageOf(budget, now)}
		}
	}
	return nil
}

// usageOf returns the usage of a budget. The lock is held.
func (m *Meter) usageOf(b endpoint.Budget, now time.Time) endpoint.BudgetUsage {
	key := keyOf(b, now)
	used := m.budget(key)
	usage := endpoint.BudgetUsage{Name: b.Name, Tokens: used.Tokens, USD: used.USD}
	if key.since != 0 {
		usage.Since = time.Unix(key.since, 0).UTC()
	}
	return usage
}

// Budgets returns the usage of each budget in its present period.
func (m *Meter) Budgets(now time.Time) []endpoint.BudgetUsage {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []endpoint.BudgetUsage
	for _, budget := range m.budgets {
		all = append(all, m.usageOf(budget, now))
	}
	return all
}

// Restore takes over the usage that an earlier broker wrote where it exceeds the usage of the records, as it does
// after their loss.
func (m *Meter) Restore(ctx context.Context, rows []endpoint.Usage, budgets []endpoint.BudgetUsage) error {
	var more []record
	m.mu.Lock()
	for _, row := range rows {
		known := m.rows[rowKey{dayOf(row.Day), account{row.UID, row.Model}}]
		if known == nil {
			known = &endpoint.Usage{}
		}
		row.Tokens, row.USD = most(row.Tokens, known.Tokens), max(row.USD, known.USD)
		row.Unpriced = max(row.Unpriced, known.Unpriced)
		if row.Tokens != known.Tokens || row.USD != known.USD || row.Unpriced != known.Unpriced {
			more = append(more, record{Row: &row})
		}
	}
	for _, usage := range budgets {
		key := budgetKey{name: usage.Name}
		if !usage.Since.IsZero() {
			key.since = usage.Since.Unix()
		}
		known := *m.budget(key)
		if usage.Tokens <= known.Tokens && usage.USD <= known.USD {
			continue
		}
		known.Tokens, known.USD = max(known.Tokens, usage.Tokens), max(known.USD, usage.USD)
		more = append(more, record{Budget: &known})
	}
	m.mu.Unlock()
	if len(more) == 0 {
		return nil
	}
	return m.journal.Append(ctx, more...)
}

// EncodeUsage returns rows as the text of endpoint.UsageKey: a JSON object for each line.
func EncodeUsage(rows []endpoint.Usage) (string, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, row := range rows {
		if err := encoder.Encode(row); err != nil {
			return "", fmt.Errorf("encoding usage: %w", err)
		}
	}
	return text.String(), nil
}

// DecodeUsage reads the text of endpoint.UsageKey.
func DecodeUsage(text string) ([]endpoint.Usage, error) {
	var rows []endpoint.Usage
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	for decoder.More() {
		var row endpoint.Usage
		if err := decoder.Decode(&row); err != nil {
			return nil, fmt.Errorf("decoding row %d of usage: %w", len(rows)+1, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}
