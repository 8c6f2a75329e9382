// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build observe

package observe

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	learner "github.com/tinker-operator/tinker-operator/internal/learner/tracking"
)

const tensorBoardRecord = "../../internal/learner/tracking/tfevents/testdata/scalars.tfevents"

// python runs a script of this folder in the Python environment of requirements/NAME.txt, and returns its output.
func python(t *testing.T, requirements string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(venv(t, requirements), "bin", "python"), arguments...)
	var log strings.Builder
	command.Stderr = &log
	output, err := command.Output()
	if err != nil {
		t.Fatalf("running %v: %v\n%s", arguments, err, log.String())
	}
	return output
}

// TestTensorBoardRecord writes the events of the learner's test with the official package, and compares the files.
func TestTensorBoardRecord(t *testing.T) {
	written := filepath.Join(t.TempDir(), "events.out.tfevents.1")
	python(t, "tensorboard", "tensorboard_calls.py", "write", written)
	got, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(tensorBoardRecord, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(tensorBoardRecord)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("the package writes\n%q\nand the record is\n%q", got, want)
	}
}

// curves are the steps and values of each tag of each run.
type curves map[string]map[string][][2]float64

// eventLines returns lines of a run.
func eventLines(first, last int64) []learner.Line {
	var lines []learner.Line
	for step := first; step < last; step++ {
		lines = append(lines, learner.Line{Step: step, Time: time.Unix(1700000000+step, 0), Metrics: map[string]float64{
			"env/all/reward/total": float64(step) / 8, "loss:sum": float64(-step),
		}})
	}
	return lines
}

// attempt writes lines as an attempt of the run does, into artifacts in a folder.
func attempt(t *testing.T, dir string, number int32, lines []learner.Line) {
	t.Helper()
	s, err := artifacts.OpenStore(dir, "uid")
	if err == nil {
		err = s.Claim(number, "pod")
	}
	if err != nil {
		t.Fatal(err)
	}
	files := s.EventFiles(number)
	sink := learner.New(&tracking.Settings{TensorBoard: &tracking.TensorBoard{RunName: "fast"}},
		learner.Run{Attempt: number},
		func() *artifacts.EventFiles { return files })[0]
	if _, err := sink.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	const chunk = 100
	for ; len(lines) > 0; lines = lines[min(chunk, len(lines)):] {
		if err := sink.Write(t.Context(), lines[:min(chunk, len(lines))]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTensorBoardReadsAttempts writes the event files of several attempts, which repeat steps, and reads them with
// TensorBoard's package, and with a TensorBoard that has read the first attempt's files before.
func TestTensorBoardReadsAttempts(t *testing.T) {
	dir := t.TempDir()
	attempt(t, dir, 1, eventLines(0, 300))
	address := startTensorBoard(t, dir)
	run := "uid/tensorboard/fast"
	awaitSteps(t, address, run, 300)
	attempt(t, dir, 2, eventLines(0, 400))
	awaitSteps(t, address, run, 400)
	checkCurves(t, dir, run, eventLines(0, 400))

	again := eventLines(0, 350)
	for i := range again[280:] {
		again[280+i].Metrics["loss:sum"] = 1
	}
	attempt(t, dir, 3, again)
	checkCurves(t, dir, run, again)
}

// checkCurves checks that the package reads the lines.
func checkCurves(t *testing.T, dir, run string, lines []learner.Line) {
	t.Helper()
	var got curves
	if err := json.Unmarshal(python(t, "tensorboard", "tensorboard_calls.py", "read", dir), &got); err != nil {
		t.Fatal(err)
	}
	want := curves{run: {}}
	for _, line := range lines {
		for tag, value := range line.Metrics {
			want[run][tag] = append(want[run][tag], [2]float64{float64(line.Step), value})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what TensorBoard reads (-want +got):\n%s", diff)
	}
}

// startTensorBoard starts TensorBoard with its data server on a folder, and returns its address.
func startTensorBoard(t *testing.T, dir string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(venv(t, "tensorboard"), "bin", "tensorboard"),
		"--logdir", dir, "--port", "0", "--host", "127.0.0.1", "--load_fast", "true", "--reload_interval", "1",
		"--samples_per_plugin", "scalars=10000")
	output, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if found := address.FindString(lines.Text()); found != "" {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return found
		}
		t.Log(lines.Text())
	}
	t.Fatal("TensorBoard has ended")
	return ""
}

// awaitSteps waits until a running TensorBoard shows the steps from 0 up to a number, each once.
func awaitSteps(t *testing.T, address, run string, steps int) {
	t.Helper()
	var shown []int64
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		response, err := http.Get(address + "/data/plugin/scalars/scalars?tag=loss:sum&run=" + run)
		if err != nil {
			continue
		}
		var points [][3]float64
		err = json.NewDecoder(response.Body).Decode(&points)
		_ = response.Body.Close()
		if err != nil {
			continue
		}
		shown = nil
		for _, p := range points {
			shown = append(shown, int64(p[1]))
		}
		if len(shown) >= steps {
			break
		}
	}
	want := make([]int64, steps)
	for i := range want {
		want[i] = int64(i)
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("TensorBoard shows the steps (-want +got):\n%s", diff)
	}
}
