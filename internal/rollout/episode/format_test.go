// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// patience is a Format that makes episodes wait a number of times.
type patience struct {
	mu    sync.Mutex
	waits int
	// each is called before a wait.
	each func(err *FormatError)
	// expressed counts the episodes whose first prompt the format could express.
	expressed int
}

func (p *patience) Expressed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expressed++
}

func (p *patience) Awaits(err *FormatError) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits == 0 {
		return false
	}
	p.waits--
	p.each(err)
	return true
}

// watch is a Health that records how tries end.
type watch struct {
	available
	mu   sync.Mutex
	errs []error
}

func (w *watch) Ended(_ bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

// TestPromptsThatTheFormatCannotExpress plays an environment that at first declares tools, or sends a message of a
// role that the format does not have. The group equals the group of an environment that never did so, and the failures
// do not count against the server's health.
func TestPromptsThatTheFormatCannotExpress(t *testing.T) {
	for name, tc := range map[string]struct {
		prompt environment.Prompt
		tools  bool
		says   string
	}{
		"tools": {environment.Prompt{Messages: []chat.Message{{Role: "user", Content: "q"}},
			Tools: []chat.Tool{{Name: "add"}}}, true,
			`environment "env": declaring tools: the renderer's format has no place for it: it requires interaction.toolUse.dialect`},
		"a role": {environment.Prompt{Messages: []chat.Message{{Role: "critic", Content: "q"}}}, false,
			`environment "env", task 0 of split "train": rendering message 0 of role "critic"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := multiTurn(2, keep)
				single := game(func(s *Spec) { s.GroupSize, s.MinMembers = 1, 1 })
				want := play(t, env, says("yes"), single)
				env.first = []environment.Prompt{tc.prompt}
				player, health, problems := newPlayer(t, env, says("yes")), &watch{}, map[string]bool{}
				format := &patience{waits: 6}
				format.each = func(err *FormatError) {
					problems[player.Progress.FormatProblem()] = true
					if err.Tools() != tc.tools {
						t.Errorf("Tools = %v for %v", err.Tools(), err)
					}
					if format.waits == 2 { // The format can express the prompts of the next tries.
						env.first = nil
					}
				}
				player.Format, player.Health = format, health
				group, err := player.Play(t.Context(), single)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, group); diff != "" {
					t.Errorf("group (-never blocked +blocked):\n%s", diff)
				}
				if format.expressed != 1 || player.Progress.FormatProblem() != "" {
					t.Errorf("%d episodes were expressed, and %q is reported at the end", format.expressed,
						player.Progress.FormatProblem())
				}
				delete(problems, "")
				for problem := range problems {
					if !strings.HasPrefix(problem, tc.says) {
						t.Errorf("the problem is %q, want %q", problem, tc.says)
					}
				}
				if len(problems) != 1 {
					t.Errorf("problems are %v, want one", problems)
				}
				for _, err := range health.errs {
					if fault := (*environment.Fault)(nil); errors.As(err, &fault) {
						t.Errorf("the health of the environment has the fault %v", err)
					}
				}
			})
		})
	}
}

// TestEpisodesThatDoNotWaitForTheFormat checks that an episode with a prompt that the format cannot express is left
// out if nothing waits for the format, and also after a reply, which another try would have to sample again.
func TestEpisodesThatDoNotWaitForTheFormat(t *testing.T) {
	tools := environment.Prompt{Messages: []chat.Message{{Role: "user", Content: "q"}}, Tools: []chat.Tool{{Name: "add"}}}
	asks := func(int, []environment.Reply) (environment.Turn, error) {
		return environment.Turn{Prompts: []environment.Prompt{tools}}, nil
	}
	for name, tc := range map[string]struct {
		env   *scripted
		waits int
	}{
		"nobody waits":  {&scripted{first: []environment.Prompt{tools}}, 0},
		"after a reply": {&scripted{step: asks}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			player, health := newPlayer(t, tc.env, says("1")), &watch{}
			player.Format, player.Health = &patience{waits: tc.waits,
				each: func(err *FormatError) { t.Errorf("the episode waits after %v", err) }}, health
			group, err := player.Play(t.Context(), game(nil))
			if err != nil || group.Outcome != rl.EnvironmentFault || group.Members[0].Retries != 0 ||
				!strings.Contains(group.Reason, "declaring tools") {
				t.Errorf("Play = %+v, %v, want a fault without a second try", group, err)
			}
			for _, err := range health.errs {
				if fault := (*environment.Fault)(nil); errors.As(err, &fault) {
					t.Errorf("the health of the environment has the fault %v", err)
				}
			}
		})
	}
}
