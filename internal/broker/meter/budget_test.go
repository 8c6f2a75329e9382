// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/endpoint"
)

func countLines(t *testing.T, name, start string) (n int) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, start) {
			n++
		}
	}
	return n
}

// use records a number of prompt tokens for run a, at a dollar a million.
func (b *bench) use(id string, tokens int64) {
	b.Helper()
	b.accept(id, sampleOf(tokens, 0))
	b.Settle(id, Delivered, 0, 0)
	b.flush()
	b.Tick()
	b.flush()
}

func (b *bench) checkAdmitted(uid string, want bool) {
	b.Helper()
	if reached := b.Admit(uid); (reached == nil) != want {
		b.Errorf("Admit(%s) = %v, want admitted: %t", uid, reached, want)
	}
}

func (b *bench) setBudget(budget endpoint.Budget) {
	b.settings.Budgets = []endpoint.Budget{budget}
	b.SetSettings(b.settings)
}

func TestABudgetRefusesOnceItsRunsHadTimeToDrain(t *testing.T) {
	for name, budget := range map[string]endpoint.Budget{
		"tokens":  {Name: "team", Tokens: 1000, Period: endpoint.PeriodForever},
		"dollars": {Name: "team", USD: 0.001, Period: endpoint.PeriodForever},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.setBudget(budget)
			b.use("f1", 999)
			b.advance(time.Hour)
			b.checkAdmitted("a", true)
			b.use("f2", 1)
			b.advance(defaultGrace - time.Second)
			b.checkAdmitted("a", true)
			b.die() // the time to drain goes on
			b.advance(time.Second)
			b.checkAdmitted("a", false)
			b.checkAdmitted("b", true) // a run that does not name the budget
			b.checkAdmitted("nobody", true)
			if got := b.Admit("a").Error(); got != "budget team is reached: 1000 tokens for 0.00 dollars are used" {
				t.Errorf("the reason is %q", got)
			}

			raised := budget
			raised.Tokens *= 2
			raised.USD *= 2
			b.setBudget(raised)
			b.checkAdmitted("a", true)
			b.use("f3", 1000)
			b.checkAdmitted("a", true) // with time to drain again
			b.advance(defaultGrace)
			b.checkAdmitted("a", false)
		})
	}
}

func TestAMonthBeginsAnew(t *testing.T) {
	b := newBench(t)
	b.setBudget(endpoint.Budget{Name: "team", Tokens: 1000, Period: endpoint.PeriodMonth})
	b.use("f1", 1500)
	b.advance(defaultGrace)
	b.checkAdmitted("a", false)
	want := []endpoint.BudgetUsage{{Name: "team", Since: midnight, Tokens: 1500, USD: 0.0015}}
	if diff := cmp.Diff(want, b.Budgets(b.clock())); diff != "" {
		t.Errorf("budgets (-want +got):\n%s", diff)
	}
	b.advance(28 * 24 * time.Hour) // March
	b.checkAdmitted("a", true)
	b.use("f2", 1)
	want = []endpoint.BudgetUsage{{Name: "team", Since: midnight.AddDate(0, 1, 0), Tokens: 1, USD: 1e-6}}
	if diff := cmp.Diff(want, b.Budgets(b.clock())); diff != "" {
		t.Errorf("budgets of March (-want +got):\n%s", diff)
	}
	b.setBudget(endpoint.Budget{Name: "team", Tokens: 1000, Period: endpoint.PeriodForever})
	if got := b.Budgets(b.clock())[0]; got.Tokens != 1501 || !got.Since.IsZero() {
		t.Errorf("without a period the budget has %+v, want all 1501 tokens", got)
	}
}

func TestUsageIsReadAsItIsWritten(t *testing.T) {
	b := newBench(t)
	b.use("f1", 1000)
	b.use("f2", 1000)
	rows := b.Usage(b.clock())
	text, err := EncodeUsage(rows)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"day":"2027-02-01T00:00:00Z","uid":"a","namespace":"team","run":"first","labels":{"l":"v"},` +
		`"user":"ann","model":"priced","tokens":{"prefill":2000},"usd":0.002}` + "\n"
	if text != want {
		t.Errorf("text = %s, want %s", text, want)
	}
	got, err := DecodeUsage(text + text)
	if diff := cmp.Diff(append(rows, rows...), got); diff != "" || err != nil {
		t.Errorf("rows (-want +got), %v:\n%s", err, diff)
	}
	if _, err := DecodeUsage(text + "{"); err == nil || !strings.Contains(err.Error(), "row 2") {
		t.Errorf("half a row: %v, want an error that names row 2", err)
	}
}

func TestRestoreAfterTheLossOfTheRecords(t *testing.T) {
	b := newBench(t)
	b.setBudget(endpoint.Budget{Name: "team", Tokens: 1000, Period: endpoint.PeriodMonth})
	b.use("f1", 700)
	rows, budgets := b.Usage(b.clock()), b.Budgets(b.clock())
	restore := func() {
		t.Helper()
		if err := b.Restore(t.Context(), rows, budgets); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rows, b.Usage(b.clock())); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(budgets, b.Budgets(b.clock())); diff != "" {
			t.Errorf("budgets (-want +got):\n%s", diff)
		}
	}
	restore() // changes nothing
	b.Close()
	b.config.Dir = t.TempDir()
	b.open()
	restore()
	b.die()
	restore()
	b.use("f2", 300)
	b.advance(defaultGrace)
	b.checkAdmitted("a", false)
	if got := b.row("a", "priced").Tokens.Prefill; got != 1000 {
		t.Errorf("%d tokens, want 1000", got)
	}
}
