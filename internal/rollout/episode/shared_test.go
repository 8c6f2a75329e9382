// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// recordingPolicy records the requests for one member and for several members. The text of a reply names its request.
type recordingPolicy struct {
	// refuse reports which requests for several members are refused. It may be nil.
	refuse func(request Request) bool
	// slow has the durations of requests for several members, by conversation.
	slow map[string]time.Duration

	mu  sync.Mutex
	own []string
	all []string
}

// Sample implements Policy.
func (r *recordingPolicy) Sample(_ context.Context, request Request) (Sample, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = append(r.own, member(request))
	return sampled(" own " + member(request)), nil
}

// SampleGroup implements Policy.
func (r *recordingPolicy) SampleGroup(ctx context.Context, request Request, members int) ([]Sample, error) {
	if err := wait.Sleep(ctx, r.slow[request.Conversation]); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprintf("%s of %d", member(request), members))
	if r.refuse != nil && r.refuse(request) {
		return nil, &RefusedError{Err: errors.New("too long")}
	}
	samples := make([]Sample, members)
	for i := range samples {
		samples[i] = sampled(fmt.Sprintf(" shared %s/%d", nameOf(request), request.Member+i))
	}
	return samples, nil
}

// nameOf names a request by its conversation, or "0" if the conversation has no key.
func nameOf(request Request) string {
	if request.Conversation == "" {
		return "0"
	}
	return request.Conversation
}

// made lists the requests for one member and for several members, sorted.
func (r *recordingPolicy) made() (own, all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.own)), slices.Sorted(slices.Values(r.all))
}

// sharing returns a group of so many members that share their first prompts.
func sharing(members int) Spec {
	return game(func(g *Spec) {
		g.GroupSize, g.MinMembers = members, 1
		g.Settings.Sampling.SharedPrompt, g.Settings.Retries = new(true), 3
	})
}

// pays is an environment of one turn.
func pays() *scripted {
	return &scripted{step: func(int, []environment.Reply) (environment.Turn, error) { return done(1), nil }}
}

// repliesOf lists the texts that each member sampled, in the order of its segments.
func repliesOf(group rl.Group) (texts []string) {
	for _, m := range group.Members {
		for _, s := range segmentsOf(m) {
			text := ""
			for i, token := range s.Tokens {
				if s.Actions[i] && token < end {
					text += string(token)
				}
			}
			texts = append(texts, text)
		}
	}
	return texts
}

func TestSharedPrompt(t *testing.T) {
	policy := &recordingPolicy{}
	group := play(t, pays(), policy, sharing(3))
	own, all := policy.made()
	if diff := cmp.Diff([]string{"0/0/0 of 3"}, all); diff != "" || len(own) > 0 {
		t.Errorf("members made the requests %v of their own; of all members (-want +got):\n%s", own, diff)
	}
	if diff := cmp.Diff([]string{" shared 0/0", " shared 0/1", " shared 0/2"}, repliesOf(group)); diff != "" {
		t.Errorf("replies by member (-want +got):\n%s", diff)
	}
	prompt, reply := int64(len("User: q\n\nAssistant:")), int64(len(" shared 0/0")+1)
	if group.PromptTokens != prompt || group.SampledTokens != 3*reply {
		t.Errorf("%d tokens of prompts and %d of replies were bought, want %d and %d", group.PromptTokens,
			group.SampledTokens, prompt, 3*reply)
	}
	for _, m := range group.Members {
		if m.PromptTokens != prompt || m.SampledTokens != reply {
			t.Errorf("member %d has a prompt of %d tokens and a reply of %d, want %d and %d", m.Index, m.PromptTokens,
				m.SampledTokens, prompt, reply)
		}
	}
}

// TestSharedPromptOfTheFirstRoundAlone plays episodes of two rounds. The prompts of the second round are not shared,
// since they contain the replies of the first.
func TestSharedPromptOfTheFirstRoundAlone(t *testing.T) {
	policy := &recordingPolicy{}
	env := &scripted{step: func(turn int, replies []environment.Reply) (environment.Turn, error) {
		if turn == 1 {
			return done(1), nil
		}
		return environment.Turn{Prompts: ask("q", replies[0].Message.Content, "and?")}, nil
	}}
	play(t, env, policy, sharing(2))
	own, all := policy.made()
	if diff := cmp.Diff([][]string{{"0/1/0", "1/1/0"}, {"0/0/0 of 2"}}, [][]string{own, all}); diff != "" {
		t.Errorf("requests of one member and of all (-want +got):\n%s", diff)
	}
}

// solvers has two prompts of one round.
var solvers = []environment.Prompt{
	{Role: "solver", Conversation: "solver-1", Messages: ask("q")[0].Messages},
	{Role: "solver", Conversation: "solver-2", Messages: ask("q")[0].Messages},
}

// TestSharedPromptsOfOneRound plays two conversations that begin together, as the conversations of solvers do.
func TestSharedPromptsOfOneRound(t *testing.T) {
	policy := &recordingPolicy{}
	env := pays()
	env.first = solvers
	group := play(t, env, policy, sharing(2))
	_, all := policy.made()
	if diff := cmp.Diff([]string{"solver-1 0/0/0 of 2", "solver-2 0/0/0 of 2"}, all); diff != "" {
		t.Errorf("requests of all members (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{" shared solver-1/0", " shared solver-2/0", " shared solver-1/1", " shared solver-2/1"},
		repliesOf(group)); diff != "" {
		t.Errorf("replies by member and solver (-want +got):\n%s", diff)
	}
}

// TestRefusalBesideASharedPrompt refuses one of two prompts while the first member still waits for the other, which it
// no longer needs. All members end with that refusal, and none with the cancellation of the request that the first
// member gave up.
func TestRefusalBesideASharedPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := &recordingPolicy{slow: map[string]time.Duration{"solver-2": time.Second},
			refuse: func(request Request) bool { return request.Conversation == "solver-1" }}
		env := pays()
		env.first = solvers
		player := newPlayer(t, env, policy)
		player.Gate = make(oneAtATime, 1)
		group, err := player.Play(t.Context(), sharing(16))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range group.Members {
			if m.Outcome != rl.InvalidTokens {
				t.Errorf("member %d has the outcome %v, want %v", m.Index, m.Outcome, rl.InvalidTokens)
			}
		}
	})
}

// TestMemberThatIsAskedAgain makes the environment fail for one member. After a fault, the next try makes a request of
// its own. A member for which the environment was unavailable is played again as the same try, with the same reply.
func TestMemberThatIsAskedAgain(t *testing.T) {
	cases := map[string]struct {
		fault   environment.Fault
		own     []string
		replies []string
	}{
		"a fault": {environment.Fault{Err: errors.New("down")}, []string{"1/0/1"},
			[]string{" shared 0/0", " own 1/0/1"}},
		"an unavailable one": {environment.Fault{Unavailable: true, Err: errors.New("down")}, nil,
			[]string{" shared 0/0", " shared 0/1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policy, failed := &recordingPolicy{}, false
				env := &scripted{}
				env.step = func(_ int, replies []environment.Reply) (environment.Turn, error) {
					env.mu.Lock()
					defer env.mu.Unlock()
					if replies[0].Message.Content == "shared 0/1" && !failed {
						failed = true
						return environment.Turn{}, &tc.fault
					}
					return done(1), nil
				}
				group := play(t, env, policy, sharing(2))
				own, all := policy.made()
				if diff := cmp.Diff([][]string{tc.own, {"0/0/0 of 2"}}, [][]string{own, all}); diff != "" {
					t.Errorf("requests of one member and of all (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.replies, repliesOf(group)); diff != "" {
					t.Errorf("replies (-want +got):\n%s", diff)
				}
				prompt := int64(len("User: q\n\nAssistant:"))
				if want := prompt * int64(1+len(own)); group.PromptTokens != want {
					t.Errorf("%d tokens of prompts were bought, want %d", group.PromptTokens, want)
				}
			})
		})
	}
}

// TestRefusedSharedPrompt refuses the request for all members, and checks that it is made only once.
func TestRefusedSharedPrompt(t *testing.T) {
	policy := &recordingPolicy{refuse: func(Request) bool { return true }}
	group := play(t, pays(), policy, sharing(3))
	if _, all := policy.made(); len(all) != 1 {
		t.Errorf("the requests %v were made, want one", all)
	}
	for _, m := range group.Members {
		if m.Outcome != rl.InvalidTokens {
			t.Errorf("member %d has the outcome %v, want %v", m.Index, m.Outcome, rl.InvalidTokens)
		}
	}
}

// oneAtATime is a gate with room for one episode.
type oneAtATime chan struct{}

func (g oneAtATime) Enter(context.Context) error {
	g <- struct{}{}
	return nil
}

func (g oneAtATime) Leave() { <-g }

// TestSharedPromptWithRoomForOneMember plays the members one after the other. The first member makes the request, and
// does not wait for the others.
func TestSharedPromptWithRoomForOneMember(t *testing.T) {
	policy := &recordingPolicy{}
	player := newPlayer(t, pays(), policy)
	player.Gate = make(oneAtATime, 1)
	group, err := player.Play(t.Context(), sharing(4))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{" shared 0/0", " shared 0/1", " shared 0/2", " shared 0/3"},
		repliesOf(group)); diff != "" {
		t.Errorf("replies by member (-want +got):\n%s", diff)
	}
}

// TestGroupsThatShareNothing plays a group of one member, and a group that is too large for one request.
func TestGroupsThatShareNothing(t *testing.T) {
	cases := map[int]struct{ own, all []string }{
		1:              {own: []string{"0/0/0"}},
		mostShared + 2: {all: []string{"0/0/0 of 128", "128/0/0 of 2"}},
	}
	for members, tc := range cases {
		policy := &recordingPolicy{}
		group := play(t, pays(), policy, sharing(members))
		own, all := policy.made()
		if diff := cmp.Diff([][]string{tc.own, tc.all}, [][]string{own, all}); diff != "" {
			t.Errorf("requests of %d members, of one and of several (-want +got):\n%s", members, diff)
		}
		if last := repliesOf(group)[members-1]; members > 1 && last != fmt.Sprintf(" shared 0/%d", members-1) {
			t.Errorf("the last of %d members has the reply %q", members, last)
		}
	}
}

// TestPromptsThatDiffer plays an environment that, against its definition, has a different prompt in each episode. No
// member gets the reply to another member's prompt.
func TestPromptsThatDiffer(t *testing.T) {
	env := &differing{scripted: pays()}
	group := play(t, env, &recordingPolicy{}, sharing(3))
	faults := 0
	for _, m := range group.Members {
		if m.Outcome == rl.EnvironmentFault {
			faults++
		}
	}
	if faults != 2 {
		t.Errorf("%d members have a fault of the environment, want the 2 whose prompts were not sent", faults)
	}
}

// differing has a different prompt in each episode.
type differing struct {
	*scripted
	begun int
}

// Start implements environment.Environment.
func (d *differing) Start(context.Context, environment.Task) (environment.Episode, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened, d.begun = d.opened+1, d.begun+1
	return &differingEpisode{scriptedEpisode{env: d.scripted}, fmt.Sprint("q", d.begun)}, nil
}

type differingEpisode struct {
	scriptedEpisode
	text string
}

// Prompts implements environment.Episode.
func (e *differingEpisode) Prompts(context.Context) ([]environment.Prompt, error) {
	return ask(e.text), nil
}

// sharedTime is a policy whose requests for several members take a fixed time, as the policy measures it.
type sharedTime struct {
	*recordingPolicy
	takes time.Duration
}

// SampleGroup implements Policy.
func (s sharedTime) SampleGroup(ctx context.Context, request Request, members int) ([]Sample, error) {
	samples, err := s.recordingPolicy.SampleGroup(ctx, request, members)
	for i := range samples {
		samples[i].Took = s.takes
	}
	return samples, err
}

// TestTimeOfASharedPrompt checks that the time of the whole request counts against limits.episodeSeconds of each
// member.
func TestTimeOfASharedPrompt(t *testing.T) {
	for takes, want := range map[time.Duration]rl.Outcome{9 * time.Second: rl.Usable, 11 * time.Second: rl.Deadline} {
		spec := sharing(3)
		spec.Settings.Limits.EpisodeSeconds, spec.Settings.Limits.OnLimit = 10, playing.LimitExclude
		policy := sharedTime{&recordingPolicy{}, takes}
		group, err := newPlayer(t, pays(), policy).Play(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if group.Outcome != want {
			t.Errorf("a request of %v makes the group %v: %s, want %v", takes, group.Outcome, group.Reason, want)
		}
		if own, all := policy.made(); len(own) > 0 || len(all) == 0 {
			t.Errorf("a request of %v is made as %v and %v", takes, own, all)
		}
	}
}
