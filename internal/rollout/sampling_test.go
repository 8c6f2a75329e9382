// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// newPolicy returns the policy with which a worker samples slot 5 at the endpoint.
func newPolicy(api Endpoint) *policy {
	w := New(Config{Endpoint: api, Pressure: &Pressure{}, Logger: slog.New(slog.DiscardHandler)})
	w.setCredits(4)
	w.sessions.use("session-1")
	return &policy{worker: w, group: newActiveGroup(lease(trainKey(5)), nil)}
}

func request() episode.Request {
	return episode.Request{
		Request: rl.Request{Slot: 5, Member: 2, Try: 3, Content: rl.Digest{7}, Repeat: 1}, Prompt: []int32{'h', 'i'},
		Sampling: playing.Sampling{MaxTokens: 9, Temperature: new(0.5), TopP: 0.75, TopK: 12},
		Stop:     renderer.Stop{Tokens: []int32{256}},
	}
}

// counterOf returns the re-post counter that a request was posted under, or -1 if it has another number.
func counterOf(posted tinker.SampleRequest) int64 {
	for counter := range maxReposts + 1 {
		if request().Number(rl.UsePolicy, counter) == *posted.SeqID {
			return int64(counter)
		}
	}
	return -1
}

// TestSamplesAreTriedAgainWithin30Seconds bounds the time from the repair of an endpoint to the next request.
func TestSamplesAreTriedAgainWithin30Seconds(t *testing.T) {
	cases := map[int]time.Duration{0: 0, 1: time.Second, 5: 16 * time.Second, 6: 30 * time.Second, 1000: 30 * time.Second}
	for failures, want := range cases {
		if got := samplePauses.After(failures); got != want {
			t.Errorf("after %d failures a sample waits %v, want %v", failures, got, want)
		}
	}
}

func TestRequestsOfSamples(t *testing.T) {
	api := newEndpoint()
	if _, err := newPolicy(api).Sample(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	number := request().Number(rl.UsePolicy, 0)
	l := lease(trainKey(5))
	want := tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text([]int32{'h', 'i'}), SeqID: &number,
		SamplingSession: "session-1:sample:" + decimal(l.SamplingSession),
		SamplingParams: tinker.SamplingParams{MaxTokens: new(9), Seed: new(int64(request().Seed(rl.UsePolicy, 42))),
			Stop: tinker.Stop{Tokens: []int32{256}}, Temperature: 0.5, TopP: 0.75, TopK: 12},
	}
	if diff := cmp.Diff([]tinker.SampleRequest{want}, api.posted); diff != "" {
		t.Errorf("posted (-want +got):\n%s", diff)
	}
}

// TestRequestsOfSeveralMembers makes one request for four members, and checks that it is repeated with the same seed,
// and that each member gets its own sample.
func TestRequestsOfSeveralMembers(t *testing.T) {
	shared := request()
	shared.Repeat, shared.Try = 0, 0
	api := newEndpoint()
	api.fail = func(n int, _ tinker.SampleRequest) error {
		if n == 0 {
			return failureOf(tinker.CategoryFutureLost)
		}
		return nil
	}
	samples, err := newPolicy(api).SampleGroup(t.Context(), shared, 4)
	if err != nil {
		t.Fatal(err)
	}
	seed := int64(shared.Seed(rl.UseSharedPrompt, 42))
	want := tinker.SampleRequest{
		NumSamples: 4, Prompt: tinker.Text([]int32{'h', 'i'}), SamplingSession: "session-1:sample:" +
			decimal(lease(trainKey(5)).SamplingSession),
		SamplingParams: tinker.SamplingParams{MaxTokens: new(9), Seed: &seed, Stop: tinker.Stop{Tokens: []int32{256}},
			Temperature: 0.5, TopP: 0.75, TopK: 12},
	}
	var posts []tinker.SampleRequest
	for repost := range 2 {
		want.SeqID = new(shared.Number(rl.UseSharedPrompt, repost))
		posts = append(posts, want)
	}
	if diff := cmp.Diff(posts, api.posted); diff != "" {
		t.Errorf("posted (-want +got):\n%s", diff)
	}
	for i, sample := range samples {
		if got, want := sample.Tokens[1], '0'+int32((seed+int64(i))%3); got != want || !sample.Stopped ||
			len(sample.Logprobs) != 3 {
			t.Errorf("the reply to member %d is %+v, want the token %d", i, sample, want)
		}
		if sample.Took != samples[0].Took || sample.Took <= 0 {
			t.Errorf("the reply to member %d took %v, want the time of the request, %v", i, sample.Took, samples[0].Took)
		}
	}
	if len(samples) != 4 {
		t.Errorf("%d members have replies, want 4", len(samples))
	}
}

// TestShortSeeds checks that no seed has more than 31 bits, even after the number of a sample was added to it.
func TestShortSeeds(t *testing.T) {
	w := newPolicy(newEndpoint()).worker
	const longest = 1<<31 - 1
	cases := []struct{ seed, own, shared int64 }{
		{1 << 62, 0, 0}, {1<<62 + 7, 7, 7}, {1<<62 + longest, longest, longest - 7}, {longest - 8, longest - 8, longest - 8},
	}
	for _, tc := range cases {
		w.play.Store(&playConfig{play: contract.Play{ShortSeeds: true}})
		if own, shared := w.seedFor(tc.seed, 1), w.seedFor(tc.seed, 8); own != tc.own || shared != tc.shared {
			t.Errorf("%d is sent as %d for one sample and %d for eight, want %d and %d", tc.seed, own, shared, tc.own, tc.shared)
		}
		w.play.Store(&playConfig{})
		if own, shared := w.seedFor(tc.seed, 1), w.seedFor(tc.seed, 8); own != tc.seed || shared != tc.seed {
			t.Errorf("%d is sent as %d for one sample and %d for eight where long seeds are taken", tc.seed, own, shared)
		}
	}
}

// TestTransientFailuresOfSamples checks that samples that fail for a transient reason are requested again with the
// same seed. Each case has the errors of the first posts, and the re-post counters that are used.
func TestTransientFailuresOfSamples(t *testing.T) {
	cases := map[string]struct {
		failures []tinker.Category
		counters []int64
		takes    time.Duration
	}{
		"nothing fails": {counters: []int64{0}},
		"a lost future is asked for anew": {failures: []tinker.Category{tinker.CategoryFutureLost},
			counters: []int64{0, 1}},
		"a second future is lost": {failures: []tinker.Category{tinker.CategoryFutureLost,
			tinker.CategoryFutureLost}, counters: []int64{0, 1, 2}, takes: time.Second},
		"a failed result is asked for anew": {failures: []tinker.Category{tinker.CategoryServer,
			tinker.CategoryUnknown, tinker.CategoryServer}, counters: []int64{0, 1, 2, 3}, takes: 3 * time.Second},
		"a used number is replaced by the next": {failures: []tinker.Category{tinker.CategoryUser},
			counters: []int64{0, 1}},
		"what was not answered keeps its number": {failures: []tinker.Category{tinker.CategoryUnreachable,
			tinker.CategoryThrottled}, counters: []int64{0, 0, 0}, takes: time.Second},
		"a key that is refused may be repaired": {failures: []tinker.Category{tinker.CategoryUnauthorized},
			counters: []int64{0, 0}},
		"an expired sampling session is made anew": {failures: []tinker.Category{tinker.CategoryNotFound},
			counters: []int64{0, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newEndpoint()
				api.fail = func(n int, _ tinker.SampleRequest) error {
					if n < len(tc.failures) {
						return failureOf(tc.failures[n])
					}
					return nil
				}
				begin := time.Now()
				sample, err := newPolicy(api).Sample(t.Context(), request())
				if err != nil || len(sample.Tokens) != 3 || !sample.Stopped {
					t.Fatalf("Sample = %+v, %v", sample, err)
				}
				if took := time.Since(begin); took != tc.takes {
					t.Errorf("it took %v, want %v", took, tc.takes)
				}
				var counters []int64
				for _, posted := range api.posted {
					if isCanary(posted) {
						continue
					}
					counters = append(counters, counterOf(posted))
					if *posted.SamplingParams.Seed != *api.posted[0].SamplingParams.Seed {
						t.Errorf("the seed changed: got %v, want %v",
							*posted.SamplingParams.Seed, *api.posted[0].SamplingParams.Seed)
					}
				}
				if diff := cmp.Diff(tc.counters, counters); diff != "" {
					t.Errorf("re-post counters (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// wrongLogprobs is an endpoint that returns wrong log-probabilities for the first prompts.
type wrongLogprobs struct {
	*endpoint
	left  int
	wrong []float32
}

func (e *wrongLogprobs) Sample(ctx context.Context, request tinker.SampleRequest) (tinker.SampleResult, error) {
	request.SamplingParams.Seed = new(int64(0))
	result, err := e.endpoint.Sample(ctx, request)
	result.PromptLogprobs = e.wrong
	if e.left--; e.left < 0 {
		result.PromptLogprobs = []float32{float32(math.NaN()), -1}
	}
	return result, err
}

// TestWrongLogprobsAreReported checks that a worker waits for the log-probabilities of a reference or a teacher, and
// reports why, as long as the endpoint returns values that cannot be right.
func TestWrongLogprobsAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		use   rl.Use
		wrong []float32
		says  string
	}{
		"left out for a reference":   {rl.UseReference, nil, "there are 0 for 2 tokens"},
		"left out for a teacher":     {rl.UseTeacher, nil, "there are 0 for 2 tokens"},
		"one too many for a teacher": {rl.UseTeacher, []float32{0, -1, -1}, "there are 3 for 2 tokens"},
		"NaN for a reference":        {rl.UseReference, []float32{0, float32(math.NaN())}, "token 1 has NaN"},
		"0.5 for a teacher":          {rl.UseTeacher, []float32{0, 0.5}, "token 1 has 0.5"},
		"-Inf for a teacher":         {rl.UseTeacher, []float32{0, float32(math.Inf(-1))}, "token 1 has -Inf"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &wrongLogprobs{endpoint: newEndpoint(), left: 20, wrong: tc.wrong}
				p := newPolicy(api)
				s := newScorer(p, tc.use, algorithm.Reference{Checkpoint: "tinker://run/sampler_weights/v0"})
				says := string(tc.use) + ", checkpoint tinker://run/sampler_weights/v0: " + tc.says
				if _, _, err := s.once(t.Context(), request().Prompt, 1, 7); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("once: %v, want %q", err, says)
				}
				api.posted = nil
				var got []float32
				done := make(chan error)
				go func() {
					var err error
					got, err = s.Logprobs(t.Context(), request(), 1)
					done <- err
				}()
				time.Sleep(time.Minute)
				if got := p.worker.config.Pressure.problem(); got.Code != problem.EndpointFailing {
					t.Errorf("after a minute the problem is %+v", got)
				}
				if err := <-done; err != nil || *api.posted[0].SeqID == *api.posted[19].SeqID {
					t.Errorf("Logprobs: %v, after posts with the numbers %d and %d", err, *api.posted[0].SeqID,
						*api.posted[19].SeqID)
				}
				if got := p.worker.config.Pressure.problem(); got.Code != "" {
					t.Errorf("after the answer the problem is %+v", got)
				}
				if diff := cmp.Diff([]float32{-1}, got); diff != "" {
					t.Errorf("log-probabilities (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestPolicyScoresPrompts checks that the policy scores a prompt in the session of its samples, under a number of its
// own.
func TestPolicyScoresPrompts(t *testing.T) {
	impossible := float32(math.Inf(-1))
	api := &wrongLogprobs{endpoint: newEndpoint(), left: 100, wrong: []float32{float32(math.NaN()), impossible}}
	p := newPolicy(api)
	if _, err := p.Sample(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	got, err := p.Logprobs(t.Context(), request(), 1)
	if err != nil || len(got) != 1 || got[0] != impossible {
		t.Fatalf("Logprobs: %v, %v", got, err)
	}
	sampled, scored := api.posted[0], api.posted[1]
	if sampled.SamplingSession != scored.SamplingSession || *sampled.SeqID == *scored.SeqID || !scored.PromptLogprobs ||
		*scored.SeqID != request().Number(rl.UsePrompt, 0) {
		t.Errorf("the prompt is scored by %+v, after the sample of %+v", scored, sampled)
	}
}

func TestPermanentFailuresOfSamples(t *testing.T) {
	always := func(category tinker.Category) func(int, tinker.SampleRequest) error {
		return func(int, tinker.SampleRequest) error { return failureOf(category) }
	}
	missing := map[string]func(*endpoint){
		"weights that are missing":                     func(e *endpoint) { clear(e.weights) },
		"a sampling session that is never there":       func(e *endpoint) { e.fail = always(tinker.CategoryNotFound) },
		"a future that is lost more often than counts": func(e *endpoint) { e.fail = always(tinker.CategoryFutureLost) },
	}
	for name, remove := range missing {
		t.Run(name+" ends the group", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newEndpoint()
				remove(api)
				var missing *policyMissingError
				if _, err := newPolicy(api).Sample(t.Context(), request()); !errors.As(err, &missing) {
					t.Errorf("Sample: %v, want the policy to be missing", err)
				}
			})
		})
	}
}

func TestOldSamplingSessionsAreForgotten(t *testing.T) {
	sessions := newPolicy(newEndpoint()).worker.sessions
	for number := range int64(2 * mostSamplers) {
		for _, asked := range []int64{number, 0} {
			if _, _, err := sessions.sampler(t.Context(), asked, weights{path: "tinker://run/sampler_weights/v0"}); err != nil {
				t.Fatalf("asking for sampling session %d: %v", asked, err)
			}
		}
	}
	if n := len(sessions.samplers); n > mostSamplers {
		t.Errorf("%d sampling sessions are remembered, want %d at most", n, mostSamplers)
	}
}

// TestSessionIsLost checks that the worker waits for another session of the learner after the endpoint has lost one,
// and that the request has the same number in the other session.
func TestSessionIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newEndpoint()
		p := newPolicy(api)
		if _, err := p.Sample(t.Context(), request()); err != nil {
			t.Fatal(err)
		}
		clear(api.sessions)
		clear(api.samplers)
		done := make(chan error, 1)
		go func() {
			_, err := p.Sample(t.Context(), request())
			done <- err
		}()
		synctest.Wait()
		if name := p.worker.sessions.name(); name != "" {
			t.Errorf("the session is still %q", name)
		}
		// The learner has not noticed yet, and still names the lost session. Then it makes another one.
		p.worker.sessions.use("session-1")
		synctest.Wait()
		if name := p.worker.sessions.name(); name != "" {
			t.Errorf("session %q is used", name)
		}
		api.change(func() { api.sessions["session-2"] = true })
		p.worker.sessions.use("session-2")
		if err := <-done; err != nil {
			t.Fatalf("Sample: %v", err)
		}
		first, last := api.posted[0], api.posted[len(api.posted)-1]
		if *last.SeqID != *first.SeqID || last.SamplingSession == first.SamplingSession {
			t.Errorf("posted as %d in %s, before as %d in %s", *last.SeqID, last.SamplingSession, *first.SeqID,
				first.SamplingSession)
		}
	})
}

// TestLostSessionThatIsNamedAgain checks that a session that was found to be lost is used again after lostPeriod if
// the learner still names it: the endpoint may have been wrong.
func TestLostSessionThatIsNamedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sessions{endpoint: newEndpoint(), logger: slog.New(slog.DiscardHandler)}
		s.use("session-1")
		s.lose("session-1")
		s.use("session-1")
		if s.name() != "" {
			t.Errorf("it is used at once: got %q, want none", s.name())
		}
		time.Sleep(lostPeriod)
		synctest.Wait()
		s.use("session-1")
		if s.name() != "session-1" {
			t.Errorf("it is never used: got %v, want session-1", s.name())
		}
	})
}

func TestKeepAliveFollowsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &heartbeats{endpoint: newEndpoint(), beating: map[string]int{}}
		s := &sessions{endpoint: api, logger: slog.New(slog.DiscardHandler)}
		done := make(chan struct{})
		ctx, cancel := contextOf(t)
		go func() {
			defer close(done)
			s.keepAlive(ctx)
		}()
		s.use("session-1")
		synctest.Wait()
		s.use("session-2")
		synctest.Wait()
		if diff := cmp.Diff(map[string]int{"session-1": 0, "session-2": 1}, api.now()); diff != "" {
			t.Errorf("kept alive (-want +got):\n%s", diff)
		}
		api.lose()
		synctest.Wait()
		if s.name() != "" {
			t.Errorf("a lost session is not noticed: got %q, want none", s.name())
		}
		cancel()
		<-done
	})
}

// TestAFailedHeartbeatDoesNotRejectThePolicy checks that a sampling session fails because of its weights only if a
// heartbeat has shown that its session exists. An endpoint that throttles heartbeats says nothing about either.
func TestAFailedHeartbeatDoesNotRejectThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newEndpoint()
		api.weights = map[string]bool{}
		throttled := &throttledHeartbeats{endpoint: api, left: 2, restore: func() {
			api.change(func() { api.weights["tinker://run/sampler_weights/v0"] = true })
		}}
		if _, err := newPolicy(throttled).Sample(t.Context(), request()); err != nil {
			t.Errorf("Sample: %v", err)
		}
	})
}

// throttledHeartbeats is an endpoint that answers the first heartbeats with 429. The last of them calls restore.
type throttledHeartbeats struct {
	*endpoint
	left    int
	restore func()
}

func (e *throttledHeartbeats) Heartbeat(ctx context.Context, session string) error {
	if e.left == 0 {
		return e.endpoint.Heartbeat(ctx, session)
	}
	if e.left--; e.left == 0 {
		e.restore()
	}
	return failureOf(tinker.CategoryThrottled)
}

// TestUnansweredSamplesAreReported makes the first post of a group fail, and checks that a sample that the endpoint
// may still draw is reported before the group is submitted.
func TestUnansweredSamplesAreReported(t *testing.T) {
	cases := map[string]struct {
		failure client.Error
		want    string
	}{
		"no answer": {client.Error{Category: tinker.CategoryUnreachable, MayHaveRun: true, Err: io.ErrUnexpectedEOF},
			exchange.SamplesUnanswered},
		"a future is lost": {client.Error{Category: tinker.CategoryFutureLost, Status: http.StatusGone, RequestID: "f",
			MayHaveRun: true}, exchange.SamplesUnanswered},
		"a poll is given up": {client.Error{Category: tinker.CategoryCanceled, RequestID: "f", MayHaveRun: true,
			Err: context.Canceled}, exchange.SamplesUnanswered},
		"a failed result": {client.Error{Category: tinker.CategoryServer, Status: http.StatusOK, RequestID: "f",
			MayHaveRun: true}, ""},
		"a refusal": {client.Error{Category: tinker.CategoryThrottled, Status: http.StatusTooManyRequests}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, s, api := newScriptedLearner(trainKey(0)), newLearnerService(t), newEndpoint()
			api.fail = func(n int, _ tinker.SampleRequest) error {
				if n == 0 {
					return &tc.failure
				}
				return nil
			}
			s.serve(b, 1)
			s.start("worker-0", api, nil)
			arrive(t, b, trainKey(0))
			if got := see(b, func() string { return b.released[trainKey(0)] }); got != tc.want {
				t.Errorf("reported %q, want %q", got, tc.want)
			}
		})
	}
}

// partsRefused refuses requests for a part of a prompt's log-probabilities, like a server that knows no such field.
type partsRefused struct {
	*endpoint
	asked []int
}

func (e *partsRefused) Sample(ctx context.Context, request tinker.SampleRequest) (tinker.SampleResult, error) {
	e.asked = append(e.asked, request.PromptLogprobsLastN)
	if request.PromptLogprobsLastN != 0 {
		return tinker.SampleResult{}, failureOf(tinker.CategoryUser)
	}
	request.SamplingParams.Seed = new(int64(0))
	result, err := e.endpoint.Sample(ctx, request)
	result.PromptLogprobs = []float32{float32(math.NaN()), -1}
	return result, err
}

// TestPartsOfPromptsAreRefused checks that whole prompts are then requested, under other numbers, and that this is
// remembered only if it helps.
func TestPartsOfPromptsAreRefused(t *testing.T) {
	api := &partsRefused{endpoint: newEndpoint()}
	p := newPolicy(api)
	p.worker.config.Logger = slog.New(slog.DiscardHandler)
	s := newScorer(p, rl.UseTeacher, algorithm.Reference{Checkpoint: "tinker://run/sampler_weights/v0"})
	for range 2 {
		got, err := s.Logprobs(t.Context(), request(), 1)
		if diff := cmp.Diff([]float32{-1}, got); err != nil || diff != "" {
			t.Errorf("log-probabilities (-want +got):\n%s%v", diff, err)
		}
	}
	if diff := cmp.Diff([]int{1, 0, 0}, api.asked); diff != "" {
		t.Errorf("prompt_logprobs_last_n (-want +got):\n%s", diff)
	}
	first := s.policy.worker.scoresWholePrompts.Load()
	api = &partsRefused{endpoint: newEndpoint()}
	api.fail = func(int, tinker.SampleRequest) error { return failureOf(tinker.CategoryUser) }
	p = newPolicy(api)
	s = newScorer(p, rl.UseTeacher, algorithm.Reference{Checkpoint: "tinker://run/sampler_weights/v0"})
	if _, _, err := s.once(t.Context(), request().Prompt, 1, 7); err == nil {
		t.Error("a request that is refused as a whole has an answer")
	}
	if !first || p.worker.scoresWholePrompts.Load() {
		t.Errorf("whole prompts are asked for: %v, and %v where they are refused as well", first,
			p.worker.scoresWholePrompts.Load())
	}
}
