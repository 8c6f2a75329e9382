// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// createAnew replaces the fixture's run by a new run of the same name, which continues the former run and takes over
// its spending. The new run needs workers of its own.
func (w *fixture) createAnew() (formerUID string) {
	w.t.Helper()
	formerUID = w.file.Run.UID
	n, billed := fixtures.Add(1), w.billed
	w.identify(fmt.Sprintf("%08x-0000-4000-8000-%012x", 0x1f3a9c2b+n, n))
	w.billed = billed
	w.file.ResumeFrom = formerUID
	return formerUID
}

// partOf trains until a fault point is reached, kills learner and worker, and deletes the run.
func (w *fixture) partOf(point string, step int64) (formerUID string) {
	w.t.Helper()
	worker := w.startWorker("w0", behavior{})
	<-w.startLearner(1, w.dieAt(point, step)).done
	worker.kill()
	return w.createAnew()
}

// TestResumeFromDeletedRun deletes a run while it trains and creates it again with resumeFrom: whenever learners of the
// new run die, it gets the weights, metrics and usage of an undisturbed run.
func TestResumeFromDeletedRun(t *testing.T) {
	t.Parallel()
	for _, former := range []string{"replies.clean", "row.written", "save.answered", "covered.sent"} {
		for _, dies := range []string{"", "open.claimed", "open.listed", "open.loaded", "open.saved", "save.answered"} {
			t.Run(former+" "+dies, func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, nil)
				formerUID := w.partOf(former, 2)
				w.startWorker("w1", behavior{})
				attempt := int32(1)
				if dies != "" {
					<-w.startLearner(attempt, w.dieAt(dies, -1)).done
					attempt++
				}
				verdict := w.waitFor(w.startLearner(attempt, nil), contract.CauseCompleted)
				w.checkSame(verdict)
				for _, c := range verdict.Progress.Checkpoints {
					if c.Step == 3 && !strings.Contains(c.State, "/r"+w.file.Run.UID[:8]) {
						t.Errorf("the last state is %s, want one that is named after the new run", c.State)
					}
				}
				if from := verdict.Progress.ResumedFrom; dies == "" && (from == nil || from.UID != formerUID || from.Step < 1 ||
					from.UncountedSteps != 0) {
					t.Errorf("the run resumed from %+v, want a step of run %s with its usage", from, formerUID)
				}
				if w.file.Run.UID == formerUID {
					t.Fatalf("the run is the same: got %v for both", w.file.Run.UID)
				}
			})
		}
	}
}

// TestResumeFromDeletedRunByNamesAlone resumes without the artifacts of the former run: the weights are the same, and
// the run reports the number of steps that its usage lacks.
func TestResumeFromDeletedRunByNamesAlone(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *fixture){
		"no artifacts":                 func(w *fixture) { w.file.ArtifactsDir = "" },
		"another folder for artifacts": func(w *fixture) { w.artifacts = w.t.TempDir(); w.file.ArtifactsDir = w.artifacts },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.partOf("covered.sent", 2)
			lose(w)
			w.startWorker("w1", behavior{})
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
			if got, want := w.weights(verdict), baseline(t).adapter; got != want {
				t.Errorf("final adapter is %s, undisturbed %s", got, want)
			}
			want := contract.ResumedFrom{UID: w.file.ResumeFrom, Step: 2, UncountedSteps: 2}
			if got := verdict.Progress.ResumedFrom; got == nil || *got != want {
				t.Errorf("the run resumed from %+v, want %+v", got, want)
			}
		})
	}
}

// TestFormerRunStillTrains wakes up the learner of the former run, as when a backup is restored in a second cluster:
// the learner stops, and changes nothing of the run that continues the former run.
func TestFormerRunStillTrains(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"save.submitted", "save.answered", "replies.clean"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			worker := w.startWorker("w0", behavior{})
			stop := stopAt(point, 2)
			former := w.startAndStop(1, stop)
			worker.kill()
			w.createAnew()
			w.startWorker("w1", behavior{})
			adopts := w.startLearner(1, nil)
			verdict := w.waitFor(adopts, contract.CauseCompleted)
			close(stop.resume)
			w.waitFor(former, contract.CauseFenced)
			w.checkSame(verdict)
		})
	}
}

// TestResumeFromIsRefused checks that a run trains nothing, and says why, if it cannot continue the run that
// resumeFrom names.
func TestResumeFromIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(w *fixture)
		want   string
	}{
		"an unknown run": {
			func(w *fixture) { w.file.ResumeFrom = "00000000-0000-4000-8000-000000000000" },
			"neither the endpoint nor the artifact store knows a state of it",
		},
		"other settings": {
			func(w *fixture) { w.changeSettings(0, 2e-3); w.file.Former = nil },
			"it made step 2 with other settings: spec.algorithm",
		},
		"other settings, by the metadata of the model alone": {
			func(w *fixture) {
				w.changeSettings(0, 2e-3)
				w.file.Former, w.file.ArtifactsDir = nil, ""
				w.forget(0)
			},
			"it made step 2 with other settings",
		},
		"adopted by another run": {
			func(w *fixture) {
				claim := filepath.Join(w.artifacts, w.file.ResumeFrom, "attempts", "2147483647")
				if err := os.WriteFile(claim, []byte("another-uid"), 0o600); err != nil {
					w.t.Fatal(err)
				}
			},
			"run another-uid continues it already",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.partOf("covered.sent", 2)
			tc.change(w)
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseConfigRejected)
			if verdict.Reason != problem.ResumeRefused || !strings.Contains(verdict.Message, tc.want) {
				t.Errorf("the verdict says %s: %s; want %s: %s", verdict.Reason, verdict.Message, problem.ResumeRefused,
					tc.want)
			}
			if len(verdict.Message) > 256 {
				t.Errorf("the message has %d bytes, and an attempt shows 256", len(verdict.Message))
			}
			if verdict.Progress.Step != 0 || len(verdict.Progress.Checkpoints) > 0 {
				t.Errorf("the attempt reports step %d and checkpoints %v", verdict.Progress.Step, verdict.Progress.Checkpoints)
			}
		})
	}
}

// forget deletes the states of a step at the endpoint.
func (w *fixture) forget(step int64) {
	w.t.Helper()
	for c, err := range w.client.Checkpoints(w.t.Context()) {
		if err != nil {
			w.t.Fatal(err)
		}
		if strings.Contains(c.TinkerPath, fmt.Sprintf("-s%06d-", step)) {
			if err := w.client.DeleteCheckpoint(w.t.Context(), c.TinkerPath); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// TestEarlierRunOfTheName creates a run again without resumeFrom: it begins anew and reports the former run, whether
// the endpoint or the artifact store knows it.
func TestEarlierRunOfTheName(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *fixture){
		"by the endpoint":       func(w *fixture) { w.file.ArtifactsDir = "" },
		"by the artifact store": func(w *fixture) { w.forget(1); w.forget(2) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			formerUID := w.partOf("covered.sent", 2)
			w.file.ResumeFrom = ""
			change(w)
			w.startWorker("w1", behavior{})
			verdict := w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
			want := contract.EarlierRun{UID: formerUID, Step: 2, SameSettings: true}
			if got := verdict.Progress.EarlierRun; got == nil || *got != want {
				t.Errorf("the earlier run is %+v, want %+v", got, want)
			}
			if verdict.Progress.ResumedFrom != nil || verdict.Progress.FromStep != 0 {
				t.Errorf("the run resumed from %+v at step %d", verdict.Progress.ResumedFrom, verdict.Progress.FromStep)
			}
		})
	}
}

// TestResumeFromDeletedRunAtItsEnd resumes a run whose worker died before its spending was recorded, and completes
// before the learner has looked for lost workers: the possible spending of the worker is unconfirmed.
func TestResumeFromDeletedRunAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, former := range []string{"row.written", "save.answered"} {
		t.Run(former, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.tick = time.Hour
			w.partOf(former, 2)
			w.startWorker("w1", behavior{})
			<-w.startLearner(1, w.dieAt("save.answered", w.file.Algorithm().Steps)).done
			w.checkSame(w.waitFor(w.startLearner(2, nil), contract.CauseCompleted))
		})
	}
}
