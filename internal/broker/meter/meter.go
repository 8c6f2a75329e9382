// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker/journal"
	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

// Config configures a Meter.
type Config struct {
	// Dir is the folder of the records. One meter at a time may use it.
	Dir string
	// Now is the clock; nil for the real one.
	Now func() time.Time
	// Grace is how long runs may go on after their budget is reached, so that they end at a saved state; 10 minutes by
	// default.
	Grace time.Duration
	// CountFailed says that the server bills the requests whose futures failed.
	CountFailed bool
}

const (
	defaultGrace = 10 * time.Minute
	// keptDays is how many days have their rows in the journal. The ConfigMaps have the earlier ones.
	keptDays = 7
	// keptHours is how many hours have counts of their own, for the comparison with bills.
	keptHours = 6
)

func hourOf(at time.Time) int64 { return at.Truncate(time.Hour).Unix() }

// Meter counts. It is safe for concurrent use.
type Meter struct {
	config  Config
	journal *journal.Journal[record]

	mu sync.Mutex
	// runs are the runs of the settings, whose UIDs are in present, and other runs that still have rows or open futures.
	// Their weights are 0.
	runs    map[string]endpoint.Run
	present map[string]bool
	prices  map[string]spending.Price
	budgets []endpoint.Budget
	rows    map[rowKey]*endpoint.Usage
	used    map[budgetKey]*budgetRecord
	open    map[string]*future
	counted idSet
	grants  map[account]*grant
	// onDisk are the newest grants on the disk.
	onDisk map[account]endpoint.Tokens
	// lost are the grants of a process that died, which are counted once there are prices.
	lost map[account]endpoint.Tokens
	// hours has the tokens that were counted in each of the last hours. since is when the journal had been read, and
	// began says that it has been.
	hours map[int64]endpoint.Tokens
	since time.Time
	began bool
}

// Open reads the records of a folder. The first SetSettings counts what an earlier meter had granted when it died.
func Open(config Config) (*Meter, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	config.Grace = cmp.Or(config.Grace, defaultGrace)
	m := &Meter{
		config: config, runs: map[string]endpoint.Run{}, rows: map[rowKey]*endpoint.Usage{},
		used: map[budgetKey]*budgetRecord{}, open: map[string]*future{}, grants: map[account]*grant{},
		onDisk: map[account]endpoint.Tokens{}, lost: map[account]endpoint.Tokens{}, hours: map[int64]endpoint.Tokens{},
	}
	var err error
	m.journal, err = journal.Open(journal.Config[record]{Dir: config.Dir, Name: "usage", Apply: m.apply, Live: m.live})
	if err != nil {
		return nil, fmt.Errorf("opening meter: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := config.Now()
	m.began, m.since = true, now
	for _, f := range m.open {
		f.doubtful, f.polled = true, now
	}
	maps.Copy(m.lost, m.onDisk)
	return m, nil
}

// Close removes the grants of requests that have ended, and ends the recording.
func (m *Meter) Close() {
	m.mu.Lock()
	for of, g := range m.grants {
		m.correct(of, g)
	}
	m.mu.Unlock()
	m.journal.Close()
}

// Err returns why the meter can record nothing, or nil. A meter that failed has to be opened anew.
func (m *Meter) Err() error { return m.journal.Err() }

// SetSettings sets the runs, prices and budgets. The first call also counts the grants of a process that died.
func (m *Meter) SetSettings(settings endpoint.Settings) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prices, m.budgets = settings.Prices, settings.Budgets
	m.present = map[string]bool{}
	var changed []record
	for _, run := range settings.Runs {
		run.Weight = 0
		m.present[run.UID] = true
		if known, ok := m.runs[run.UID]; ok && reflect.DeepEqual(known, run) {
			continue
		}
		m.runs[run.UID] = run
		changed = append(changed, record{Run: &run})
	}
	for of, tokens := range m.lost {
		lost := m.count(of, tokens)
		changed = append(changed, record{Lost: &lost})
	}
	m.lost = nil
	if len(changed) > 0 {
		m.journal.Start(changed...)
	}
}

// count returns the record of tokens at the present prices. The lock is held.
func (m *Meter) count(of account, tokens endpoint.Tokens) settledRecord {
	counted := settledRecord{account: of, At: m.config.Now().Unix(), Tokens: tokens, Budgets: m.runs[of.UID].Budgets}
	if price, ok := m.prices[of.Model]; ok {
		counted.USD = costOf(tokens, price)
	} else {
		counted.Unpriced = total(tokens)
	}
	return counted
}

// apply puts records in force that are on the disk.
func (m *Meter) apply(records []record, segment int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		switch {
		case r.Run != nil:
			if !m.began {
				m.runs[r.Run.UID] = *r.Run
			}
		case r.Grant != nil:
			m.onDisk[r.Grant.account] = r.Grant.Tokens
			if r.Grant.Tokens == (endpoint.Tokens{}) {
				delete(m.onDisk, r.Grant.account)
			}
		case r.Opened != nil:
			m.applyOpened(*r.Opened, segment)
		case r.Settled != nil:
			delete(m.open, r.Settled.ID)
			if !m.counted.has(r.Settled.ID) { // a process that lost its Lease may have recorded it, too
				m.counted.add(r.Settled.ID)
				m.addTo(*r.Settled)
			}
		case r.Lost != nil:
			m.addTo(*r.Lost)
			delete(m.onDisk, r.Lost.account)
		case r.Row != nil:
			m.rows[rowKey{r.Row.Day.Unix(), account{r.Row.UID, r.Row.Model}}] = r.Row
		case r.Budget != nil:
			used := m.budget(budgetKey{r.Budget.Name, r.Budget.Since})
			used.Tokens, used.USD = r.Budget.Tokens, r.Budget.USD
			used.Reached = cmp.Or(used.Reached, r.Budget.Reached)
		case r.Reached != nil && !m.began:
			m.budget(budgetKey{r.Reached.Name, r.Reached.Since}).Reached = r.Reached.At
		}
	}
}

// addTo adds a settled record to its row and its budgets. The lock is held.
func (m *Meter) addTo(c settledRecord) {
	if c.Tokens == (endpoint.Tokens{}) {
		return
	}
	at := time.Unix(c.At, 0)
	if m.began {
		m.hours[hourOf(at)] = add(m.hours[hourOf(at)], c.Tokens)
	}
	key := rowKey{dayOf(at), c.account}
	row := m.rows[key]
	if row == nil {
		row = &endpoint.Usage{Day: time.Unix(key.day, 0).UTC(), UID: c.UID, Model: c.Model}
		m.rows[key] = row
	}
	if run, ok := m.runs[c.UID]; ok {
		row.Namespace, row.Run, row.Labels, row.User = run.Namespace, run.Name, run.Labels, run.User
	}
	row.Tokens = add(row.Tokens, c.Tokens)
	row.USD += c.USD
	row.Unpriced += c.Unpriced
	for _, name := range c.Budgets {
		// The budget may have another period later.
		for _, since := range []int64{0, monthOf(at)} {
			used := m.budget(budgetKey{name, since})
			used.Tokens += total(c.Tokens)
			used.USD += c.USD
		}
	}
}

// budget returns the counts of a budget. The lock is held.
func (m *Meter) budget(key budgetKey) *budgetRecord {
	used := m.used[key]
	if used == nil {
		used = &budgetRecord{Name: key.name, Since: key.since}
		m.used[key] = used
	}
	return used
}

// live returns the open futures of a segment, and all rows, budgets, grants and runs, as they are on the disk.
func (m *Meter) live(segment int) []record {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget()
	var records []record
	named := map[string]bool{}
	for _, row := range m.rows {
		copied := *row
		records = append(records, record{Row: &copied})
		named[row.UID] = true
	}
	for _, used := range m.used {
		copied := *used
		records = append(records, record{Budget: &copied})
	}
	records = append(records, m.liveGrants()...)
	for _, f := range m.open {
		named[f.UID] = true
		if f.segment == segment {
			opened := f.openedRecord
			records = append(records, record{Opened: &opened})
		}
	}
	maps.DeleteFunc(m.runs, func(uid string, _ endpoint.Run) bool { return !named[uid] && !m.present[uid] })
	for _, run := range m.runs {
		records = append(records, record{Run: &run})
	}
	return records
}

// liveGrants returns the grants on the disk. The lock is held.
func (m *Meter) liveGrants() (records []record) {
	for of, tokens := range m.onDisk {
		records = append(records, record{Grant: &grantRecord{of, tokens}})
	}
	return records
}

// forget removes rows and months that are long past. The lock is held.
func (m *Meter) forget() {
	now := m.config.Now()
	oldest := dayOf(now.AddDate(0, 0, -keptDays))
	hours := now.Add(-keptHours * time.Hour).Unix()
	maps.DeleteFunc(m.hours, func(hour int64, _ endpoint.Tokens) bool { return hour < hours })
	maps.DeleteFunc(m.rows, func(key rowKey, _ *endpoint.Usage) bool { return key.day < oldest })
	month := monthOf(now.AddDate(0, 0, -keptDays))
	maps.DeleteFunc(m.used, func(key budgetKey, _ *budgetRecord) bool { return key.since != 0 && key.since < month })
}

// Usage returns the rows of a day, by namespace, run and model.
func (m *Meter) Usage(day time.Time) []endpoint.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rows []endpoint.Usage
	for key, row := range m.rows {
		if key.day == dayOf(day) {
			rows = append(rows, *row)
		}
	}
	slices.SortFunc(rows, func(a, b endpoint.Usage) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Run, b.Run), cmp.Compare(a.UID, b.UID),
			cmp.Compare(a.Model, b.Model))
	})
	return rows
}

// Hour returns the counted tokens of all runs in an hour, and whether this meter has counted since the hour began.
func (m *Meter) Hour(hour time.Time) (counted endpoint.Tokens, whole bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	oldest := m.config.Now().Add(-keptHours * time.Hour)
	return m.hours[hourOf(hour)], !hour.Before(m.since) && !hour.Before(oldest)
}

// Days returns the days that have rows, the earliest first.
func (m *Meter) Days() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	days := map[int64]bool{}
	for key := range m.rows {
		days[key.day] = true
	}
	var sorted []time.Time
	for _, day := range slices.Sorted(maps.Keys(days)) {
		sorted = append(sorted, time.Unix(day, 0).UTC())
	}
	return sorted
}
