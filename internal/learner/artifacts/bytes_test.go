// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// transferred returns how many bytes this process has read and written by system calls.
func transferred(t testing.TB) (read, written int64) {
	t.Helper()
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip("the kernel does not count bytes: ", err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "rchar":
			read = n
		case "wchar":
			written = n
		}
	}
	return read, written
}

// countedObjects keeps objects in memory, and counts the bytes that are put and got.
type countedObjects struct {
	mu       sync.Mutex
	objects  map[string][]byte
	put, got int64
}

func (o *countedObjects) Create(ctx context.Context, name string, data []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.objects[name]; ok {
		return fs.ErrExist
	}
	o.objects[name] = data
	return nil
}

func (o *countedObjects) Put(_ context.Context, name string, data []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.objects[name] = bytes.Clone(data)
	o.put += int64(len(data))
	return nil
}

func (o *countedObjects) Get(_ context.Context, name string) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	data, ok := o.objects[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	o.got += int64(len(data))
	return data, nil
}

func (o *countedObjects) List(_ context.Context, prefix string) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var names []string
	for name := range o.objects {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (o *countedObjects) Check(context.Context, string) error { return nil }

// figures returns 60 metrics, as many as a run with one environment has.
func figures(step int) map[string]float64 {
	values := map[string]float64{}
	for m := range 60 {
		values[fmt.Sprintf("env/all/metric_number_%d", m)] = float64(m*step) / 7
	}
	return values
}

// appendSteps appends count steps that follow the step after, and an evaluation of every tenth step.
func appendSteps(t testing.TB, s *Store, after, count int) {
	t.Helper()
	for step := after + 1; step <= after+count; step++ {
		r := row(fmt.Sprintf("a%d", step), fmt.Sprintf("a%d", step-1))
		r.Metrics = figures(step)
		if err := s.AppendStep(r); err != nil {
			t.Fatal(err)
		}
		if step%10 == 0 {
			e := Evaluation{Version: r.Version, Digest: "p", Metrics: map[string]float64{"test/x": float64(step)}}
			if err := s.AppendEvaluation(e); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAppendsCostTheSame checks that steps and evaluations late in a run read and write as few bytes as early ones.
func TestAppendsCostTheSame(t *testing.T) {
	s := openStore(t, t.TempDir())
	must(t, s.Rebuild(rowAt("a0"), noParent))
	cost := func(after int) (read, written int64) {
		r, w := transferred(t)
		appendSteps(t, s, after, 50)
		read, written = transferred(t)
		return read - r, written - w
	}
	earlyRead, earlyWritten := cost(0)
	appendSteps(t, s, 50, 250)
	lateRead, lateWritten := cost(300)
	if lateRead > earlyRead+10_000 || float64(lateWritten) > 1.1*float64(earlyWritten) {
		t.Errorf("50 steps after 300 read %d bytes and write %d, and the first 50 %d and %d", lateRead, lateWritten,
			earlyRead, earlyWritten)
	}
}

// TestRebuildReadsTheEnd checks that a process that continues the files of another one reads only their ends, and that
// the process that has written them reads almost nothing.
func TestRebuildReadsTheEnd(t *testing.T) {
	const steps = 400
	dir := t.TempDir()
	s := openStore(t, dir)
	must(t, s.Rebuild(rowAt("a0"), noParent))
	appendSteps(t, s, 0, steps)
	newest := rowAt(fmt.Sprintf("a%d", steps))
	size := int64(len(read(t, dir, rowsName)) + len(read(t, dir, metricsName)))
	cost := func(s *Store) int64 {
		before, _ := transferred(t)
		must(t, s.Rebuild(newest, noParent))
		after, _ := transferred(t)
		return after - before
	}
	if got := cost(s); got > 10_000 {
		t.Errorf("the process that wrote the files reads %d bytes", got)
	}
	// The kernel copies the files, which counts as reading. Besides that, only blocks at the ends of the files are read.
	if got := cost(openStore(t, dir)) - size; got > 4*backwardBlock {
		t.Errorf("another process reads %d bytes beside copying %d", got, size)
	}
}

// TestUploadsAreBounded checks that an upload after a few steps is small, however many steps precede them, that the
// objects of a file add up to the file, and that a later attempt continues them.
func TestUploadsAreBounded(t *testing.T) {
	const steps = 600
	objects := &countedObjects{objects: map[string][]byte{}}
	s, err := OpenBucketStore(objects, t.TempDir(), "uid")
	must(t, err, s.Claim(1, "a"), s.Rebuild(rowAt("a0"), noParent))
	appendSteps(t, s, 0, steps)
	newest := rowAt(fmt.Sprintf("a%d", steps))
	must(t, s.Rebuild(newest, noParent))
	before := objects.put
	appendSteps(t, s, steps, 5)
	must(t, s.Rebuild(rowAt(fmt.Sprintf("a%d", steps+5)), noParent))
	lineBytes := int64(len(content(t, s, metricsName))+len(content(t, s, rowsName))) / steps
	if got := objects.put - before; got > 2*chunkLines*lineBytes {
		t.Errorf("5 steps after %d upload %d bytes, %d lines", steps, got, got/lineBytes)
	}
	checkObjects(t, objects, s)

	// Another attempt returns to an earlier version, whose last line is within an object or at the end of one.
	for i, step := range []int{500, 3 * chunkLines} {
		next, err := OpenBucketStore(objects, t.TempDir(), "uid")
		must(t, err, next.Claim(int32(i+2), "b"))
		before, got := objects.put, objects.got
		must(t, next.Rebuild(rowAt(fmt.Sprintf("a%d", step)), noParent))
		if put := objects.put - before; put > 2*chunkLines*lineBytes || objects.got != got {
			t.Errorf("the return to step %d uploads %d lines and downloads %d", step, put/lineBytes,
				(objects.got-got)/lineBytes)
		}
		if got := strings.Count(content(t, next, metricsName), "\n"); got != step {
			t.Errorf("metrics.jsonl has %d lines, want %d", got, step)
		}
		checkObjects(t, objects, next)
	}
}

func content(t *testing.T, s *Store, name string) string {
	t.Helper()
	return read(t, filepath.Dir(s.files.dir), name)
}

// checkObjects checks that the objects of each file add up to the file.
func checkObjects(t *testing.T, objects *countedObjects, s *Store) {
	t.Helper()
	for _, file := range s.lines.all() {
		names, err := s.files.remote.chunkNames(file.name)
		must(t, err)
		var got strings.Builder
		for _, name := range names {
			got.Write(objects.objects[s.files.remote.name(name)])
		}
		if got.String() != content(t, s, file.name) {
			t.Errorf("the objects of %s have %d lines, want the file with %d", file.name, strings.Count(got.String(), "\n"),
				strings.Count(content(t, s, file.name), "\n"))
		}
	}
}

// BenchmarkBytes counts the bytes of 10,000 steps with 100 evaluations, without the files of single rows: in a folder,
// and at a URL to which additions are uploaded after each step.
func BenchmarkBytes(b *testing.B) {
	const steps, every = 10000, 100
	for name, remote := range map[string]bool{"folder": false, "url": true} {
		b.Run(name, func(b *testing.B) {
			objects := &countedObjects{objects: map[string][]byte{}}
			s, err := OpenStore(b.TempDir(), "uid")
			if remote {
				s, err = OpenBucketStore(objects, b.TempDir(), "uid")
			}
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := s.Rebuild(rowAt("a0"), noParent); err != nil {
					b.Fatal(err)
				}
				read, written := transferred(b)
				for step := 1; step <= steps; step++ {
					r := row(fmt.Sprintf("a%d", step), fmt.Sprintf("a%d", step-1))
					r.Metrics = figures(step)
					if remote {
						s.files.remote.upload.Lock()
						s.files.remote.uploaded = s.files.remote.uploaded.Add(-uploadPeriod)
						s.files.remote.upload.Unlock()
					}
					if err := s.AppendStep(r); err != nil {
						b.Fatal(err)
					}
					if step%every == 0 {
						e := Evaluation{Version: r.Version, Digest: "p", Metrics: map[string]float64{"test/x": float64(step)}}
						if err := s.AppendEvaluation(e); err != nil {
							b.Fatal(err)
						}
					}
				}
				r, w := transferred(b)
				b.ReportMetric(float64(r-read)/1e6, "MB-read")
				b.ReportMetric(float64(w-written)/1e6, "MB-written")
				b.ReportMetric(float64(objects.put)/1e6, "MB-uploaded")
			}
		})
	}
}
