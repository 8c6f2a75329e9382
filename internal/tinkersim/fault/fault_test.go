// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
)

func set(t *testing.T, script string) *fault.Set {
	t.Helper()
	rules, err := fault.Decode(strings.NewReader(`{"faults":[` + script + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := fault.NewSet(rules, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDecodeInvalid(t *testing.T) {
	cases := map[string]string{
		"an unknown field":               `{"faults":[{"do":"hold","when":"now"}]}`,
		"an unknown action":              `{"faults":[{"do":"explode"}]}`,
		"a missing action":               `{"faults":[{"op":"optim_step"}]}`,
		"a broken pattern":               `{"faults":[{"do":"hold","name":"("}]}`,
		"a refusal without a status":     `{"faults":[{"do":"refuse"}]}`,
		"a refusal with a good status":   `{"faults":[{"do":"refuse","status":200}]}`,
		"an unknown category":            `{"faults":[{"do":"fail","category":"fatal"}]}`,
		"a pause without seconds":        `{"faults":[{"do":"pause"}]}`,
		"a negative occurrence":          `{"faults":[{"do":"hold","occurrence":-1}]}`,
		"a stage that is invalid for it": `{"faults":[{"do":"cold_adam","stage":"reply"}]}`,
		"invalid JSON":                   `faults:`,
	}
	for name, script := range cases {
		t.Run(name, func(t *testing.T) {
			if rules, err := fault.Decode(strings.NewReader(script)); err == nil {
				t.Errorf("Decode accepted %+v", rules)
			}
		})
	}
}

func TestOccurrences(t *testing.T) {
	cases := map[string]struct {
		rule string
		want string // one letter for each of 5 calls: x when affected
	}{
		"the first by default":     {`{"do":"fail"}`, "x...."},
		"the third":                {`{"do":"fail","occurrence":3}`, "..x.."},
		"two from the second":      {`{"do":"fail","occurrence":2,"count":2}`, ".xx.."},
		"all from the fourth":      {`{"do":"fail","occurrence":4,"count":-1}`, "...xx"},
		"the second of one op":     {`{"do":"fail","op":"optim_step","occurrence":2}`, "...x."},
		"one sequence number":      {`{"do":"fail","seq":3}`, "..x.."},
		"a checkpoint by its name": {`{"do":"fail","name":"-s00004"}`, "....x"},
		"a model by its id":        {`{"do":"fail","model":"train:1$"}`, "...x."},
		"another session":          {`{"do":"fail","session":"^z"}`, "....."},
	}
	calls := []fault.Call{
		{Op: "forward_backward", Seq: 1, Model: "s:train:0"},
		{Op: "optim_step", Seq: 2, Model: "s:train:0"},
		{Op: "forward_backward", Seq: 3, Model: "s:train:0"},
		{Op: "optim_step", Seq: 4, Model: "s:train:1"},
		{Op: "save_weights", Seq: 5, Model: "s:train:0", Name: "r1-s00004"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := set(t, tc.rule)
			var got strings.Builder
			for _, call := range calls {
				mark := "."
				if s.ForOperation(call).Failure(fault.Execute) != nil {
					mark = "x"
				}
				got.WriteString(mark)
			}
			if got.String() != tc.want {
				t.Errorf("affected %s, want %s", got.String(), tc.want)
			}
		})
	}
}

func TestForRequest(t *testing.T) {
	s := set(t, `{"do":"refuse","status":429,"retryAfterSeconds":1.5,"message":"slow down"},
		{"do":"drop_request","occurrence":2}, {"do":"drop_answer","occurrence":3}, {"do":"delay","seconds":2,"occurrence":3},
		{"do":"fail","count":-1}`)
	want := []fault.RequestFaults{
		{Refusal: &fault.Refusal{Status: 429, RetryAfter: 1500 * time.Millisecond, Message: "slow down"}},
		{DropRequest: true},
		{DropAnswer: true, Delay: 2 * time.Second},
		{},
	}
	for i, want := range want {
		if diff := cmp.Diff(want, s.ForRequest(fault.Call{Op: "optim_step"})); diff != "" {
			t.Errorf("call %d (-want +got):\n%s", i+1, diff)
		}
	}
	if hits := s.List()[4].Seen; hits != 0 {
		t.Errorf("ForRequest counted %d calls at a rule for operations", hits)
	}
}

func TestForOperation(t *testing.T) {
	s := set(t, `{"do":"lose_promise"},{"do":"cold_adam","occurrence":2},{"do":"fail","stage":"reply","category":"user","message":"no","occurrence":2}`)
	first, second := s.ForOperation(fault.Call{}), s.ForOperation(fault.Call{})
	if !first.Has(fault.LoseFuture) || first.Has(fault.ColdAdam) || first.Failure(fault.Reply) != nil || first.Waits() {
		t.Errorf("first operation = %+v", first)
	}
	if second.Has(fault.LoseFuture) || !second.Has(fault.ColdAdam) || second.Failure(fault.Execute) != nil {
		t.Errorf("second operation = %+v", second)
	}
	if diff := cmp.Diff(&fault.Failure{Category: "user", Message: "no"}, second.Failure(fault.Reply)); diff != "" {
		t.Errorf("failure at the reply (-want +got):\n%s", diff)
	}
	if (fault.OperationFaults{}).Waits() || (fault.OperationFaults{}).Has(fault.Fail) {
		t.Error("the zero value has faults")
	}
}

// collect appends the queue states that an operation reports.
func collect(states *[]string) func(string, string) {
	return func(state, _ string) { *states = append(*states, state) }
}

func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := set(t, `{"id":"h","do":"hold","stage":"reply","queueState":"paused_capacity","count":2}`)
		faults := s.ForOperation(fault.Call{})
		var states []string
		if err := faults.Wait(t.Context(), fault.Execute, collect(&states)); err != nil || states != nil {
			t.Fatalf("at the other stage: %v, reported %v", err, states)
		}
		done := make(chan error)
		go func() { done <- faults.Wait(t.Context(), fault.Reply, collect(&states)) }()
		synctest.Wait()
		if got := s.List()[0]; got.Holding != 1 || got.Hits != 1 || got.Released {
			t.Errorf("while it holds: %+v", got)
		}
		if err := s.Release("other"); !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("Release of another id: %v, want ErrNotFound", err)
		}
		if err := s.Release("h"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"paused_capacity", ""}, states); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
		if err := s.ForOperation(fault.Call{}).Wait(t.Context(), fault.Reply, collect(&states)); err != nil {
			t.Errorf("an operation after the release: %v", err)
		}
		if got := s.List()[0]; got.Holding != 0 || got.Hits != 2 || !got.Released {
			t.Errorf("after the release: %+v", got)
		}
	})
}

func TestHoldEndsWithContextOrClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := set(t, `{"do":"hold","count":2}`)
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		var states []string
		first, second := s.ForOperation(fault.Call{}), s.ForOperation(fault.Call{})
		go func() { errs <- first.Wait(ctx, fault.Execute, func(string, string) {}) }()
		synctest.Wait()
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v, want the context's error", err)
		}
		go func() { errs <- second.Wait(t.Context(), fault.Execute, collect(&states)) }()
		synctest.Wait()
		s.Clear()
		if err := <-errs; err != nil {
			t.Errorf("Wait after Clear = %v", err)
		}
		if got := s.List(); len(got) != 0 {
			t.Errorf("List() after Clear = %v", got)
		}
	})
}

func TestPauseAndCycle(t *testing.T) {
	cases := map[string]struct {
		rule  string
		delay time.Duration // between the arrival and the execution of the operation
		want  time.Duration // from the arrival
	}{
		"a pause counts from the execution": {`{"do":"pause","seconds":3}`, 2 * time.Second, 5 * time.Second},
		"a cycle counts from the arrival":   {`{"do":"cycle","seconds":10}`, 4 * time.Second, 10 * time.Second},
		"a cycle in the past does not wait": {`{"do":"cycle","seconds":10}`, 14 * time.Second, 14 * time.Second},
		"without a rule nothing waits":      {``, time.Second, time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // starts at a full 10 s
				s := set(t, tc.rule)
				start := time.Now()
				faults := s.ForOperation(fault.Call{})
				time.Sleep(tc.delay)
				if err := faults.Wait(t.Context(), fault.Execute, func(string, string) {}); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(start); got != tc.want {
					t.Errorf("continued after %v, want %v", got, tc.want)
				}
			})
		})
	}
}

func TestAdd(t *testing.T) {
	s := set(t, `{"id":"a","do":"hold"},{"do":"hold"}`)
	if _, err := s.Add([]fault.Rule{{ID: "b", Do: fault.Hold}, {ID: "a", Do: fault.Hold}}); err == nil {
		t.Error("a duplicate id was accepted")
	}
	ids, err := s.Add([]fault.Rule{{Do: fault.Hold}, {ID: "c", Do: fault.Hold}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"fault-3", "c"}, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	var all []string
	for _, state := range s.List() {
		all = append(all, state.ID)
	}
	if diff := cmp.Diff([]string{"a", "fault-2", "fault-3", "c"}, all); diff != "" {
		t.Errorf("all ids (-want +got):\n%s", diff)
	}
}

// FuzzDecode checks that every script that Decode accepts can be added to a set and applied.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"faults":[{"op":"asample","occurrence":10,"count":5,"do":"refuse","status":429,"retryAfterSeconds":2}]}`,
		`{"faults":[{"id":"h","name":"^s0{5}","do":"hold","stage":"reply"},{"do":"pause","seconds":1}]}`, `{"faults":[]}`,
		`{}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := fault.Decode(strings.NewReader(text))
		if err != nil {
			return
		}
		s, err := fault.NewSet(nil, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(rules); err != nil {
			return // two rules have the same id
		}
		s.ForRequest(fault.Call{Op: "asample", Name: "s000001"})
		s.ForOperation(fault.Call{Op: "asample", Name: "s000001"}).Waits()
		if len(s.List()) != len(rules) {
			t.Errorf("of %d rules %d are active", len(rules), len(s.List()))
		}
	})
}
