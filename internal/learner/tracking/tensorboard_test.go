// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/tfevents"
)

const eventFolder = "tensorboard/fast"

// openEvents returns a sink of an attempt, which has claimed the run in a store.
func openEvents(t *testing.T, s *artifacts.Store, attempt int32) *tensorBoard {
	t.Helper()
	if err := s.Claim(attempt, "pod"); err != nil {
		t.Fatal(err)
	}
	files := s.EventFiles(attempt)
	sink := newTensorBoard(contracttracking.TensorBoard{RunName: "fast"}, Run{Attempt: attempt},
		func() *artifacts.EventFiles { return files })
	if newest, err := sink.Open(t.Context()); newest != -1 || err != nil {
		t.Fatalf("Open = step %d (%v), want -1", newest, err)
	}
	return sink
}

func openStore(t *testing.T) *artifacts.Store {
	t.Helper()
	s, err := artifacts.OpenStore(t.TempDir(), "uid")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// writeAll writes lines as the tracker does.
func writeAll(t *testing.T, sink *tensorBoard, lines []Line) {
	t.Helper()
	for len(lines) > 0 {
		n := min(len(lines), maxLines)
		if err := sink.Write(t.Context(), lines[:n]); err != nil {
			t.Fatal(err)
		}
		lines = lines[n:]
	}
}

// checkEvents checks that the event files have the lines, and returns the steps of each file.
func checkEvents(t *testing.T, s *artifacts.Store, lines []Line) map[string][]int64 {
	t.Helper()
	files := s.EventFiles(1)
	names, err := files.List(eventFolder)
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string][]int64{}
	var got, want []tfevents.Event
	for _, name := range names {
		data, err := files.Read(eventFolder + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		records, valid := tfevents.Decode(data)
		if valid != len(data) {
			t.Errorf("%s is valid up to byte %d of %d", name, valid, len(data))
		}
		for _, r := range records {
			steps[name], got = append(steps[name], r.Step), append(got, r.Event)
		}
	}
	for _, line := range lines {
		want = append(want, eventOf(line))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	return steps
}

// fileAt returns the name of the event file that begins with a step.
func fileAt(step, attempt string) string { return tfevents.Prefix + step + ".attempt-" + attempt }

// TestTensorBoardFilesOfAttempts writes the files of two attempts, with more lines than a file takes.
func TestTensorBoardFilesOfAttempts(t *testing.T) {
	s := openStore(t)
	writeAll(t, openEvents(t, s, 1), linesOf(0, 300))
	first := checkEvents(t, s, linesOf(0, 300))
	if len(first[fileAt("0000000000", "1")]) != 256 || len(first[fileAt("0000000256", "1")]) != 44 {
		t.Errorf("the files have the steps %v, want 256 and 44", first)
	}
	second := openEvents(t, s, 2)
	for n := range int64(4) {
		writeAll(t, second, linesOf(min(n, 1)*(300+n), 301+n))
	}
	if err := second.Close(t.Context(), Completed); err != nil {
		t.Fatal(err)
	}
	if files := checkEvents(t, s, linesOf(0, 304)); len(files) != 3 || len(files[fileAt("0000000300", "2")]) != 4 {
		t.Errorf("the files have the steps %v, want 4 in a third one", files)
	}
}

// TestTensorBoardRepairsFiles damages the files of an attempt or changes the run's lines, and checks that the next
// attempt makes the files match the lines again.
func TestTensorBoardRepairsFiles(t *testing.T) {
	const last = "0000000256"
	path := func(dir, step string) string {
		return filepath.Join(dir, "uid", eventFolder, fileAt(step, "1"))
	}
	change := func(do func([]byte) []byte, step string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			data, err := os.ReadFile(path(dir, step))
			if err == nil {
				err = os.WriteFile(path(dir, step), do(data), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := map[string]struct {
		damage func(*testing.T, string)
		lines  []Line
	}{
		"nothing":      {func(*testing.T, string) {}, linesOf(0, 300)},
		"a cut record": {change(func(data []byte) []byte { return data[:len(data)-5] }, last), linesOf(0, 300)},
		"a cut header": {change(func(data []byte) []byte { return data[:7] }, last), linesOf(0, 300)},
		"bytes behind the records": {change(func(data []byte) []byte { return append(data, 0, 0, 0) }, last),
			linesOf(0, 300)},
		"a damaged byte in the first file": {change(func(data []byte) []byte {
			data[len(data)/2] ^= 1
			return data
		}, "0000000000"), linesOf(0, 300)},
		"an empty file":                     {change(func([]byte) []byte { return nil }, "0000000000"), linesOf(0, 300)},
		"fewer lines, as after a lost step": {func(*testing.T, string) {}, linesOf(0, 100)},
		"no line but the first":             {func(*testing.T, string) {}, linesOf(0, 1)},
		"another value of a line": {func(*testing.T, string) {}, func() []Line {
			lines := linesOf(0, 300)
			lines[40].Metrics["optim/lr"] = 1
			return lines
		}()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := artifacts.OpenStore(dir, "uid")
			if err != nil {
				t.Fatal(err)
			}
			writeAll(t, openEvents(t, s, 1), linesOf(0, 290))
			tc.damage(t, dir)
			for attempt := range int32(2) {
				sink := openEvents(t, s, attempt+2)
				writeAll(t, sink, tc.lines)
				if err := sink.Close(t.Context(), Completed); err != nil {
					t.Fatal(err)
				}
				checkEvents(t, s, tc.lines)
			}
		})
	}
}

// TestTensorBoardKeepsFilesOfARunWithoutLines ends a learner before it knows the run's lines.
func TestTensorBoardKeepsFilesOfARunWithoutLines(t *testing.T) {
	s := openStore(t)
	writeAll(t, openEvents(t, s, 1), linesOf(0, 10))
	sink := openEvents(t, s, 2)
	if err := sink.Write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(t.Context(), Interrupted); err != nil {
		t.Fatal(err)
	}
	checkEvents(t, s, linesOf(0, 10))
}

// TestTensorBoardIgnoresAReplacedLearner lets a learner write lines after the next attempt has taken over the run. In
// one case, the learner has looked for higher claims before that, and found none.
func TestTensorBoardIgnoresAReplacedLearner(t *testing.T) {
	for name, attempt := range map[string]int32{"that looks for claims": 1, "that has looked for claims": 9} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			first := openEvents(t, s, 1)
			files := s.EventFiles(attempt)
			first.files = files
			writeAll(t, first, linesOf(0, 5))
			second := openEvents(t, s, 2)
			writeAll(t, second, linesOf(0, 7))
			if err := first.Write(t.Context(), linesOf(5, 9)); err != nil {
				t.Fatal(err)
			}
			writeAll(t, second, linesOf(7, 8))
			checkEvents(t, s, linesOf(0, 8))
		})
	}
}

// TestTensorBoardOfAReplacedLearnerBeginsNoFile lets a learner whose file is full write lines after the next attempt
// has begun.
func TestTensorBoardOfAReplacedLearnerBeginsNoFile(t *testing.T) {
	s := openStore(t)
	first := openEvents(t, s, 1)
	writeAll(t, first, linesOf(0, maxFileLines))
	writeAll(t, openEvents(t, s, 2), linesOf(0, maxFileLines+4))
	if err := first.Write(t.Context(), linesOf(maxFileLines, maxFileLines+2)); err != nil {
		t.Fatal(err)
	}
	checkEvents(t, s, linesOf(0, maxFileLines+4))
}

// interrupted has the event files of a learner. During the first write, after the learner has looked for claims,
// another attempt takes over the run.
type interrupted struct {
	eventFiles
	looked   eventFiles
	takeOver func()
}

func (f *interrupted) Grow(name string, content []byte, former int) error {
	if f.takeOver == nil {
		return f.eventFiles.Grow(name, content, former)
	}
	f.takeOver()
	f.takeOver = nil
	return f.looked.Grow(name, content, former)
}

// TestTensorBoardOfALearnerThatIsReplacedWhileItBeginsAFile checks that a file does no harm if a learner that has
// found no later claim creates it only after the next attempt has listed the files.
func TestTensorBoardOfALearnerThatIsReplacedWhileItBeginsAFile(t *testing.T) {
	s := openStore(t)
	first := openEvents(t, s, 1)
	first.files = &interrupted{eventFiles: first.files, looked: s.EventFiles(9), takeOver: func() {
		writeAll(t, openEvents(t, s, 2), linesOf(0, 3))
	}}
	if err := first.Write(t.Context(), linesOf(0, 1)); err != nil {
		t.Fatal(err)
	}
	checkEvents(t, s, linesOf(0, 3))
}

// TestTensorBoardAtURL refuses requests for a while, and checks that the sink names the repair and then writes the
// missed lines.
func TestTensorBoardAtURL(t *testing.T) {
	var down atomic.Bool
	server := buckettest.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				http.Error(w, "", http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	objects, err := bucket.Open(t.Context(), server.URL("team"), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	s, err := artifacts.OpenBucketStore(objects, t.TempDir(), "uid")
	if err != nil {
		t.Fatal(err)
	}
	sink := openEvents(t, s, 1)
	writeAll(t, sink, linesOf(0, 3))
	down.Store(true)
	checkProblem(t, sink.Write(t.Context(), linesOf(3, 5)), "ServiceFailing", "repair spec.artifacts")
	_, err = sink.Open(t.Context())
	checkProblem(t, err, "ServiceFailing", "repair spec.artifacts")
	down.Store(false)
	if _, err := sink.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	writeAll(t, sink, linesOf(0, 5))
	checkEvents(t, s, linesOf(0, 5))
}

func TestTensorBoardWithoutArtifacts(t *testing.T) {
	sink := newTensorBoard(contracttracking.TensorBoard{RunName: "r"}, Run{}, func() *artifacts.EventFiles { return nil })
	_, err := sink.Open(t.Context())
	checkProblem(t, err, "ServiceNotFound", "give it spec.artifacts")
}
