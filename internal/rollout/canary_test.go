// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// isCanary reports whether a request is the question that tells an outage from a refusal.
func isCanary(request tinker.SampleRequest) bool { return cmp.Equal(request.Prompt, knownPrompt()) }

// counters lists the re-post counters of the samples that were posted, and counts the questions.
func (e *endpoint) counters() (counters []int64, questions int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, posted := range e.posted {
		if isCanary(posted) {
			questions++
			continue
		}
		counters = append(counters, counterOf(posted))
	}
	return counters, questions
}

// TestRefusedRequests refuses a request and accepts the known prompt each time, and checks that the request is invalid
// after several refusals.
func TestRefusedRequests(t *testing.T) {
	for _, category := range []tinker.Category{tinker.CategoryUser, tinker.CategoryTooLarge} {
		t.Run(string(category), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newEndpoint()
				api.fail = func(_ int, request tinker.SampleRequest) error {
					if isCanary(request) {
						return nil
					}
					return failureOf(category)
				}
				_, err := newPolicy(api).Sample(t.Context(), request())
				if refused := (*episode.RefusedError)(nil); !errors.As(err, &refused) {
					t.Errorf("Sample: %v, want a refused request", err)
				}
				counters, questions := api.counters()
				if diff := cmp.Diff([]int64{0, 1, 2}, counters); diff != "" || questions != maxRefusals {
					t.Errorf("%d questions, want %d; counters (-want +got):\n%s", questions, maxRefusals, diff)
				}
			})
		})
	}
}

// TestRefusalsOfAnOutageAreWaitedOut refuses everything for ten minutes, before or after the endpoint has answered
// once. The refusals are reported. Once the endpoint answers again, the request is sampled under its first number, or
// under a later one if results have failed under the first.
func TestRefusalsOfAnOutageAreWaitedOut(t *testing.T) {
	result := &client.Error{Category: tinker.CategoryUser, Op: "test", RequestID: "r", Status: http.StatusOK}
	for name, tc := range map[string]struct {
		failure  error
		answered bool
		reposts  bool
	}{
		"400, and no answer before": {failureOf(tinker.CategoryUser), false, false},
		"400, and an answer before": {failureOf(tinker.CategoryUser), true, false},
		"413, and an answer before": {failureOf(tinker.CategoryTooLarge), true, false},
		"405, and an answer before": {failureOf(tinker.CategoryUnsupported), true, false},
		"another JSON": {&client.Error{Category: tinker.CategoryProtocol, Op: "test", Method: "POST"}, true,
			false},
		"results that have failed":    {result, true, true},
		"a connection that is closed": {failureOf(tinker.CategoryUnreachable), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newEndpoint()
				p := newPolicy(api)
				if tc.answered {
					first := request()
					first.Member++
					if _, err := p.Sample(t.Context(), first); err != nil {
						t.Fatal(err)
					}
				}
				api.posted = nil
				repaired := time.Now().Add(10 * time.Minute)
				api.fail = func(int, tinker.SampleRequest) error {
					if time.Now().Before(repaired) {
						return tc.failure
					}
					return nil
				}
				done := make(chan error)
				go func() {
					_, err := p.Sample(t.Context(), request())
					done <- err
				}()
				time.Sleep(time.Minute)
				if got := p.worker.config.Pressure.problem(); got.Code != problem.SamplingRefused &&
					client.CategoryFrom(tc.failure) != tinker.CategoryUnreachable {
					t.Errorf("after a minute of refusals the problem is %+v", got)
				}
				if err := <-done; err != nil {
					t.Errorf("Sample: %v", err)
				}
				if got := p.worker.config.Pressure.problem(); got.Code != "" {
					t.Errorf("after a sample the problem is %+v", got)
				}
				if counters, _ := api.counters(); slices.Max(counters) > 0 != tc.reposts {
					t.Errorf("the request was posted under the counters %v, want others than the first: %v", counters, tc.reposts)
				}
			})
		})
	}
}

// TestRefusalsBetweenOutagesAreNotCounted ends outages between refusals, so that only some of the questions are
// answered, and checks that refusals count only if three occur in a row.
func TestRefusalsBetweenOutagesAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newEndpoint()
		questions, refusals := 0, 0
		api.fail = func(_ int, request tinker.SampleRequest) error {
			if isCanary(request) {
				if questions++; questions%3 == 0 {
					return failureOf(tinker.CategoryUser)
				}
				return nil
			}
			if refusals++; refusals <= 20 {
				return failureOf(tinker.CategoryUser)
			}
			return nil
		}
		if _, err := newPolicy(api).Sample(t.Context(), request()); err != nil {
			t.Errorf("Sample: %v", err)
		}
	})
}

// TestEpisodesShareQuestions refuses 256 episodes at once, and again while the first question is open.
func TestEpisodesShareQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newEndpoint()
		p := newPolicy(api)
		api.hold = make(chan struct{})
		var asking sync.WaitGroup
		for range 256 {
			asking.Go(func() {
				if err := p.worker.canaries.accepts(t.Context(), weightsOf(p.group.lease.Load().Sampler)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(api.hold)
		asking.Wait()
		if _, questions := api.counters(); questions > 2 {
			t.Errorf("%d questions were asked for 256 refusals, want 2 at most", questions)
		}
	})
}

// TestQuestionOfAnEpisodeThatEnds ends the episode that asks the question: the others ask it again.
func TestQuestionOfAnEpisodeThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newEndpoint()
		p := newPolicy(api)
		api.hold = make(chan struct{})
		from := weightsOf(p.group.lease.Load().Sampler)
		first, end := context.WithCancel(t.Context())
		go func() { _ = p.worker.canaries.accepts(first, from) }()
		synctest.Wait()
		answers := make(chan error)
		for range 2 {
			go func() { answers <- p.worker.canaries.accepts(t.Context(), from) }()
		}
		synctest.Wait()
		end()
		synctest.Wait()
		close(api.hold)
		for range 2 {
			if err := <-answers; err != nil {
				t.Errorf("the question of another episode: %v", err)
			}
		}
	})
}

// TestOwnWeightsAreMissingByA404Alone checks that other refusals of a sampling session than a 404 are an outage.
func TestOwnWeightsAreMissingByA404Alone(t *testing.T) {
	for _, category := range []tinker.Category{tinker.CategoryUser, tinker.CategoryTooLarge, tinker.CategoryUnsupported,
		tinker.CategoryProtocol} {
		t.Run(string(category), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &refusingSessions{endpoint: newEndpoint(), left: 9, err: failureOf(category)}
				if _, err := newPolicy(api).Sample(t.Context(), request()); err != nil {
					t.Errorf("Sample: %v", err)
				}
			})
		})
	}
}

// refusingSessions is an endpoint that refuses the first sampling sessions.
type refusingSessions struct {
	*endpoint
	left int
	err  error
}

func (e *refusingSessions) CreateSamplingSession(ctx context.Context, session string, seq int64, path,
	base string) (string, error) {
	if e.left--; e.left >= 0 {
		return "", e.err
	}
	return e.endpoint.CreateSamplingSession(ctx, session, seq, path, base)
}
