// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
)

// poison is a member whose reply ends the process of the worker that plays it, at each try.
type poison struct {
	slot   int64
	member int
}

func (p poison) isTask(seed uint64) bool {
	of := func(try int) uint64 {
		return rl.EpisodeSeed(uint64(small().Algorithm.Seed), rl.Train, p.slot, p.member, try)
	}
	return seed == of(0) || seed == of(1)
}

// poisonedBuilder builds environments that call step for the reply of one member, and return its error.
type poisonedBuilder struct {
	poison poison
	step   func(ctx context.Context) error
}

func (b poisonedBuilder) Build(ctx context.Context, definition contract.Definition) (environment.Environment, error) {
	env, err := registry.Builder{}.Build(ctx, definition)
	return poisonedEnvironment{env, b}, err
}

type poisonedEnvironment struct {
	environment.Environment
	builder poisonedBuilder
}

func (e poisonedEnvironment) Start(ctx context.Context, task environment.Task) (environment.Episode, error) {
	episode, err := e.Environment.Start(ctx, task)
	if err == nil && task.Split == "train" && e.builder.poison.isTask(task.Seed) {
		return poisonedEpisode{episode, e.builder.step}, nil
	}
	return episode, err
}

type poisonedEpisode struct {
	environment.Episode
	step func(ctx context.Context) error
}

func (e poisonedEpisode) Step(ctx context.Context, _ []environment.Reply) (environment.Turn, error) {
	return environment.Turn{}, e.step(ctx)
}

// mortals are workers that are replaced when they die.
type mortals struct {
	*fixture
	poison poison

	mu     sync.Mutex
	deaths int
}

// start starts a worker, and the next one once the poison has ended it. Like a process that ends, the worker closes
// its connections without a message.
func (m *mortals) start(name string, generation int) {
	var kill func()
	started := make(chan struct{})
	die := func(ctx context.Context) error {
		go func() {
			<-started
			kill()
			m.fixture.mu.Lock()
			m.ahead += 10 * time.Second // The learner need not wait until the worker dials again.
			m.fixture.mu.Unlock()
			m.mu.Lock()
			m.deaths++
			m.mu.Unlock()
			m.start(name, generation+1)
		}()
		<-ctx.Done()
		return ctx.Err()
	}
	kill = m.startRolloutWorkerWith(fmt.Sprintf("%s-%d", name, generation), func(c *rollout.Config) {
		c.Environments = poisonedBuilder{m.poison, die}
		client, err := exchange.NewClient(exchange.ClientConfig{
			Address: m.file.LearnerAddress, Credentials: m.credentials, RunUID: m.file.Run.UID, SpecDigest: m.file.SpecDigest,
			Version: m.file.Version, Worker: fmt.Sprintf("%s-%d", name, generation), Logger: m.logger(), Dial: m.dial,
			Renew: 20 * time.Millisecond,
		})
		if err != nil {
			m.t.Error(err)
			return
		}
		c.Learner = closing{client}
	})
	close(started)
}

// closing is a client that closes itself when Run returns, like the client of a process that ends.
type closing struct{ *exchange.Client }

func (c closing) Run(ctx context.Context, worker exchange.Worker) error {
	err := c.Client.Run(ctx, worker)
	return errors.Join(err, c.Close())
}

// withoutTokens removes the metrics that count tokens: the tokens of a member that is not played are not bought.
func withoutTokens(lines []map[string]float64) []map[string]float64 {
	for _, line := range lines {
		maps.DeleteFunc(line, func(name string, _ float64) bool { return strings.Contains(name, "tokens") })
	}
	return lines
}

// TestReplyThatEndsItsWorker ends each worker that plays a certain reply. The run completes with the weights and
// metrics of a run in which the environment faults at that reply: no other member is left out.
func TestReplyThatEndsItsWorker(t *testing.T) {
	t.Parallel()
	bad := poison{slot: 5, member: 2}
	// Each reply counts: an untrained policy gives no right answers.
	byLength := func(f *contract.RunFile) {
		f.Fixed.Environments[0].Definition.Reward = &settings.Reward{RewardRule: settings.RewardRule{
			Expression: "double(size(reply.text)) / 8.0"}}
	}
	reference := newFixture(t, byLength)
	reference.startRolloutWorkerOf("w0", poisonedBuilder{bad, func(context.Context) error {
		return &environment.Fault{Permanent: true, Err: errors.New("the reply cannot be graded")}
	}})
	verdict := reference.waitFor(reference.startLearner(1, nil), contract.CauseCompleted)
	want := reference.weights(verdict)
	undisturbed := newFixture(t, byLength)
	undisturbed.startRolloutWorker("w0")
	if got := undisturbed.weights(undisturbed.waitFor(undisturbed.startLearner(1, nil),
		contract.CauseCompleted)); got == want {
		t.Fatalf("the weights equal the weights of a run without the fault: the member makes no difference: got %v for both",
			got)
	}

	m := &mortals{fixture: newFixture(t, byLength), poison: bad}
	m.start("w0", 0)
	m.start("w1", 0)
	verdict = m.waitFor(m.startLearner(1, nil), contract.CauseCompleted)
	if got := m.weights(verdict); got != want {
		t.Errorf("final adapter is %s, want %s of a run whose environment faults", got, want)
	}
	fault := verdict.Progress.Environments[0].Fault // kubectl tinker why quotes it
	if !strings.Contains(fault, "member 2: workers died while this member alone was played") {
		t.Errorf("the newest fault is %q, want the member that ends its workers", fault)
	}
	if diff := cmp.Diff(withoutTokens(reference.timelessMetrics()), withoutTokens(m.timelessMetrics())); diff != "" {
		t.Errorf("metrics.jsonl (-faulted +died):\n%s", diff)
	}
	if m.deaths != 4 {
		t.Errorf("%d workers died, want 2 to make the group a suspect and 2 with the member alone in play", m.deaths)
	}
}
