// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/spending"
)

func spent(tokens int64) Spending {
	return Spending{Own: spending.Usage{TrainedTokens: tokens}}
}

// TestSpendingWhileTheStoreHangs writes a record while an earlier write does not return.
func TestSpendingWhileTheStoreHangs(t *testing.T) {
	for name, end := range map[string]func(j *Journal, cancel func()){
		"the learner gives up": func(j *Journal, _ func()) { giveUp(j) },
		"the context ends":     func(_ *Journal, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			j, problems := openJournal(t, t.TempDir(), 1)
			j.config.Slow = time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			j.spending.mu.Lock()
			defer j.spending.mu.Unlock()
			end(j, cancel)
			result := make(chan error, 1)
			go func() { result <- j.WriteSpending(ctx, spent(1)) }()
			select {
			case err := <-result:
				if !errors.Is(err, errSlow) && !errors.Is(err, context.Canceled) {
					t.Errorf("WriteSpending = %v, want %v or %v", err, errSlow, context.Canceled)
				}
			case <-time.After(10 * time.Minute):
				t.Fatal("WriteSpending waits for a store that hangs")
			}
			if !slices.Contains(*problems, errSlow.Error()) {
				t.Errorf("problems are %q, want %q among them", *problems, errSlow)
			}
		})
	}
}

// TestLateSpending finishes an old write, which its caller no longer waits for, after a newer one.
func TestLateSpending(t *testing.T) {
	j, _ := openJournal(t, t.TempDir(), 1)
	late := j.writeSpending(spent(1))
	if err := j.WriteSpending(t.Context(), spent(2)); err != nil {
		t.Fatal(err)
	}
	if err := late(); err != nil {
		t.Errorf("the late write = %v, want no error", err)
	}
	if got, ok := j.store.Spending(2); !ok || got.Own != spent(2).Own {
		t.Errorf("the record is %+v (%t), want the newer one", got, ok)
	}
}

// TestSpendingOfAnEarlierVersionIsPriced reads a record without a cost, as earlier versions of the operator wrote it.
// Its tokens are priced by the run file of its attempt, also in a run that continues a deleted one.
func TestSpendingOfAnEarlierVersionIsPriced(t *testing.T) {
	const file = `{"prices": {"policy": {"prompt": 1, "sampled": 2, "trained": 3}}, "fixed": {}}`
	used := spending.Usage{TrainedTokens: 2e6, UnconfirmedTokens: 7}
	byFile := &spending.Priced{Usage: spending.Usage{TrainedTokens: 2e6}, USD: 6}
	known := &spending.Priced{Usage: spending.Usage{TrainedTokens: 1e6}, USD: 9}
	cases := map[string]struct {
		file   string
		priced *spending.Priced
		want   *spending.Priced
	}{
		"with prices":         {file, nil, byFile},
		"with a cost":         {file, known, known},
		"without prices":      {`{"fixed": {}}`, nil, nil},
		"with another format": {`{"prices": 1}`, nil, nil},
		"without a run file":  {"", nil, nil},
	}
	for name, tc := range cases {
		for place, open := range stores(t) {
			t.Run(name+" "+place, func(t *testing.T) {
				former := open(t, "former")
				must(t, former.Claim(1, "pod"), former.WriteSpending(1, Spending{Shown: used, Priced: tc.priced}))
				if tc.file != "" {
					must(t, former.WriteSpec(1, []byte(tc.file)))
				}
				next, own := open(t, "former"), open(t, "own")
				must(t, next.Claim(2, "next pod"), own.Claim(1, "new pod"))
				_, err := own.Adopt("former", "own")
				must(t, err, own.Refresh())
				for what, s := range map[string]*Store{"the next attempt": next, "a run that continues it": own} {
					attempt := int32(2)
					if s == own {
						attempt = 1
					}
					got, ok := s.Spending(attempt)
					if diff := cmp.Diff(Spending{Shown: used, Priced: tc.want}, got); diff != "" || !ok {
						t.Errorf("%s: record is there %t (-want +got):\n%s", what, ok, diff)
					}
				}
			})
		}
	}
}
