// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/contract/heartbeat"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

var runName = types.NamespacedName{Namespace: "n", Name: "run"}

func target(pod string, attempt int32) Target {
	return Target{Pod: types.UID(pod), Address: pod + ":7444", Request: contract.HeartbeatRequest{RunUID: "uid",
		Attempt: attempt, Desired: contract.DesiredRun}}
}

// fakeLearners answers heartbeats, and counts them by pod.
type fakeLearners struct {
	mu    sync.Mutex
	asked map[types.UID][]contract.HeartbeatRequest
	reply contract.HeartbeatReply
	err   error
	takes time.Duration
}

func (s *fakeLearners) post(ctx context.Context, to Target) (contract.HeartbeatReply, error) {
	s.mu.Lock()
	s.asked[to.Pod] = append(s.asked[to.Pod], to.Request)
	reply, err, takes := s.reply, s.err, s.takes
	s.mu.Unlock()
	select {
	case <-time.After(takes):
		return reply, err
	case <-ctx.Done():
		return contract.HeartbeatReply{}, ctx.Err()
	}
}

func (s *fakeLearners) setReply(reply contract.HeartbeatReply, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply, s.err = reply, err
}

func (s *fakeLearners) count(pod string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked[types.UID(pod)])
}

// runPoller starts a Poller in a bubble of fake time.
func runPoller(t *testing.T, s *fakeLearners, test func(p *Poller)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s.asked = map[types.UID][]contract.HeartbeatRequest{}
		p := New(Config{Every: 2 * time.Second, Timeout: 5 * time.Second, Post: s.post, Now: time.Now})
		done := make(chan error, 1)
		go func() { done <- p.Start(ctx) }()
		test(p)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start = %v", err)
		}
	})
}

// countEvents counts the events that have arrived so far.
func countEvents(p *Poller) int {
	synctest.Wait()
	n := 0
	for {
		select {
		case e := <-p.Events():
			if e.Object.GetName() != runName.Name || e.Object.GetNamespace() != runName.Namespace {
				panic("an event of another run")
			}
			n++
		default:
			return n
		}
	}
}

func TestPollsLearnersAndReportsChanges(t *testing.T) {
	s := &fakeLearners{reply: contract.HeartbeatReply{Attempt: 1, Sequence: 1}}
	runPoller(t, s, func(p *Poller) {
		p.Track(runName, []Target{target("a", 1)})
		if countEvents(p) != 1 || s.count("a") != 1 {
			t.Errorf("a new learner is asked %d times, want once and at once", s.count("a"))
		}
		if r := p.Latest("a"); r.Reply == nil || r.Reply.Sequence != 1 || !r.Fresh(time.Now()) {
			t.Errorf("Latest = %+v", r)
		}
		time.Sleep(10 * time.Second)
		if n := countEvents(p); n != 0 {
			t.Errorf("the same reply caused %d events", n)
		}
		if got := s.count("a"); got < 5 || got > 7 {
			t.Errorf("asked %d times in 10 s, want about 6", got)
		}
		training := contract.Progress{Phase: contract.PhaseTraining}
		for _, reply := range []contract.HeartbeatReply{
			{Attempt: 1, Sequence: 2}, {Attempt: 1, Sequence: 2, Problems: []problem.Problem{{Code: "Throttled"}}},
			{Attempt: 1, Sequence: 2, Progress: training},
			{Attempt: 1, Sequence: 2, Progress: training,
				Problems: []problem.Problem{{Code: problem.ArtifactsBlocked, Evidence: "mkdir /artifacts/uid: permission denied"}}},
			{Attempt: 1, Sequence: 2, Progress: training,
				Problems: []problem.Problem{{Code: problem.ArtifactsBlocked, Evidence: "no space left on device"}}},
			{Attempt: 1, Sequence: 2, Progress: training,
				Problems: []problem.Problem{{Code: "EndpointFailing", Evidence: "status 500"}}},
			{Attempt: 1, Sequence: 2, Progress: training,
				Problems: []problem.Problem{{Code: "EndpointFailing", Evidence: "status 502"}}},
		} {
			s.setReply(reply, nil)
			time.Sleep(3 * time.Second)
			if n := countEvents(p); n == 0 {
				t.Errorf("%+v caused no event", reply)
			}
		}
	})
}

func TestLearnerStopsAnswering(t *testing.T) {
	s := &fakeLearners{reply: contract.HeartbeatReply{Attempt: 1, Sequence: 1}}
	runPoller(t, s, func(p *Poller) {
		p.Track(runName, []Target{target("a", 1)})
		countEvents(p)
		s.setReply(contract.HeartbeatReply{}, errors.New("connection refused"))
		time.Sleep(10 * time.Second)
		if n := countEvents(p); n != 1 {
			t.Errorf("silence caused %d events, want 1", n)
		}
		r := p.Latest("a")
		if r.Err == nil || r.Reply == nil || r.Reply.Sequence != 1 || !r.Fresh(time.Now()) {
			t.Errorf("Latest = %+v, want the last reply and the error", r)
		}
		time.Sleep(10 * time.Second)
		if p.Latest("a").Fresh(time.Now()) {
			t.Error("a reply of 20 s ago is fresh")
		}
	})
}

func TestTrack(t *testing.T) {
	s := &fakeLearners{reply: contract.HeartbeatReply{Attempt: 1, Sequence: 1}}
	runPoller(t, s, func(p *Poller) {
		p.Track(runName, []Target{target("a", 1), target("b", 1)})
		countEvents(p)
		p.Track(runName, []Target{target("b", 2)})
		countEvents(p)
		a, b := s.count("a"), s.count("b")
		if b != 2 || s.asked["b"][1].Attempt != 2 {
			t.Errorf("the changed request was not sent at once: %v", s.asked["b"])
		}
		if p.Latest("a").Reply != nil {
			t.Error("the reply of a learner that was deleted is kept")
		}
		p.Track(runName, []Target{target("b", 2)})
		countEvents(p)
		if s.count("b") != b {
			t.Errorf("tracking the same again asks again: got %v, want %v", s.count("b"), b)
		}
		p.Track(runName, nil)
		time.Sleep(10 * time.Second)
		if s.count("a") != a || s.count("b") != b {
			t.Errorf("learners of a deleted run are polled: got %d and %d requests, want %d and %d",
				s.count("a"), s.count("b"), a, b)
		}
	})
}

func TestNewRequestForOneLearnerPollsNoOther(t *testing.T) {
	s := &fakeLearners{reply: contract.HeartbeatReply{Attempt: 1, Sequence: 1}}
	runPoller(t, s, func(p *Poller) {
		p.Track(runName, []Target{target("a", 1), target("b", 1)})
		countEvents(p)
		p.Track(runName, []Target{target("a", 1), target("b", 2)})
		countEvents(p)
		if a, b := s.count("a"), s.count("b"); a != 1 || b != 2 {
			t.Errorf("a is asked %d times, want once; b %d times, want twice", a, b)
		}
	})
}

func TestSlowLearnerIsPolledOnceAtATime(t *testing.T) {
	s := &fakeLearners{takes: time.Hour}
	runPoller(t, s, func(p *Poller) {
		p.Track(runName, []Target{target("a", 1)})
		time.Sleep(4 * time.Second)
		if got := s.count("a"); got != 1 {
			t.Errorf("asked %d times while the first was not answered", got)
		}
		time.Sleep(4 * time.Second)
		if p.Latest("a").Err == nil || s.count("a") != 2 {
			t.Errorf("after its time is over it is asked again: %d times", s.count("a"))
		}
	})
}

// TestPoster checks that NewPoster reaches a learner that serves with the run's own credentials, and no other learner.
func TestPoster(t *testing.T) {
	key := bytes.Repeat([]byte{7}, 32)
	secrets, err := contract.DeriveCredentials(key, "uid")
	if err != nil {
		t.Fatal(err)
	}
	serving := func(learner contract.Credentials) Target {
		server := httptest.NewUnstartedServer(heartbeat.Handler("uid", learner.AuthorizesManager,
			func(contract.HeartbeatRequest) contract.HeartbeatReply {
				return contract.HeartbeatReply{RunUID: "uid", Attempt: 1}
			}))
		if server.TLS, err = secrets.ServerTLS(); err != nil {
			t.Fatal(err)
		}
		server.StartTLS()
		t.Cleanup(server.Close)
		return Target{Address: strings.TrimPrefix(server.URL, "https://"), Request: contract.HeartbeatRequest{RunUID: "uid"}}
	}
	to, earlier := serving(secrets), serving(contract.Credentials{Token: secrets.Token})
	post := NewPoster(key, time.Now)
	for name, tc := range map[string]struct {
		to          Target
		workerToken bool
		ok          bool
	}{
		"a learner with a token of the manager":                       {to, false, true},
		"a learner of an earlier manager":                             {earlier, true, true},
		"the workers' token at a learner with a token of the manager": {to, true, false},
		"the manager's token at a learner of an earlier manager":      {earlier, false, false},
	} {
		tc.to.WorkerToken = tc.workerToken
		if reply, err := post(t.Context(), tc.to); (err == nil) != tc.ok || tc.ok && reply.Attempt != 1 {
			t.Errorf("%s: posting = %+v, %v", name, reply, err)
		}
	}
	if _, err := NewPoster(bytes.Repeat([]byte{8}, 32), time.Now)(t.Context(), to); err == nil {
		t.Error("a manager with another key was answered")
	}
	if _, err := NewPoster(nil, time.Now)(t.Context(), to); err == nil {
		t.Error("a manager without a key posts")
	}
}

func TestFiguresOfStepsAreReportedAtEveryThirdReply(t *testing.T) {
	s := &fakeLearners{reply: contract.HeartbeatReply{Attempt: 1, Sequence: 1}}
	runPoller(t, s, func(p *Poller) {
		p.Track(runName, []Target{target("a", 1)})
		countEvents(p)
		events := 0
		for sequence := range int64(30) {
			s.setReply(contract.HeartbeatReply{Attempt: 1, Sequence: 2 + sequence}, nil)
			time.Sleep(2 * time.Second)
			events += countEvents(p)
		}
		if events != 10 {
			t.Errorf("a step at each of 30 replies caused %d events, want 10", events)
		}
		s.setReply(contract.HeartbeatReply{Attempt: 1, Sequence: 40}, nil)
		time.Sleep(6 * time.Second)
		if n := countEvents(p); n != 1 {
			t.Errorf("the last step caused %d events, want 1", n)
		}
		full := make([]contract.Record, contract.MaxRecords)
		for number := range int64(3) {
			full[len(full)-1].Number = 1 + number
			s.setReply(contract.HeartbeatReply{Attempt: 1, Sequence: 40, Records: slices.Clone(full)}, nil)
			time.Sleep(2 * time.Second)
			if n := countEvents(p); n != 1 {
				t.Errorf("a reply with as many records as it can have caused %d events, want 1", n)
			}
		}
	})
}

func TestUnusedClientsAreDropped(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	c := &clients{managerKey: bytes.Repeat([]byte{7}, 32), now: func() time.Time { return now },
		byRun: map[clientKey]*client{}}
	use := func(run int) {
		t.Helper()
		if _, err := c.of(Target{Request: contract.HeartbeatRequest{RunUID: strconv.Itoa(run)}}); err != nil {
			t.Fatal(err)
		}
	}
	for run := range manyClients + 10 {
		use(run)
	}
	if len(c.byRun) != manyClients+10 {
		t.Errorf("%d clients in use are kept, want all %d", len(c.byRun), manyClients+10)
	}
	now = now.Add(time.Minute)
	use(0)
	use(manyClients + 10)
	if len(c.byRun) != 2 {
		t.Errorf("%d clients are kept, want the 2 in use", len(c.byRun))
	}
}

// TestReplyIsKeptBounded keeps no more of a reply than the project's own learner sends, and names the parts that it
// leaves out.
func TestReplyIsKeptBounded(t *testing.T) {
	reply := contract.HeartbeatReply{Attempt: 1}
	for n := range int64(2 * contract.MaxRecords) {
		reply.Records = append(reply.Records, contract.Record{Number: n + 1})
	}
	s := &fakeLearners{reply: reply}
	runPoller(t, s, func(p *Poller) {
		p.Track(runName, []Target{target("a", 1)})
		synctest.Wait()
		got := p.Latest("a")
		if got.Reply == nil || len(got.Reply.Records) != contract.MaxRecords || got.Excess != "128 records of 256" {
			t.Errorf("%d records are kept, and the omitted part is %q", len(got.Reply.Records), got.Excess)
		}
	})
}
