// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package episode plays groups: the episodes of one task, from the first prompt to one reward and the segments to train
// on. It knows environments and renderers, but neither Tinker nor the learner: replies come from a Policy.
//
// A group is a function of its Spec, the policy and the environment. Its members are played concurrently, yet the group
// does not depend on which of them ends first: replies are seeded by the content of the request, member and try, or
// drawn by one request of all members, and results are in the order of their members and of the keys of conversations.
//
// A fault of the environment or of a judge gives no reward. The episode is played again with the next try. A member is
// left out and counted if all its tries end in faults. A group becomes a tombstone if it has too few members left, or
// if its rewards are all equal and such groups are dropped.
package episode

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Policy samples replies.
type Policy interface {
	// Sample returns the reply to one request. The same request has the same reply. After a *RefusedError the member
	// has the outcome InvalidTokens; every other error ends the group unfinished.
	Sample(ctx context.Context, request Request) (Sample, error)
	// SampleGroup returns the replies to one request of several members, from request.Member on, in their order. Errors
	// are as for Sample.
	SampleGroup(ctx context.Context, request Request, members int) ([]Sample, error)
}

// Scorer computes the log-probabilities of training data under a model that does not train: the reference of a KL
// penalty, or a teacher.
type Scorer interface {
	// Logprobs returns the log-probability of each of the last tokens of the request's prompt, given all tokens before
	// it. The same request has the same numbers. Errors are as in Policy.
	Logprobs(ctx context.Context, request Request, last int) ([]float32, error)
}

// Request asks for one reply.
type Request struct {
	// Request is the identity of the request, from which seed and number follow.
	rl.Request
	// Turn counts the replies that the conversation has had before.
	Turn   int
	Prompt []int32
	// Taught is the prompt as the teacher reads it; nil if the teacher reads Prompt.
	Taught []int32
	// Sampling is how tokens are drawn; its MaxTokens is the number of tokens that the limits leave.
	Sampling playing.Sampling
	// Stop ends the reply.
	Stop renderer.Stop
}

// Sample is a reply: tokens up to and including the stop, and a log-probability for each.
type Sample struct {
	Tokens   []int32
	Logprobs []float32
	// Stopped is set when a stop ended the reply, and not its length.
	Stopped bool
	// Took is how long the policy worked on the reply: without queueing, pauses, outages and requests that failed.
	Took time.Duration
}

// RefusedError reports that the endpoint refuses the request as invalid, and would refuse it again.
type RefusedError struct{ Err error }

// Error implements error.
func (e *RefusedError) Error() string { return "sampling is refused: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// Gate bounds the episodes in progress.
type Gate interface {
	// Enter waits until one more episode may begin. An error is the context's.
	Enter(ctx context.Context) error
	// Leave ends an episode that entered.
	Leave()
}

// Health tracks whether the environment is available. An episode that waits for it takes no place at the Gate.
type Health interface {
	// Admit waits until an episode may begin. An error is the context's, or a *environment.Fault if the episode should
	// not wait.
	Admit(ctx context.Context) error
	// Begun notes that an episode has begun.
	Begun()
	// Ended notes the error of a try, and whether it had begun.
	Ended(begun bool, err error)
}

// available is the Health of an environment that is always available.
type available struct{}

func (available) Admit(context.Context) error { return nil }
func (available) Begun()                      {}
func (available) Ended(bool, error)           {}

// Progress is the progress of a group. It can be read while the group is played.
type Progress struct {
	// MembersDone counts the members that have their outcome.
	MembersDone atomic.Int64
	// PromptTokens and SampledTokens count the tokens that were paid for, including tries that ended in faults.
	PromptTokens, SampledTokens atomic.Int64

	// Inherited, if not nil, receives the tokens of the prompt and of the reply to each request that an earlier process
	// of the worker has paid for.
	Inherited func(prompt, sampled int)
	// Judged, if not nil, receives each usage of judges.
	Judged func(used environment.JudgeUsage)

	// format is the reason why a member waits for the model's format; nil if none waits.
	format atomic.Pointer[string]

	judgeMutex sync.Mutex
	// judge is the usage of judges.
	judge rl.JudgeUsage
}

// Judge returns the usage of judges so far, including tries that ended in faults.
func (p *Progress) Judge() rl.JudgeUsage {
	p.judgeMutex.Lock()
	defer p.judgeMutex.Unlock()
	return p.judge
}

// count counts the tokens of a request and of the replies to it.
func (p *Progress) count(request Request, replies ...Sample) {
	p.PromptTokens.Add(int64(len(request.Prompt)))
	for _, reply := range replies {
		p.SampledTokens.Add(int64(len(reply.Tokens)))
	}
}

// Spec describes a group to be played.
type Spec struct {
	Key rl.Key
	// Settings of the environment within the run: its name, retries, sampling, limits and reward.
	Settings              contract.Environment
	Split                 string
	Task                  int64
	GroupSize, MinMembers int
	// Seed is the seed of the run.
	Seed uint64
	// StepRewards records the rewards of single replies.
	StepRewards bool
	// Transcript records the conversations for people.
	Transcript bool
	// Faulty are the members that are not played, in a group whose members are played in turn.
	Faulty []int

	// shared are the replies that the members share; nil where each makes requests of its own. Play sets it.
	shared *sharedReplies
	// ungraded are the episodes that are scored together, by their members; nil for every other member. Play sets it.
	ungraded []*episode
}

// Player plays groups of one environment with one policy.
type Player struct {
	Environment environment.Environment
	Renderer    renderer.Renderer
	Policy      Policy
	// Reference and Teacher compute the log-probabilities of a reference and of a teacher; nil if none are recorded.
	Reference, Teacher Scorer
	// Prompts scores prompts under the policy, for agents that ask for scores; nil if prompts cannot be scored.
	Prompts Scorer
	Gate    Gate
	// Health is nil for an environment that is always available.
	Health Health
	// Format decides about episodes whose prompts the model's format cannot express; nil means that they do not wait.
	Format   Format
	Progress *Progress
	// Turn waits until a member may be played, if members are played one after the other; nil means that all are played
	// at once.
	Turn func(ctx context.Context, member int) error
	// Calls counts the calls of the environment that do not return; nil counts nothing.
	Calls *environment.Calls
	// Replies keeps replies to agents until their group is finished; nil keeps none beyond the process.
	Replies Replies
}

// Play plays a group to its end. An error is the context's or the policy's: then there is no group, and nothing
// of it counts.
func (p *Player) Play(ctx context.Context, spec Spec) (rl.Group, error) {
	members := make([]rl.Member, spec.GroupSize)
	reasons := make([]string, spec.GroupSize)
	whole := ctx
	together, ctx := errgroup.WithContext(ctx)
	spec.shared, spec.ungraded = p.shareReplies(ctx, spec), make([]*episode, spec.GroupSize)
	if p.Turn != nil {
		together.Go(func() error { return p.inTurn(ctx, spec, members, reasons) })
	} else {
		for i := range spec.GroupSize {
			together.Go(func() error {
				var err error
				members[i], reasons[i], err = p.member(ctx, spec, i)
				return err
			})
		}
	}
	if err := together.Wait(); err != nil {
		return rl.Group{}, err
	}
	if err := p.gradeTogether(whole, spec, members, reasons); err != nil {
		return rl.Group{}, err
	}
	group := conclude(spec, members, reasons)
	group.PromptTokens = p.Progress.PromptTokens.Load()
	group.SampledTokens = p.Progress.SampledTokens.Load()
	group.Judge = p.Progress.Judge()
	return group, nil
}

// member plays one member, and plays it again after faults; reason says why it is not usable. An episode begins again
// as the same try if the environment is unavailable, if the model's format cannot express its first prompt, or if an
// outage has interrupted it.
func (p *Player) member(ctx context.Context, spec Spec, index int) (m rl.Member, reason string, err error) {
	pauses := wait.Pauses{Backoff: wait.Backoff{First: time.Second, Longest: 30 * time.Second}}
	before := p.interruptionsOf(&spec)
	for try := 0; ; {
		m, reason, err = p.admitted(ctx, spec, index, try, before)
		var fault *environment.Fault
		var unwritten *FormatError
		switch {
		case errors.As(err, &unwritten):
			p.Progress.waitForFormat(spec, unwritten)
		case !errors.As(err, &fault):
			return m, reason, err
		case fault.Interrupted:
			before.times++
		case !fault.Unavailable:
			try++
			before = p.interruptionsOf(&spec)
		}
		if err := pauses.Sleep(ctx); err != nil {
			return rl.Member{}, "", err
		}
	}
}

// admitted plays one try as soon as the environment is available and the gate admits it. The error is a fault if the
// fault leads to another try.
func (p *Player) admitted(ctx context.Context, spec Spec, index, try int, before *interruptions) (m rl.Member,
	reason string, err error) {
	err = p.health().Admit(ctx)
	if err == nil {
		if err := p.Gate.Enter(ctx); err != nil {
			return rl.Member{}, "", err
		}
		defer p.Gate.Leave()
		m, reason, err = p.attempt(ctx, spec, index, try, before)
	}
	m.Index, m.Retries = index, try
	var unwritten *FormatError
	if errors.As(err, &unwritten) {
		if p.awaits(unwritten) {
			return m, "", err
		}
		err = &environment.Fault{Permanent: true, Err: err}
	}
	var fault *environment.Fault
	if errors.As(err, &fault) {
		again := fault.Unavailable || try < spec.Settings.Retries
		if fault.Interrupted {
			again = before.times < mostInterruptions
		}
		if !fault.Permanent && again {
			return m, "", err
		}
		m, reason, err = rl.Member{Index: index, Outcome: outcomeOf(fault), Retries: try, Transcript: m.Transcript},
			fault.Error(), nil
	}
	p.Progress.MembersDone.Add(1)
	return m, reason, err
}

// health returns the Health of the environment, which is never nil.
func (p *Player) health() Health {
	if p.Health == nil {
		return available{}
	}
	return p.Health
}

// attempt plays one try of one member. An error is a *environment.Fault, a *FormatError, the context's or the policy's.
func (p *Player) attempt(ctx context.Context, spec Spec, index, try int, before *interruptions) (rl.Member, string,
	error) {
	e := &episode{player: p, spec: &spec, member: index, try: try, before: before,
		conversations: map[string]*conversation{}}
	e.recorder.progress = p.Progress
	m, reason, err := e.guarded(ctx)
	p.health().Ended(e.running != nil, err)
	if err == nil && m.Outcome == rl.Usable {
		err = e.score(ctx, m)
	}
	var refused *RefusedError
	if errors.As(err, &refused) {
		m, reason, err = rl.Member{Outcome: rl.InvalidTokens}, refused.Error(), nil
	}
	m.Transcript = e.transcript(cmp.Or(reason, messageOf(err)))
	if err == nil && m.Outcome == rl.Usable && e.ungraded != nil {
		spec.ungraded[index] = e
	}
	return m, reason, err
}

func outcomeOf(fault *environment.Fault) rl.Outcome {
	if fault.Kind == environment.JudgeFault {
		return rl.JudgeFault
	}
	return rl.EnvironmentFault
}
