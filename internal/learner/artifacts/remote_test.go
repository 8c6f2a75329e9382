// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
)

func openObjects(t *testing.T, url string) (*Store, *bucket.Bucket) {
	t.Helper()
	objects, err := bucket.Open(t.Context(), url, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenBucketStore(objects, t.TempDir(), "uid")
	if err != nil {
		t.Fatal(err)
	}
	return s, objects
}

func TestClaimOfObjects(t *testing.T) {
	url := buckettest.Start(t, nil).URL("")
	first, _ := openObjects(t, url)
	second, _ := openObjects(t, url)
	must(t, first.Claim(2, "a"), first.Claim(2, "a"), second.Claim(10, "b"))
	if err := second.Claim(2, "b"); !errors.Is(err, ErrClaimed) {
		t.Errorf("another process claims the attempt: %v, want ErrClaimed", err)
	}
	if highest, err := first.HighestClaim(); highest != 10 || err != nil {
		t.Errorf("the highest claim is %d (%v), want 10", highest, err)
	}
}

// TestRefresh checks that a learner knows the files of its predecessor, whether they were written before or after its
// own claim, and also the state that completed a row.
func TestRefresh(t *testing.T) {
	url := buckettest.Start(t, nil).URL("")
	first, _ := openObjects(t, url)
	second, _ := openObjects(t, url)
	evaluation := Evaluation{Version: rowAt("l1"), Digest: "p", Attempt: 1, Metrics: map[string]float64{"test/x": 1}}
	must(t, first.Claim(1, "a"), first.WriteRow(Row{Version: rowAt("l1")}), first.WriteEvaluation(evaluation),
		first.SetSession("s"), first.SetWorkers([]string{"w"}), second.Claim(2, "b"))
	must(t, first.WriteRow(Row{Version: rowAt("l1"), State: "path"}), first.WriteRow(Row{Version: rowAt("l2")}),
		second.Refresh())
	row, err := second.Row(rowAt("l1"))
	if err != nil || row.State != "path" {
		t.Errorf("the completed row has state %q (%v)", row.State, err)
	}
	if _, err := second.Row(rowAt("l2")); err != nil {
		t.Errorf("the row that was written after the claim is not known: %v", err)
	}
	got, err := second.Evaluation(rowAt("l1"), "p")
	if diff := cmp.Diff(evaluation, got); diff != "" || err != nil {
		t.Errorf("evaluation (-want +got; %v):\n%s", err, diff)
	}
	if second.Session() != "s" || len(second.Workers()) != 1 {
		t.Errorf("session %q and workers %q are the former attempt's", second.Session(), second.Workers())
	}
}

// TestRowsAreWrittenBeforeTheyAreKnown checks that a row that the server has refused is not known to the store.
func TestRowsAreWrittenBeforeTheyAreKnown(t *testing.T) {
	var down atomic.Bool
	s, _ := openObjects(t, buckettest.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				http.Error(w, "", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	}).URL(""))
	must(t, s.Claim(1, "a"))
	down.Store(true)
	if err := s.WriteRow(Row{Version: rowAt("l1")}); err == nil {
		t.Fatal("a row is written while the server refuses it")
	}
	if _, err := s.Row(rowAt("l1")); err == nil {
		t.Error("the row is read")
	}
}

// TestUploadOfMetrics checks that a learner does not overwrite the metrics of a later one that has replaced it.
func TestUploadOfMetrics(t *testing.T) {
	url := buckettest.Start(t, nil).URL("")
	first, objects := openObjects(t, url)
	second, _ := openObjects(t, url)
	must(t, first.Claim(1, "a"), first.WriteRow(Row{Version: rowAt("l1"), Parent: rowAt("l0").Lineage,
		Metrics: map[string]float64{"x": 1}}),
		first.Rebuild(rowAt("l1"), noParent), first.Publish())
	read := func() string {
		data, err := objects.Get(t.Context(), "uid/metrics.jsonl")
		must(t, err)
		return string(data)
	}
	if want := `{"step":0,"x":1}` + "\n"; read() != want {
		t.Errorf("metrics.jsonl is %q, want %q", read(), want)
	}
	must(t, second.Claim(2, "b"), second.WriteRow(Row{Version: rowAt("l2"), Parent: rowAt("l1").Lineage,
		Metrics: map[string]float64{"x": 2}}),
		second.Rebuild(rowAt("l2"), noParent), second.Publish())
	want := read()
	must(t, first.Rebuild(rowAt("l1"), noParent), first.Publish())
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("metrics.jsonl after the first learner continued (-want +got):\n%s", diff)
	}
	local, err := os.ReadFile(filepath.Join(second.files.dir, "metrics.jsonl"))
	must(t, err)
	if diff := cmp.Diff(string(local), want); diff != "" {
		t.Errorf("the original differs from the copy (-copy +original):\n%s", diff)
	}
}
