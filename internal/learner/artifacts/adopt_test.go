// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
)

// stores returns functions that open the folders of runs in the same place: a volume or a URL.
func stores(t *testing.T) map[string]func(t *testing.T, uid string) *Store {
	dir, url := t.TempDir(), buckettest.Start(t, nil).URL("prefix")
	return map[string]func(t *testing.T, uid string) *Store{
		"volume": func(t *testing.T, uid string) *Store {
			t.Helper()
			s, err := OpenStore(dir, uid)
			must(t, err)
			return s
		},
		"URL": func(t *testing.T, uid string) *Store {
			t.Helper()
			objects, err := bucket.Open(t.Context(), url, os.Getenv)
			must(t, err)
			s, err := OpenBucketStore(objects, t.TempDir(), uid)
			must(t, err)
			return s
		},
	}
}

func TestAdopt(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			former := open(t, "former")
			must(t, former.Claim(2, "pod"), former.WriteSpec(1, []byte("first")), former.WriteSpec(2, []byte("second")),
				former.WriteRow(row("a1", "a0")), former.WriteRow(row("a2", "a1")),
				former.WriteEvaluation(Evaluation{Version: rowAt("a1"), Digest: "plan", Metrics: map[string]float64{"x": 1}}))

			own := open(t, "own")
			changed := row("a1", "a0")
			changed.Attempt = 7
			must(t, own.Claim(1, "new pod"), own.WriteRow(changed))
			for range 2 { // as the next attempt does
				spec, err := own.Adopt("former", "own")
				if err != nil || string(spec) != "second" {
					t.Fatalf("Adopt = %q, %v, want the newest run file", spec, err)
				}
			}
			if got, err := own.Row(rowAt("a1")); err != nil || got.Attempt != 7 {
				t.Errorf("the row of attempt %d replaced the run's own row (%v)", got.Attempt, err)
			}
			if got, err := own.Row(rowAt("a2")); err != nil || got.Version != rowAt("a2") {
				t.Errorf("row 2 is %v (%v)", got.Version, err)
			}
			if got := own.Evaluations(); len(got) != 1 || got[0].Digest != "plan" {
				t.Errorf("the evaluations are %v, want the evaluation of the former run", got)
			}
			if highest, err := former.HighestClaim(); err != nil || highest != adoptingAttempt {
				t.Errorf("the highest claim of the former run is %d (%v), want %d", highest, err, adoptingAttempt)
			}

			third := open(t, "third")
			_, err := third.Adopt("former", "third")
			var adopted *AdoptedError
			if !errors.As(err, &adopted) || adopted.By != "own" {
				t.Errorf("another run adopts the former one, too: %v", err)
			}
			if spec, err := third.Adopt("unknown", "third"); spec != nil || err != nil {
				t.Errorf("Adopt of an unknown run = %q, %v, want nothing", spec, err)
			}
		})
	}
}

// TestAdoptSpending takes over the spending that the newest attempt of a former run has recorded, until an attempt of
// the run itself records its own.
func TestAdoptSpending(t *testing.T) {
	record := func(seconds float64) Spending { return Spending{Seconds: seconds} }
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			former := open(t, "former")
			must(t, former.Claim(10, "pod"), former.WriteSpending(9, record(9)), former.WriteSpending(10, record(10)))
			for attempt, want := range []float64{10, 10, 2} {
				number := int32(attempt + 1)
				own := open(t, "own")
				must(t, own.Claim(number, "new pod"))
				_, err := own.Adopt("former", "own")
				must(t, err, own.Refresh())
				if got, ok := own.Spending(number); !ok || got.Seconds != want {
					t.Errorf("attempt %d begins with the record %v (%t), want %v", number, got.Seconds, ok, want)
				}
				if number == 2 { // the first attempt died before it recorded anything
					must(t, own.WriteSpending(number, record(2)))
				}
			}
		})
	}
}

// TestAdoptAfterTornClaim adopts a run after an adoption that died between creating its claim and writing it.
func TestAdoptAfterTornClaim(t *testing.T) {
	dir := t.TempDir()
	former, err := OpenStore(dir, "former")
	must(t, err, former.Claim(1, "pod"))
	must(t, os.WriteFile(filepath.Join(dir, "former", claimName(adoptingAttempt)), nil, fileMode))
	own, err := OpenStore(dir, "own")
	must(t, err)
	if _, err := own.Adopt("former", "own"); err != nil {
		t.Errorf("Adopt fails with %v", err)
	}
}

func TestRegister(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			first, barren, last := open(t, "first"), open(t, "barren"), open(t, "last")
			register := func(s *Store, name string, began int64, want *Namesake) {
				t.Helper()
				got, err := s.Register("namespace", name, began)
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("Register fails with %v; earlier run (-want +got):\n%s", err, diff)
				}
			}
			register(first, "run", 10, nil)
			must(t, first.WriteSpec(3, []byte("spec")), first.WriteRow(row("a1", "a0")), first.WriteRow(row("a12", "a11")))
			earlier := &Namesake{UID: "first", Step: 12, Spec: []byte("spec")}
			register(barren, "run", 20, earlier)
			register(first, "run", 30, nil) // A run is not an earlier run of itself.
			register(last, "run", 40, earlier)
			register(last, "run", 50, earlier)
			register(last, "another", 50, nil)
		})
	}
}
