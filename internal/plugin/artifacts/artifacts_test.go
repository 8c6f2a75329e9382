// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/learner/reader"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// claim is a folder with a run's files, which pods read.
type claim struct {
	dir string
	// asked are the ranges that pods were asked for, and cut the number of bytes of the first pod's log that arrive; 0
	// means all.
	asked [][]delivery.Range
	cut   int
	// add are deliveries with which a log begins, as an attacker could send them.
	add []delivery.Delivery
	// stdout and stderr have the command's output.
	stdout, stderr bytes.Buffer
}

func newClaim(t *testing.T, files map[string]string) *claim {
	t.Helper()
	c := &claim{dir: t.TempDir()}
	for name, content := range files {
		c.write(t, name, content)
	}
	return c
}

func (c *claim) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(c.dir, "uid-1", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// request returns the request to the program in a pod.
func (c *claim) request() reader.Request { return reader.Request{Dir: c.dir, RunUID: "uid-1"} }

// copy copies the files below a path to a folder, through pods that run the learner's program.
func (c *claim) copy(t *testing.T, at, to string) error {
	t.Helper()
	f := newFixture(t, ended, "")
	f.reader.Logs = func(ctx context.Context, _, _ string) (io.ReadCloser, error) {
		pod := f.created[len(f.created)-1]
		args := pod.Spec.Containers[0].Args
		ranges, err := delivery.ParseRanges(strings.TrimPrefix(args[len(args)-1], "--copy="))
		if err != nil {
			return nil, err
		}
		c.asked = append(c.asked, ranges)
		var log bytes.Buffer
		send := func(d delivery.Delivery) error { return delivery.Write(&log, d) }
		for _, d := range c.add {
			if err := send(d); err != nil {
				return nil, err
			}
		}
		if err := reader.CopyFiles(ctx, c.request(), ranges, send); err != nil {
			return nil, err
		}
		if c.cut > 0 && len(c.asked) == 1 {
			log.Truncate(c.cut)
		}
		return io.NopCloser(&log), nil
	}
	env := cli.IO{Stdout: &c.stdout, Stderr: &c.stderr, Now: time.Now}
	files := reader.ListFiles(t.Context(), c.request()).Files
	err := copyFiles(t.Context(), env, f.reader, newRun(), files, at, to)
	f.expectNoPod(t)
	return err
}

// contents returns the files below a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		got[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

var someFiles = map[string]string{
	"metrics.jsonl": "{}\n", "session": "", "tensorboard/run/events.out.tfevents.1": "events",
	"episodes/1.jsonl.gz": strings.Repeat("0123456789", 150_000),
}

func TestCopyBringsAFolderAndThenWhatIsNew(t *testing.T) {
	c, to := newClaim(t, someFiles), filepath.Join(t.TempDir(), "new", "folder")
	if err := c.copy(t, "", to); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(someFiles, contents(t, to)); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	if want := fmt.Sprintf("4 files copied to %s, 1.50 MB; 0 were there already\n", to); c.stdout.String() != want {
		t.Errorf("it prints %q, want %q", c.stdout.String(), want)
	}
	c.write(t, "metrics.jsonl", "{}\n{}\n")
	c.write(t, "rows/1.json", "{}")
	c.asked = nil
	if err := c.copy(t, "", to); err != nil {
		t.Fatal(err)
	}
	want := [][]delivery.Range{{{"metrics.jsonl", "rows/1.json"}}}
	if diff := cmp.Diff(want, c.asked); diff != "" {
		t.Errorf("the second copy asks for (-want +got):\n%s", diff)
	}
	if got := contents(t, to); got["metrics.jsonl"] != "{}\n{}\n" || got["rows/1.json"] != "{}" || len(got) != 5 {
		t.Errorf("the second copy has %d files, and metrics.jsonl is %q", len(got), got["metrics.jsonl"])
	}
	c.asked = nil
	if err := c.copy(t, "", to); err != nil || len(c.asked) > 0 {
		t.Errorf("a third copy starts %d pods: %v", len(c.asked), err)
	}
}

func TestCopyOfAPath(t *testing.T) {
	dir := t.TempDir()
	for at, tc := range map[string]struct{ to, want string }{
		"tensorboard":    {"tb", "tb/run/events.out.tfevents.1"},
		"/tensorboard/":  {"tb2", "tb2/run/events.out.tfevents.1"},
		"metrics.jsonl":  {".", "metrics.jsonl"},
		"./session":      {"other", "other"},
		"episodes":       {"e/", "e/1.jsonl.gz"},
		"metrics.jsonl/": {"made/", "made/metrics.jsonl"},
	} {
		c := newClaim(t, someFiles)
		to := dir + "/" + tc.to
		if err := c.copy(t, at, to); err != nil {
			t.Errorf("%s to %s: %v", at, tc.to, err)
		}
		if _, ok := contents(t, dir)[tc.want]; !ok {
			t.Errorf("%s to %s makes no %s", at, tc.to, tc.want)
		}
	}
	if err := newClaim(t, someFiles).copy(t, "metrics.json", dir); err == nil || !strings.Contains(err.Error(),
		"did you mean metrics.jsonl?") {
		t.Errorf("a file that does not exist: %v", err)
	}
	if err := newClaim(t, nil).copy(t, "", dir); err == nil || !strings.Contains(err.Error(), "has no files yet") {
		t.Errorf("a run without files: %v", err)
	}
}

// TestCopyContinuesWhereALogEnds cuts the log of the first pod in the middle of the second file.
func TestCopyContinuesWhereALogEnds(t *testing.T) {
	files := map[string]string{"a": "1", "b": strings.Repeat("0123456789", 150_000), "c": "3"}
	c, to := newClaim(t, files), t.TempDir()
	c.cut = 2000
	if err := c.copy(t, "", to); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]delivery.Range{{{"a", "c"}}, {{"b", "c"}}}, c.asked); diff != "" {
		t.Errorf("pods are asked for (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(files, contents(t, to)); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	c, to = newClaim(t, files), t.TempDir()
	c.cut = 20 // No part of a file arrives, so that no other pod is tried.
	if err := c.copy(t, "", to); err == nil || len(c.asked) != 1 || len(contents(t, to)) > 0 {
		t.Errorf("a log without a file: %v, %d pods, files %v", err, len(c.asked), contents(t, to))
	}
}

// TestCopyWritesOnlyBelowItsFolder copies names and links with which a writer to the claim or to this machine's folder
// could lead the command elsewhere.
func TestCopyWritesOnlyBelowItsFolder(t *testing.T) {
	outside := t.TempDir()
	to := filepath.Join(t.TempDir(), "copy")
	for _, err := range []error{
		os.MkdirAll(to, 0o755), os.Symlink(outside, filepath.Join(to, "rows")),
		os.WriteFile(filepath.Join(outside, "file"), []byte("mine"), 0o600),
		os.Symlink(filepath.Join(outside, "file"), filepath.Join(to, "session")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := newClaim(t, map[string]string{"rows/1.json": "{}", "session": "theirs", ".ssh/authorized_keys": "theirs",
		"a/.profile": "theirs"})
	hostile := []string{"../up", "/etc/passwd", "a/../../up", "..", "", ".", "a//b", "rows/../../up"}
	var files []delivery.File
	for _, name := range hostile {
		file := delivery.File{Name: name, Size: 6, Modified: time.Now()}
		files = append(files, file)
		c.add = append(c.add, delivery.Delivery{More: true, Part: &delivery.Part{File: file, Data: []byte("theirs")}})
	}
	err := c.copy(t, "", to)
	for _, want := range []string{"writing rows/1.json", "writing .ssh/authorized_keys", "writing a/.profile"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want it to have %q", err, want)
		}
	}
	d, err := openDestination(files, "", to)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	for _, found := range c.add {
		if err := d.take(found.Part); err != nil {
			t.Error(err)
		}
	}
	if d.whole() > 0 {
		t.Errorf("files are written: %v", d.present)
	}
	if diff := cmp.Diff(map[string]string{"file": "mine"}, contents(t, outside)); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
	if entries, err := os.ReadDir(filepath.Dir(to)); err != nil || len(entries) != 1 {
		t.Errorf("beside the folder are %v, %v", entries, err)
	}
	if info, err := os.Lstat(filepath.Join(to, "session")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link is not replaced by the file: %v, %v", info, err)
	}
}

// TestTakeWritesNoPartOfAFile takes parts that do not follow one another.
func TestTakeWritesNoPartOfAFile(t *testing.T) {
	to := t.TempDir()
	file := delivery.File{Name: "a", Size: 4}
	d, err := openDestination([]delivery.File{file, {Name: "b", Size: 1}}, "", to)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []delivery.Part{{File: file, Data: []byte("ab")}, {File: file, Offset: 3, Data: []byte("d")},
		{File: delivery.File{Name: "b", Size: 1}, Data: []byte("b")}, {File: file, Data: []byte("ab")}} {
		if err := d.take(&part); err != nil {
			t.Error(err)
		}
	}
	d.close()
	if diff := cmp.Diff(map[string]string{"b": "b"}, contents(t, to)); diff != "" {
		t.Errorf("the folder (-want +got):\n%s", diff)
	}
	if err := d.problems(); err == nil || !strings.Contains(err.Error(), "writing a: a part of it is missing") {
		t.Errorf("the problem is %v", err)
	}
}

func TestRangesAreFew(t *testing.T) {
	var files []delivery.File
	missing := map[string]bool{}
	for i := range 1000 {
		name := fmt.Sprintf("%04d", i)
		files = append(files, delivery.File{Name: name})
		missing[name] = i%3 == 0 || i > 900
	}
	got := rangesOf(files, missing)
	if len(got) != mostRanges || got[len(got)-1][1] != "0999" {
		t.Fatalf("there are %d ranges: %v", len(got), got)
	}
	for name, is := range missing {
		found := false
		for _, r := range got {
			found = found || r[0] <= name && name <= r[1]
		}
		if is && !found {
			t.Errorf("%s is in no range", name)
		}
	}
}

func TestList(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	files := []delivery.File{
		{Name: "episodes/1.jsonl.gz", Size: 1500, Modified: at},
		{Name: "episodes/2.jsonl.gz", Size: 1000, Modified: at.Add(time.Hour)},
		{Name: "metrics.jsonl", Size: 3, Modified: at},
		{Name: "tensorboard/a/e\x1b[1m", Size: 7, Modified: at},
	}
	list := func(f listFlags, format output.Format, at string) string {
		var out bytes.Buffer
		f.format = &format
		found, err := below("arithmetic", files, at)
		if err == nil {
			err = f.print(cli.IO{Stdout: &out}, found, at)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := `NAME            SIZE    FILES   MODIFIED
episodes/       2.50k   2       2026-11-27T13:00:00Z
metrics.jsonl   3               2026-11-27T12:00:00Z
tensorboard/    7       1       2026-11-27T12:00:00Z
`
	if diff := cmp.Diff(want, list(listFlags{}, output.Table, "")); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	want = "NAME\tSIZE\tFILES\tMODIFIED\ntensorboard/a/e\ufffd[1m\t7\t\t2026-11-27T12:00:00Z\n"
	if diff := cmp.Diff(want, list(listFlags{}, output.Plain, "tensorboard/a")); diff != "" {
		t.Errorf("a folder (-want +got):\n%s", diff)
	}
	if got := list(listFlags{recursive: true}, output.Plain, ""); strings.Count(got, "\n") != 5 {
		t.Errorf("all files are %s", got)
	}
	if got := list(listFlags{}, output.Plain, "metrics.jsonl"); !strings.Contains(got, "\nmetrics.jsonl\t3\t") {
		t.Errorf("one file is %s", got)
	}
}

func TestCopyGivesPodsMoreTime(t *testing.T) {
	f := newFixture(t, ended, delivered(t, delivery.Delivery{}))
	f.reader.deadline = copyDeadline
	if _, err := f.reader.Ask(t.Context(), newRun(), nil); err != nil {
		t.Fatal(err)
	}
	pod := f.created[0]
	if got := *pod.Spec.ActiveDeadlineSeconds; got != 3600 || pod.Labels[v1alpha1.LabelRole] != v1alpha1.RoleReader {
		t.Errorf("the pod may run for %d seconds", got)
	}
}
