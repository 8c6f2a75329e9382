// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// faulty is an environment that misbehaves in one of its methods.
type faulty struct {
	where string
	wrong func()
}

func (f *faulty) at(where string) {
	if f.where == where {
		f.wrong()
	}
}

func (f *faulty) Splits(context.Context) ([]environment.Split, error) { return nil, nil }

func (f *faulty) Start(context.Context, environment.Task) (environment.Episode, error) {
	f.at("Start")
	return faultyEpisode{f}, nil
}

type faultyEpisode struct{ *faulty }

func (e faultyEpisode) Prompts(context.Context) ([]environment.Prompt, error) {
	e.at("Prompts")
	return ask("q"), nil
}

func (e faultyEpisode) Step(context.Context, []environment.Reply) (environment.Turn, error) {
	e.at("Step")
	return environment.Turn{Prompts: ask("q")}, nil
}

func (e faultyEpisode) Finish(context.Context) (environment.Turn, error) {
	e.at("Finish")
	return done(1), nil
}

func (e faultyEpisode) Close(context.Context) { e.at("Close") }

// panickingRenderer panics when it reads a reply.
type panickingRenderer struct{ renderer.Renderer }

func (panickingRenderer) Parse([]int32) (renderer.Parsed, error) { panic("tool call without an end") }

func TestPanicsOfRenderersAreFaults(t *testing.T) {
	p := newPlayer(t, &faulty{}, says("x"))
	p.Renderer, p.Calls = panickingRenderer{p.Renderer}, &environment.Calls{Logger: slog.New(slog.DiscardHandler)}
	group, err := p.Play(t.Context(), game(nil))
	if err != nil {
		t.Fatal(err)
	}
	if group.Outcome != rl.EnvironmentFault || !strings.Contains(group.Reason, "panicked: tool call without an end") {
		t.Errorf("the group is %v (%s), want a fault of the environment with the panic", group.Outcome, group.Reason)
	}
}

// TestPanicsAreFaults checks that a panic of an environment or a renderer is a fault of the member, and ends nothing
// else.
func TestPanicsAreFaults(t *testing.T) {
	for where, want := range map[string]rl.Outcome{
		"Start": rl.EnvironmentFault, "Prompts": rl.EnvironmentFault, "Step": rl.EnvironmentFault,
		"Finish": rl.EnvironmentFault,
		"Close":  rl.Usable, // The episode is over by then.
	} {
		t.Run(where, func(t *testing.T) {
			env := &faulty{where: where, wrong: func() { panic("nil map") }}
			p := newPlayer(t, env, says("x"))
			p.Calls = &environment.Calls{Logger: slog.New(slog.DiscardHandler)}
			group, err := p.Play(t.Context(), game(func(g *Spec) { g.Settings.Limits.Turns = 2 }))
			if err != nil {
				t.Fatal(err)
			}
			if group.Outcome != want || want != rl.Usable && !strings.Contains(group.Reason,
				where+" of the environment panicked: nil map") {
				t.Errorf("the group is %v (%s), want %v with the panic", group.Outcome, group.Reason, want)
			}
		})
	}
}

// TestAbandonedCallsReleaseTheirPlace checks that a call that never returns ends its episode after its time limit,
// leaves the gate, and is counted.
func TestAbandonedCallsReleaseTheirPlace(t *testing.T) {
	for _, where := range []string{"Start", "Prompts", "Step", "Finish", "Close"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release, gate := make(chan struct{}), &countingGate{}
				env := &faulty{where: where, wrong: func() { <-release }}
				p := newPlayer(t, env, says("x"))
				p.Gate, p.Calls = gate, &environment.Calls{Logger: slog.New(slog.DiscardHandler)}
				g := singleMember(func(e *contract.Environment) { e.Limits = playing.Limits{EpisodeSeconds: 60, Turns: 2} })
				began := time.Now()
				if _, err := p.Play(t.Context(), g); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > 2*time.Minute {
					t.Errorf("the group took %v, want at most the limits of the episode and of its end", took)
				}
				if n := gate.inside.Load(); n != 0 {
					t.Errorf("%d places of the gate are taken, want 0", n)
				}
				if got, want := p.Calls.Problem(), fmt.Sprintf("among them %s of the environment", where); !strings.Contains(got,
					want) {
					t.Errorf("problem is %q, want %q in it", got, want)
				}
				close(release)
				synctest.Wait()
				if got := p.Calls.Problem(); got != "" {
					t.Errorf("problem is %q after the call has returned, want none", got)
				}
			})
		})
	}
}

// countingGate counts the episodes that are inside.
type countingGate struct{ inside atomic.Int64 }

func (g *countingGate) Enter(context.Context) error {
	g.inside.Add(1)
	return nil
}

func (g *countingGate) Leave() { g.inside.Add(-1) }
