// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// written returns why the steps of a folder have no transcript, "" for those that have one, and checks that each has a
// page.
func written(t *testing.T, dir string) map[int64]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "uid", "transcripts", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	steps := map[int64]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var step transcript.Step
		if err := json.Unmarshal(data, &step); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(name[:len(name)-len("json")] + "html"); err != nil {
			t.Errorf("step %d has no page: %v", step.Step, err)
		}
		steps[step.Step] = step.Missing
	}
	return steps
}

func TestTranscriptsAreThoseOfCommittedSteps(t *testing.T) {
	dir := t.TempDir()
	j, _ := openJournal(t, dir, 1)
	j.Transcripts.Add(transcript.Step{Step: 1, Lineage: "l1"})
	j.Transcripts.Add(transcript.Step{Step: 2, Lineage: "l2"})
	if diff := cmp.Diff(map[int64]string{}, written(t, dir)); diff != "" {
		t.Errorf("before the commit (-want +got):\n%s", diff)
	}
	if err := j.Transcripts.Write(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	j.Transcripts.Add(transcript.Step{Step: 3, Lineage: "l3"})
	j.Discard()
	if err := j.Transcripts.Write(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int64]string{1: "", 2: ""}, written(t, dir)); diff != "" {
		t.Errorf("after the commit of two steps, and a third that was made again (-want +got):\n%s", diff)
	}
}

func TestTranscriptsWaitForTheStore(t *testing.T) {
	dir := t.TempDir()
	j, _ := openJournal(t, dir, 1)
	back := makeUnusable(t, dir, "transcripts")
	j.Transcripts.Add(transcript.Step{Step: 1, Lineage: "l1"})
	if err := j.Transcripts.Write(t.Context(), false); err != nil {
		t.Fatalf("training stops for a transcript: %v", err)
	}
	j.Discard()
	back()
	j.Transcripts.Add(transcript.Step{Step: 2, Lineage: "l2"})
	if err := j.Transcripts.Write(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int64]string{1: "", 2: ""}, written(t, dir)); diff != "" {
		t.Errorf("once the store answers (-want +got):\n%s", diff)
	}
}

func TestMissingTranscriptsAreStated(t *testing.T) {
	dir := t.TempDir()
	j, _ := openJournal(t, dir, 1)
	for step := range int64(4) {
		j.Add(Row{Version: versionAt(step + 1), Parent: versionAt(step).Lineage}, nil)
	}
	writeRows(t, j)
	j.Transcripts.Add(transcript.Step{Step: 2, Lineage: versionAt(2).Lineage.String()})
	if err := j.Transcripts.Write(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	next, _ := openJournal(t, dir, 2)
	next.Transcripts.StateMissing(versionAt(4))
	next.Transcripts.StateMissing(versionAt(4))
	got := written(t, dir)
	if got[2] != "" || got[3] == "" || got[4] == "" || len(got) != 3 {
		t.Errorf("steps are missing for these reasons: %v; want them for steps 3 and 4 after step 2", got)
	}
}

func TestTranscriptsHaveRoomForTheNewest(t *testing.T) {
	steps := make([]transcript.Step, 5)
	for i := range steps {
		steps[i] = transcript.Step{Step: int64(i), Groups: []transcript.Group{{Reason: string(make([]byte,
			transcript.MaxStepBytes/7))}}}
		steps[i].Bound()
	}
	if steps[0].Size() < maxWaiting/5 {
		t.Fatalf("a step has %d bytes, too few for this test", steps[0].Size())
	}
	withhold(steps, "no room")
	if steps[0].Missing == "" || steps[4].Missing != "" || steps[0].Groups != nil {
		t.Errorf("the oldest is missing for %q, the newest for %q", steps[0].Missing, steps[4].Missing)
	}
}
