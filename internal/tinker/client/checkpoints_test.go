// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// maxPasses is the number of times that a changing listing is read.
const maxPasses = maxListings

// checkpointPage replies with a page of the checkpoints of these names.
func checkpointPage(total int, names ...string) scriptedReply {
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(
			`{"checkpoint_id":"weights/%[1]s","checkpoint_type":"training","time":"2026-08-01T11:59:00Z","tinker_path":"tinker://r/weights/%[1]s"}`, name,
		))
	}
	return ok(fmt.Sprintf(`{"checkpoints":[%s],"cursor":{"offset":0,"limit":2,"total_count":%d}}`,
		strings.Join(items, ","), total))
}

func TestCheckpoints(t *testing.T) {
	cases := map[string]struct {
		pages   []scriptedReply
		want    []string
		queries []string
		fails   tinker.Category
	}{
		"One page is all": {
			pages: []scriptedReply{checkpointPage(2, "a", "b")}, want: []string{"a", "b"},
			queries: []string{"limit=1000&offset=0"},
		},
		"Pages are read until all are seen": {
			pages: []scriptedReply{checkpointPage(3, "a", "b"), checkpointPage(3, "b", "c")}, want: []string{"a", "b", "c"},
			queries: []string{"limit=1000&offset=0", "limit=1000&offset=1"},
		},
		"A listing that shrinks between pages is read again, each entry once": {
			pages: []scriptedReply{checkpointPage(4, "a", "b"), checkpointPage(3, "c", "d"), checkpointPage(3, "b", "c"),
				checkpointPage(3, "c", "d")},
			want:    []string{"a", "b", "c", "d"},
			queries: []string{"limit=1000&offset=0", "limit=1000&offset=1", "limit=1000&offset=0", "limit=1000&offset=1"},
		},
		"A listing in which one entry is removed and another added is read again": {
			pages: []scriptedReply{
				checkpointPage(4, "a", "b"), checkpointPage(4, "c", "d", "e"), // a was removed, and e was added
				checkpointPage(4, "b", "c"), checkpointPage(4, "c", "d", "e"),
			},
			want:    []string{"a", "b", "c", "d", "e"},
			queries: []string{"limit=1000&offset=0", "limit=1000&offset=1", "limit=1000&offset=0", "limit=1000&offset=1"},
		},
		"A listing that counts wrongly ends with the last entry": {
			pages: []scriptedReply{checkpointPage(9, "a", "b"), checkpointPage(9, "b")}, want: []string{"a", "b"},
			queries: []string{"limit=1000&offset=0", "limit=1000&offset=1"},
		},
		"An empty page ends a listing that counts wrongly": {
			pages: []scriptedReply{checkpointPage(9, "a"), checkpointPage(9)}, want: []string{"a"},
			queries: []string{"limit=1000&offset=0", "limit=1000&offset=0"},
		},
		"A listing without entries": {pages: []scriptedReply{checkpointPage(0)}, queries: []string{"limit=1000&offset=0"}},
		"An error ends the list": {
			pages: []scriptedReply{checkpointPage(3, "a", "b"), status(403)}, want: []string{"a", "b"},
			fails:   tinker.CategoryUnauthorized,
			queries: []string{"limit=1000&offset=0", "limit=1000&offset=1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"checkpoints": tc.pages})
				var got []string
				var failed error
				for checkpoint, err := range w.Checkpoints(ctx) {
					if err != nil {
						failed = err
						continue
					}
					got = append(got, strings.TrimPrefix(checkpoint.TinkerPath, "tinker://r/weights/"))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" || CategoryFrom(failed) != tc.fails {
					t.Errorf("Checkpoints: %v, (-want +got):\n%s", failed, diff)
				}
				var queries []string
				for _, e := range w.requests("checkpoints") {
					queries = append(queries, e.query)
				}
				if diff := cmp.Diff(tc.queries, queries); diff != "" {
					t.Errorf("queries (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestListingThatKeepsChanging(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		var pages []scriptedReply
		for i := range maxPasses {
			pages = append(pages, checkpointPage(4, "a", "b"), checkpointPage(3, fmt.Sprint("x", i)))
		}
		w := newTestClient(t, map[string][]scriptedReply{"checkpoints": append(pages, status(404))})
		n := 0
		for _, err := range w.Checkpoints(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 2+maxPasses {
			t.Errorf("%d entries", n)
		}
	})
}

func TestListingBreak(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{"checkpoints": {checkpointPage(4, "a", "b")}})
		for checkpoint := range w.Checkpoints(ctx) {
			if checkpoint.TinkerPath != "tinker://r/weights/a" {
				t.Errorf("checkpoint %v", checkpoint)
			}
			break
		}
		if n := len(w.requests("checkpoints")); n != 1 {
			t.Errorf("%d pages were fetched for one checkpoint, want 1", n)
		}
	})
}

func TestTrainingRuns(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		const run = `{"training_run_id":"s:train:0","base_model":"b","model_owner":"local","is_lora":true,"corrupted":false,"lora_rank":32,` +
			`"last_request_time":"2026-08-01T12:00:00Z","last_checkpoint":null,"last_sampler_checkpoint":null,"user_metadata":{"k":"v","n":1,"z":null}}`
		w := newTestClient(t, map[string][]scriptedReply{
			"training_runs": {ok(`{"training_runs":[` + run +
				`],"cursor":{"offset":0,"limit":100,"total_count":1}}`)},
			"training_runs/s:train:0": {ok(run)},
			"training_runs/s:train:0/checkpoints": {ok(
				`{"checkpoints":[{"checkpoint_id":"weights/n","expires_at":"2026-08-01T12:00:00Z"}],"cursor":null}`)},
		})
		want := tinker.TrainingRun{
			TrainingRunID: "s:train:0", BaseModel: "b", ModelOwner: "local", IsLora: true, LoraRank: new(32),
			LastRequestTime: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), UserMetadata: tinker.Metadata{"k": "v", "n": "1",
				"z": "null"},
		}
		for got, err := range w.TrainingRuns(ctx) {
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("TrainingRuns: %v, (-want +got):\n%s", err, diff)
			}
		}
		got, err := w.TrainingRun(ctx, "s:train:0")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("TrainingRun: %v, (-want +got):\n%s", err, diff)
		}
		checkpoints, err := w.RunCheckpoints(ctx, "s:train:0")
		if err != nil || len(checkpoints) != 1 || !checkpoints[0].ExpiresAt.Equal(want.LastRequestTime) {
			t.Errorf("RunCheckpoints = %v, %v", checkpoints, err)
		}
		if got := w.requests("training_runs")[0].query; got != "access_scope=owned&limit=100&offset=0" {
			t.Errorf("query %q", got)
		}
	})
}

func TestTTL(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		const path = "training_runs/s:train:0/checkpoints/sampler_weights/n.1/ttl"
		w := newTestClient(t, map[string][]scriptedReply{path: {{status: http.StatusNoContent}, ok("null")}})
		if err := w.SetTTL(ctx, "tinker://s:train:0/sampler_weights/n.1", new(int64(86400))); err != nil {
			t.Error(err)
		}
		if err := w.SetTTL(ctx, "tinker://s:train:0/sampler_weights/n.1", nil); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{`{"ttl_seconds":86400}`, `{"ttl_seconds":null}`}, w.bodies(path)); diff != "" {
			t.Errorf("bodies (-want +got):\n%s", diff)
		}
		if got := w.requests(path)[0].method; got != http.MethodPut {
			t.Errorf("method %s", got)
		}
		if err := w.SetTTL(ctx, "tinker://s:train:0/n", nil); CategoryFrom(err) != tinker.CategoryUser || MayHaveRun(err) {
			t.Errorf("an invalid path: %v", err)
		}
	})
}

func TestDeleteCheckpoint(t *testing.T) {
	cases := map[string]struct {
		replies []scriptedReply
		fails   tinker.Category
	}{
		"204 is a success":                       {replies: []scriptedReply{{status: http.StatusNoContent}}},
		"404 is an error":                        {replies: []scriptedReply{status(404)}, fails: tinker.CategoryNotFound},
		"404 after a lost response is a success": {replies: []scriptedReply{{lost: true}, status(404)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				const path = "training_runs/r/checkpoints/weights/n"
				w := newTestClient(t, map[string][]scriptedReply{path: tc.replies})
				if err := w.DeleteCheckpoint(ctx, "tinker://r/weights/n"); CategoryFrom(err) != tc.fails {
					t.Errorf("DeleteCheckpoint = %v", err)
				}
				if e := w.requests(path)[0]; e.method != http.MethodDelete || e.body != "" {
					t.Errorf("request %+v", e)
				}
			})
		})
	}
}

func TestDeleteInvalidPath(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, nil)
		if err := w.DeleteCheckpoint(ctx, "weights/n"); CategoryFrom(err) != tinker.CategoryUser {
			t.Errorf("DeleteCheckpoint = %v", err)
		}
	})
}
