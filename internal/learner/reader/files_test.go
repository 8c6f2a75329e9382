// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package reader_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
	"github.com/tinker-operator/tinker-operator/internal/learner/reader"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// runFiles are the files of a run. One of them has several parts.
var runFiles = map[string]string{
	"metrics.jsonl":       "{\"step\":0}\n",
	"session":             "",
	"episodes/1.jsonl.gz": string(bytes.Repeat([]byte("0123456789"), 250_000)),
	"rows/a b.json":       "{}",
}

// names returns the listed names.
func names(t *testing.T, r reader.Request) []string {
	t.Helper()
	found := reader.ListFiles(t.Context(), r)
	if found.Problem != "" {
		t.Fatal(found.Problem)
	}
	got := []string{}
	for _, file := range found.Files {
		got = append(got, fmt.Sprintf("%s %d", file.Name, file.Size))
		if file.Modified.IsZero() {
			t.Errorf("%s has no time", file.Name)
		}
	}
	return got
}

// copied returns the copied contents of ranges.
func copied(t *testing.T, r reader.Request, ranges ...delivery.Range) (map[string]string, string) {
	t.Helper()
	got, problem, over := map[string]string{}, "", false
	err := reader.CopyFiles(t.Context(), r, ranges, func(d delivery.Delivery) error {
		if over {
			t.Error("a delivery follows the last one")
		}
		over, problem = !d.More, d.Problem
		if p := d.Part; p != nil {
			if int64(len(got[p.Name])) != p.Offset || len(p.Data) > 1<<20 {
				t.Errorf("%s has %d bytes, and %d follow from %d on", p.Name, len(got[p.Name]), len(p.Data), p.Offset)
			}
			got[p.Name] += string(p.Data)
		}
		return nil
	})
	if err != nil || !over {
		t.Fatalf("copying ends with %v, over: %t", err, over)
	}
	return got, problem
}

func checkFiles(t *testing.T, r reader.Request) {
	t.Helper()
	r.RunUID = "uid"
	want := []string{"episodes/1.jsonl.gz 2500000", "metrics.jsonl 11", "rows/a b.json 2", "session 0"}
	if diff := cmp.Diff(want, names(t, r)); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
	all, problem := copied(t, r, delivery.Range{"a", "z"})
	if diff := cmp.Diff(runFiles, all); diff != "" || problem != "" {
		t.Errorf("all files, %s (-want +got):\n%s", problem, diff)
	}
	some, _ := copied(t, r, delivery.Range{"metrics.jsonl", "rows/a b.json"}, delivery.Range{"x", "y"})
	if diff := cmp.Diff(map[string]string{"metrics.jsonl": runFiles["metrics.jsonl"], "rows/a b.json": "{}"},
		some); diff != "" {
		t.Errorf("files of ranges (-want +got):\n%s", diff)
	}
	r.RunUID = "other"
	if got := names(t, r); len(got) > 0 {
		t.Errorf("a run without files has %v", got)
	}
}

// folderOf writes the files of the run below a new folder.
func folderOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range runFiles {
		path := filepath.Join(dir, "uid", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFilesOfAFolder(t *testing.T) {
	dir := folderOf(t)
	checkFiles(t, reader.Request{Dir: dir})
	checkFiles(t, reader.Request{Dir: "/does/not/exist", URL: "file://" + dir})
}

func TestFilesOfABucket(t *testing.T) {
	address := buckettest.Start(t, nil).URL("team")
	objects, err := bucket.Open(t.Context(), address, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() })
	for name, content := range runFiles {
		if err := objects.Put(t.Context(), "uid/"+name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	checkFiles(t, reader.Request{URL: address})
}

// TestFilesLeaveTheFolderByNoLink reads a folder with a file that is not finished, and with links that another pod
// that mounts the claim could make.
func TestFilesLeaveTheFolderByNoLink(t *testing.T) {
	dir, secret := folderOf(t), filepath.Join(t.TempDir(), "token")
	run := filepath.Join(dir, "uid")
	for _, err := range []error{
		os.WriteFile(secret, []byte("secret"), 0o600), os.Symlink(secret, filepath.Join(run, "link")),
		os.Symlink(filepath.Dir(secret), filepath.Join(run, "folder")),
		os.Symlink(filepath.Dir(secret), filepath.Join(dir, "escaped")),
		os.WriteFile(filepath.Join(run, ".a-1.tmp"), nil, 0o600),
		os.WriteFile(filepath.Join(run, "\xff"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	checkFiles(t, reader.Request{Dir: dir})
	if got := reader.ListFiles(t.Context(), reader.Request{Dir: dir, RunUID: "escaped"}); !strings.Contains(got.Problem,
		"escapes") {
		t.Errorf("the folder of a run that is a link: got %+v, want nothing", got)
	}
}

func TestFilesReportWhatAPersonCanRepair(t *testing.T) {
	for want, r := range map[string]reader.Request{
		"no such file":          {Dir: "/does/not/exist"},
		"parsing artifacts.url": {URL: "s3://%zz"},
		"opening artifacts.url": {URL: "gopher://x"},
	} {
		if got := reader.ListFiles(t.Context(), r); !strings.Contains(got.Problem, want) {
			t.Errorf("%+v: the problem is %q, want %q", r, got.Problem, want)
		}
		if _, got := copied(t, r, delivery.Range{"a", "z"}); !strings.Contains(got, want) {
			t.Errorf("copying by %+v: the problem is %q, want %q", r, got, want)
		}
	}
}
