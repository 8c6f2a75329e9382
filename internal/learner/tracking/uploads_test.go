// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/openreward"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/openrewardtest"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/trackertest"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

// uploadAttempt is an attempt of a run that sends its rollouts.
type uploadAttempt struct {
	*Tracker
	uploads *Uploads
	store   *artifacts.Store
	stop    context.CancelFunc
	done    chan struct{}
	// problems has the newest report.
	problems atomic.Pointer[[]contracttracking.Problem]
}

// startUploads starts an attempt whose artifacts are in dir; an empty dir means that it has no artifact storage.
func startUploads(t *testing.T, server *openrewardtest.Server, dir string, attempt int32,
	pause ...time.Duration) *uploadAttempt {
	t.Helper()
	a := &uploadAttempt{done: make(chan struct{})}
	files := func() *artifacts.UploadFiles { return nil }
	if dir != "" {
		var err error
		if a.store, err = artifacts.OpenStore(dir, runUID); err != nil {
			t.Fatal(err)
		}
		if err := a.store.Claim(attempt, fmt.Sprint(attempt)); err != nil {
			t.Fatal(err)
		}
		files = func() *artifacts.UploadFiles { return a.store.UploadFiles(attempt) }
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 40)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.uploads = NewUploads(
		&contracttracking.Settings{OpenReward: &contracttracking.OpenReward{BaseURL: server.URL, RunName: "fast",
			KeyFile: key}},
		Run{UID: runUID, Deployments: map[string]openreward.Deployment{"whodunit": {Name: "GeneralReasoning/WhoDunIt",
			Variant: "hard"}}},
		files, slog.New(slog.DiscardHandler))
	a.Tracker = NewTracker(Config{
		Uploads: a.uploads, Rows: fakeRows(nil), Logger: slog.New(slog.DiscardHandler),
		Report:   func(problems []contracttracking.Problem) { a.problems.Store(&problems) },
		Interval: time.Microsecond, Silence: time.Hour, Pause: append(pause, time.Millisecond)[0],
	})
	ctx, cancel := context.WithCancel(t.Context())
	a.stop = cancel
	go func() {
		defer close(a.done)
		a.Run(ctx)
	}()
	a.Start()
	t.Cleanup(a.kill)
	return a
}

// kill ends the attempt's process.
func (a *uploadAttempt) kill() {
	a.stop()
	<-a.done
}

// awaitProblem waits until the attempt reports a problem.
func (a *uploadAttempt) awaitProblem(reason problem.Code) {
	for range time.Tick(time.Millisecond) {
		if p := a.problems.Load(); p != nil && len(*p) == 1 && (*p)[0].Reason == reason {
			return
		}
	}
}

// end ends the run, and waits until everything is sent.
func (a *uploadAttempt) end() {
	a.End(Completed)
	<-a.done
}

// make makes a step with rollouts of two messages each, and does not commit it.
func (a *uploadAttempt) make(step int64, rollouts int) {
	batch := openreward.Batch{Version: at(step), Time: time.Unix(1000+step, 0)}
	group := openreward.TaskGroup{Group: transcript.Group{Slot: step, Environment: "sums"}, Split: "train", Task: step}
	for i := range rollouts {
		group.Episodes = append(group.Episodes, transcript.Episode{Index: i, Outcome: "Usable",
			Conversations: []transcript.Conversation{{
				Messages: []transcript.Message{{Role: "user", Text: "1+1"}, {Role: "assistant", Text: fmt.Sprint(i),
					Reward: new(1.0), Finished: true}},
			}}})
	}
	batch.Groups = []openreward.TaskGroup{group}
	a.uploads.Add(batch)
}

// commit makes and commits a step.
func (a *uploadAttempt) commit(step int64, rollouts int) {
	a.make(step, rollouts)
	a.uploads.Store()
	a.Commit(rowOf(step))
}

// checkUploads checks that the server has so many rollouts of each step, each with its messages in order, and that
// nothing came twice.
func checkUploads(t *testing.T, server *openrewardtest.Server, want map[int64]int) {
	t.Helper()
	var names []string
	for step, rollouts := range want {
		for i := range rollouts {
			names = append(names, fmt.Sprintf("sums-train-%d-step%d-r%d", step, step-1, i))
		}
	}
	slices.Sort(names)
	found := server.Rollouts()
	if diff := cmp.Diff(names, slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("rollouts (-want +got):\n%s", diff)
	}
	for name, r := range found {
		if len(r.Messages) != 2 || r.Messages[0].Index != 0 || r.Messages[1].Index != 1 {
			t.Errorf("the rollout %s has the messages %v", name, r.Messages)
		}
	}
	for _, id := range server.Repeated() {
		t.Errorf("the event %s came twice", id)
	}
	for _, found := range server.Problems() {
		t.Error(found)
	}
}

func newRolloutServer(t *testing.T) *openrewardtest.Server {
	t.Helper()
	server := openrewardtest.New()
	t.Cleanup(server.Close)
	return server
}

// TestOpenRewardSendsWhatThePackageSends compares the requests for rollouts with the requests of the official package,
// which testdata/openreward.txt records.
func TestOpenRewardSendsWhatThePackageSends(t *testing.T) {
	server := newRolloutServer(t)
	a := startUploads(t, server, "", 1)
	answer := transcript.Call{Name: "answer", Arguments: `{"name": "the gardener"}`}
	for i, group := range []openreward.TaskGroup{
		{Split: "train", Task: 7, Group: transcript.Group{Environment: "whodunit", Episodes: []transcript.Episode{{
			Outcome: "Usable", StopReason: "finished", Metrics: map[string]float64{"tool_calls": 1, "tool_errors": 0},
			Conversations: []transcript.Conversation{{Reward: new(1.0), Messages: []transcript.Message{
				{Role: "system", Text: "Call tools."}, {Role: "user", Text: "Who was it?"},
				{Role: "assistant", Thinking: "hm\n", Text: "I know.", Calls: []transcript.Call{answer}},
				{Role: "tool", Name: "answer", Text: "Corr\x00ect!", Reward: new(1.0), Finished: true},
			}}},
		}}}},
		{Split: "train", Task: 3, Group: transcript.Group{Environment: "sums", Episodes: []transcript.Episode{
			{Index: 0, Outcome: "EnvironmentFault"}, // An episode without a conversation is not sent.
			{Index: 1, Outcome: "Usable", StopReason: "stop",
				Conversations: []transcript.Conversation{{Reward: new(0.0), Messages: []transcript.Message{
					{Role: "user", Text: "1+1"}, {Role: "assistant", Text: "3", Reward: new(0.0), Finished: true},
				}}}},
		}}},
	} {
		group.Slot = int64(i)
		a.uploads.Add(openreward.Batch{Version: rl.Version{Step: 3, Lineage: rl.Genesis(fmt.Sprint(i))},
			Groups: []openreward.TaskGroup{group}})
		a.Commit(artifacts.Row{Version: rl.Version{Step: 3, Lineage: rl.Genesis(fmt.Sprint(i))}})
	}
	a.end()
	got, err := openrewardtest.Events(server.Requests())
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile("testdata/openreward.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(recorded)), "\n")
	// The package sends the first events of both rollouts before their first messages, which it collects for a second.
	// The ids of events depend on the order of events, so the two rollouts are compared one by one.
	if diff := cmp.Diff(byRollout(want), byRollout(got)); diff != "" {
		t.Errorf("requests (-package +ours):\n%s", diff)
	}
}

// byRollout sorts events by their rollouts, and leaves out the ordinals of ids.
func byRollout(events []string) []string {
	var first, second []string
	inSecond := false
	for _, event := range events {
		if strings.Contains(event, `"environment":"sums"`) {
			inSecond = true
			first = first[:len(first)-1] // "alone" belongs to it
			second = append(second, "alone")
		}
		for i := range 20 {
			event = strings.ReplaceAll(event, fmt.Sprintf("-%d\"", i), `"`)
		}
		if strings.Contains(event, "1+1") || strings.Contains(event, `"content":"3"`) || inSecond && strings.Contains(event,
			`"environment":"sums"`) {
			second = append(second, event)
		} else {
			first = append(first, event)
		}
	}
	return append(first, second...)
}

// TestUploadsOfCommittedSteps checks that the rollouts of a step are not sent before the step is committed, and never
// sent if the run has gone back to an earlier version.
func TestUploadsOfCommittedSteps(t *testing.T) {
	for name, dir := range map[string]string{"with artifacts": t.TempDir(), "without": ""} {
		t.Run(name, func(t *testing.T) {
			server := newRolloutServer(t)
			a := startUploads(t, server, dir, 1)
			a.commit(1, 3)
			a.make(2, 3)
			a.uploads.Store()
			chain, _ := chainOf(1)
			a.Resume(at(1), chain) // The model is abandoned.
			a.make(2, 2)
			a.uploads.Store()
			a.Commit(rowOf(2))
			a.make(3, 4) // It is never committed.
			a.uploads.Store()
			a.end()
			checkUploads(t, server, map[int64]int{1: 3, 2: 2})
		})
	}
}

// TestUploadsAfterTheSameStepIsMadeAgain returns to the version before a step whose rollouts were sent, makes the step
// again, and checks that they are not sent again.
func TestUploadsAfterTheSameStepIsMadeAgain(t *testing.T) {
	dir, server := t.TempDir(), newRolloutServer(t)
	a := startUploads(t, server, dir, 1)
	a.commit(1, 2)
	a.commit(2, 2)
	a.end()
	b := startUploads(t, server, dir, 2)
	chain, _ := chainOf(1)
	b.Resume(at(1), chain)
	b.commit(2, 2)
	b.commit(3, 2)
	b.end()
	checkUploads(t, server, map[int64]int{1: 2, 2: 2, 3: 2})
}

// TestUploadsOfADeadLearner kills an attempt while the service does not answer, and checks that a later attempt sends
// all rollouts.
func TestUploadsOfADeadLearner(t *testing.T) {
	dir, server := t.TempDir(), newRolloutServer(t)
	server.SetFault(func([]openrewardtest.Event) trackertest.Fault { return trackertest.Refuse })
	a := startUploads(t, server, dir, 1, time.Hour)
	a.commit(1, 40)
	a.commit(2, 3)
	a.awaitProblem("ServiceFailing")
	a.kill()
	server.SetFault(nil)
	b := startUploads(t, server, dir, 2)
	chain, _ := chainOf(2)
	b.Resume(at(2), chain)
	b.end()
	checkUploads(t, server, map[int64]int{1: 40, 2: 3})
	if names, _ := os.ReadDir(filepath.Join(dir, runUID, "uploads")); len(names) != 2 {
		t.Errorf("the artifacts have the files %v, want a note for each of two steps", names)
	}
}

// TestUploadsWithLostAnswers loses an answer and kills the attempt, and checks that the next attempt sends all events
// except those that the service may have.
func TestUploadsWithLostAnswers(t *testing.T) {
	for name, lost := range map[string]func(openrewardtest.Event) bool{
		"of a beginning": func(e openrewardtest.Event) bool { return e.Name == "sums-train-1-step0-r7" },
		"of messages":    func(e openrewardtest.Event) bool { return e.Type == "message" },
	} {
		t.Run(name, func(t *testing.T) {
			dir, server := t.TempDir(), newRolloutServer(t)
			a := startUploads(t, server, dir, 1)
			isLost, once := make(chan struct{}), false
			server.SetFault(func(events []openrewardtest.Event) trackertest.Fault {
				if !once && lost(events[0]) {
					a.stop()
					close(isLost)
					once = true
					return trackertest.LoseAnswer
				}
				return trackertest.None
			})
			a.commit(1, 70)
			<-isLost
			a.kill()
			b := startUploads(t, server, dir, 2)
			chain, _ := chainOf(1)
			b.Resume(at(1), chain)
			b.end()
			for _, id := range server.Repeated() {
				t.Errorf("the event %s came twice", id)
			}
			found, complete := server.Rollouts(), 0
			for _, r := range found {
				if len(r.Messages) == 2 {
					complete++
				}
			}
			// 32 requests begin together.
			if complete < 70-32 {
				t.Errorf("%d of 70 rollouts are complete, want all but those in flight", complete)
			}
		})
	}
}

// TestUploadsAreRepeatedWithTheSameIDs loses answers in a process that continues, and checks that the events are sent
// again with the same ids.
func TestUploadsAreRepeatedWithTheSameIDs(t *testing.T) {
	server := newRolloutServer(t)
	var requests int
	server.SetFault(func([]openrewardtest.Event) trackertest.Fault {
		if requests++; requests%3 == 0 {
			return trackertest.LoseAnswer
		}
		return trackertest.None
	})
	a := startUploads(t, server, t.TempDir(), 1)
	a.commit(1, 5)
	a.end()
	if len(server.Repeated()) == 0 || len(server.Rollouts()) != 5 {
		t.Errorf("%d events came again, and there are %d rollouts, want some and 5", len(server.Repeated()),
			len(server.Rollouts()))
	}
}

// TestUploadsOfASupersededLearner lets a later attempt claim the run, and checks that the earlier one sends nothing
// more.
func TestUploadsOfASupersededLearner(t *testing.T) {
	dir, server := t.TempDir(), newRolloutServer(t)
	a := startUploads(t, server, dir, 1)
	b := startUploads(t, server, dir, 2)
	a.commit(1, 3)
	a.end()
	checkUploads(t, server, nil)
	chain, _ := chainOf(1)
	b.Resume(at(1), chain)
	b.end()
	if got := len(server.Rollouts()); got > 3 || len(server.Repeated()) > 0 {
		t.Errorf("there are %d rollouts, and %d events came twice", got, len(server.Repeated()))
	}
}

// TestUploadsLeaveOutWhatIsRefused refuses the content of one rollout, and checks that the others are sent and that
// the problem is reported.
func TestUploadsLeaveOutWhatIsRefused(t *testing.T) {
	server := newRolloutServer(t)
	server.SetFault(func(events []openrewardtest.Event) trackertest.Fault {
		if events[0].Name == "sums-train-1-step0-r1" {
			return trackertest.Reject
		}
		return trackertest.None
	})
	a := startUploads(t, server, t.TempDir(), 1)
	a.commit(1, 3)
	a.commit(2, 1)
	a.end()
	if got := slices.Sorted(maps.Keys(server.Rollouts())); len(got) != 3 || slices.Contains(got, "sums-train-1-step0-r1") {
		t.Errorf("the service has the rollouts %v", got)
	}
	if problems := *a.problems.Load(); len(problems) != 1 || problems[0].Reason != "RolloutsDropped" ||
		!strings.Contains(problems[0].Message, "1 rollouts") {
		t.Errorf("the run reports %v", problems)
	}
}

// TestUploadsWithAKeyThatIsRefused checks that a refused key is reported, and that everything is sent once the key is
// right.
func TestUploadsWithAKeyThatIsRefused(t *testing.T) {
	server := newRolloutServer(t)
	server.Key = "another"
	a := startUploads(t, server, t.TempDir(), 1)
	a.commit(1, 2)
	a.awaitProblem("TrackerKeyRefused")
	if err := os.WriteFile(a.uploads.service.settings.KeyFile, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.end()
	checkUploads(t, server, map[int64]int{1: 2})
	if problems := *a.problems.Load(); len(problems) != 0 {
		t.Errorf("the run reports %v", problems)
	}
}

// TestUploadsAreBounded commits more steps than there is room for while the service is away, and checks that the
// oldest steps are dropped and counted.
func TestUploadsAreBounded(t *testing.T) {
	server := newRolloutServer(t)
	u := NewUploads(&contracttracking.Settings{OpenReward: &contracttracking.OpenReward{BaseURL: server.URL}}, Run{},
		func() *artifacts.UploadFiles { return nil }, slog.New(slog.DiscardHandler))
	u.most = 10
	a := &uploadAttempt{uploads: u}
	for step := range int64(6) {
		a.make(step+1, 2)
		u.commit(at(step + 1))
	}
	waiting := 0
	for _, batch := range u.committed {
		waiting += batch.messages
	}
	if oldest, _ := u.next(); waiting != 8 || oldest.Step != 5 || u.dropped.Load() != 8 {
		t.Errorf("%d messages wait, of steps from %d on, and %d rollouts were dropped", waiting, oldest.Step,
			u.dropped.Load())
	}
}

// TestUncommittedUploadsAreBounded makes steps before their state is saved, while the artifact store takes no
// rollouts. The rollouts have as much room as rollouts that wait for the service.
func TestUncommittedUploadsAreBounded(t *testing.T) {
	server := newRolloutServer(t)
	dir := t.TempDir()
	opened, err := artifacts.OpenStore(dir, "uid")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	u := NewUploads(&contracttracking.Settings{OpenReward: &contracttracking.OpenReward{BaseURL: server.URL}}, Run{},
		func() *artifacts.UploadFiles { return opened.UploadFiles(1) }, slog.New(slog.DiscardHandler))
	u.most = 10
	a := &uploadAttempt{uploads: u}
	for step := range int64(6) {
		a.make(step+1, 2)
		u.Store()
		if step == 0 {
			u.commit(at(1))
		}
	}
	if len(u.committed) != 0 || len(u.made) != 2 || u.made[0].Step != 5 || u.dropped.Load() != 8 {
		t.Errorf("%d committed steps and %d others wait, and %d rollouts were dropped; want none, 2 and 8", len(u.committed),
			len(u.made), u.dropped.Load())
	}
}
