// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/renderer"
	"github.com/tinker-operator/tinker-operator/internal/rollout/episode"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// Judges makes the judges that sample at the run's own endpoint, and holds the problem of judges of any kind. The
// builder of environments and the worker share them.
type Judges struct {
	// Renderer returns the renderer of a base model: the renderer with the given name, or the model's own if the name is
	// empty.
	Renderer func(ctx context.Context, model, name string) (renderer.Renderer, error)
	// BaseModel returns the base model of a checkpoint.
	BaseModel func(ctx context.Context, checkpoint string) (string, error)

	worker atomic.Pointer[Worker]
	// problem is the reason why a judge cannot be asked; nil if there is none.
	problem atomic.Pointer[problem.Problem]
}

// New returns a judge; it is made for registry.Builder.TinkerJudge.
func (j *Judges) New(definition settings.Judge) (rubric.Judge, error) {
	if definition.Tinker == nil {
		return nil, errors.New("the judge is not one on Tinker")
	}
	return &judge{judges: j, definition: definition}, nil
}

// Report records the error because of which a judge cannot be asked; nil means that the judge can be asked. It is
// made for registry.Builder.JudgeProblem.
func (j *Judges) Report(err error) {
	if err == nil {
		j.problem.Store(nil)
		return
	}
	found := problem.Problem{Code: problem.JudgeBlocked, Evidence: contract.Truncate(err.Error(), maxDataProblem)}
	if client.CategoryFrom(err) == "" { // The judge is a server other than the endpoint.
		found.Code = transport.Refine(found.Code, err)
	}
	j.problem.Store(&found)
}

// reported returns the reason why a judge cannot be asked; the zero value means that there is none.
func (j *Judges) reported() problem.Problem {
	if found := j.problem.Load(); found != nil {
		return *found
	}
	return problem.Problem{}
}

// judge samples judgements. It has a sampling session of its own within the rollout session, which all workers of the
// run share: a request that another worker made before is answered with the sample that was paid for.
type judge struct {
	judges     *Judges
	definition settings.Judge

	mu       sync.Mutex
	renderer renderer.Renderer
}

var _ rubric.Judge = (*judge)(nil)

// Complete implements rubric.Judge.
func (j *judge) Complete(ctx context.Context, request rubric.Request) (string, rubric.Usage, error) {
	format, err := j.format(ctx)
	if err != nil {
		return "", rubric.Usage{}, &rubric.UnavailableError{Err: fmt.Errorf("preparing the judge %s: %w", j.name(), err)}
	}
	prompt, err := format.Prompt(renderer.Conversation{Messages: request.Messages})
	if err != nil {
		return "", rubric.Usage{}, &environment.Fault{Kind: environment.JudgeFault, Permanent: true,
			Err: fmt.Errorf("rendering the request of a judge: %w", err)}
	}
	sample, err := j.sample(ctx, request, prompt, format.Stop())
	if err != nil {
		return "", rubric.Usage{}, err
	}
	usage := rubric.Usage{PromptTokens: int64(len(prompt)), SampledTokens: int64(len(sample.Tokens))}
	parsed, err := format.Parse(sample.Tokens)
	switch {
	case err != nil:
		return "", usage, &rubric.ReplyError{Err: fmt.Errorf("reading the tokens of the judge %s: %w", j.name(), err)}
	case parsed.Ending == renderer.Truncated:
		err := fmt.Errorf("the judge %s was cut after %d tokens: raise the judge's sampling.maxTokens", j.name(),
			len(sample.Tokens))
		return "", usage, &rubric.ReplyError{Err: err}
	}
	return parsed.Message.Content, usage, nil
}

func (j *judge) name() string { return j.definition.Tinker.Model + j.definition.Tinker.Checkpoint }

// format returns the renderer, which is made once.
func (j *judge) format(ctx context.Context) (renderer.Renderer, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.renderer != nil {
		return j.renderer, nil
	}
	model := j.definition.Tinker.Model
	if model == "" {
		var err error
		if model, err = j.judges.BaseModel(ctx, j.definition.Tinker.Checkpoint); err != nil {
			return nil, fmt.Errorf("asking for the checkpoint's model: %w", err)
		}
	}
	made, err := j.judges.Renderer(ctx, model, j.definition.Tinker.Renderer)
	if err != nil {
		return nil, err
	}
	j.renderer = made
	return made, nil
}

// sample samples a judgement. Like a policy, it tries again after every transient failure, with the same seed.
func (j *judge) sample(ctx context.Context, request rubric.Request, prompt []int32,
	stop renderer.Stop) (tinker.SampledSequence, error) {
	worker := j.judges.worker.Load()
	if worker == nil {
		return tinker.SampledSequence{}, &rubric.UnavailableError{Err: errors.New("the worker has not begun")}
	}
	var counts failures
	for {
		sample, key, err := j.once(ctx, worker, request, prompt, stop, counts.reposts)
		if err == nil && counts.all > 0 {
			worker.config.Pressure.succeed(true)
		}
		if err == nil || ctx.Err() != nil {
			return sample, err
		}
		var missing *policyMissingError
		var refused *episode.RefusedError
		err = worker.prepareRetry(ctx, err, key, j.weights(), &counts)
		switch {
		case errors.As(err, &missing):
			err := fmt.Errorf("the endpoint cannot sample from the judge %s: %w: correct the judge's tinker.model or "+
				"tinker.checkpoint", j.name(), missing.err)
			return sample, &rubric.UnavailableError{Err: err}
		case errors.As(err, &refused):
			return sample, &environment.Fault{Kind: environment.JudgeFault, Permanent: true, Err: refused}
		}
		if err := wait.Sleep(ctx, samplePauses.After(counts.all)); err != nil {
			return sample, err
		}
		counts.all++
	}
}

// once samples a judgement under one number.
func (j *judge) once(ctx context.Context, worker *Worker, request rubric.Request, prompt []int32, stop renderer.Stop,
	reposts int) (tinker.SampledSequence, samplerKey, error) {
	// The wait for other requests does not count as the episode's work.
	resume := environment.RecorderFrom(ctx).Pause()
	err := worker.samples.enter(ctx, rankFrom(ctx))
	if err == nil {
		defer worker.samples.leave()
	}
	var key samplerKey
	var session string
	if err == nil {
		key, session, err = worker.sessions.sampler(ctx, j.session(), j.weights())
	}
	resume()
	if err != nil {
		return tinker.SampledSequence{}, key, err
	}
	seed := digestNumber("tinker-operator judge sample 1", nil, request.Seed, uint64(request.Call), uint64(request.Try))
	number := digestNumber("tinker-operator judge request 1", prompt, uint64(seed), uint64(reposts))
	seed = worker.seedFor(seed, 1)
	topP, topK, maxTokens := 1.0, -1, int(j.definition.Sampling.MaxTokens)
	result, err := worker.config.Endpoint.Sample(client.WithUse(ctx, client.UseJudge), tinker.SampleRequest{
		NumSamples: 1, Prompt: tinker.Text(prompt), SamplingSession: session, SeqID: &number,
		SamplingParams: tinker.SamplingParams{
			MaxTokens: &maxTokens, Seed: &seed, Stop: tinker.Stop(stop),
			Temperature: *j.definition.Sampling.Temperature, TopK: topK, TopP: topP,
		},
	})
	if err != nil {
		return tinker.SampledSequence{}, key, fmt.Errorf("sampling a judgement: %w", err)
	}
	return result.Sequences[0], key, nil
}

func (j *judge) weights() weights {
	return weights{path: j.definition.Tinker.Checkpoint, base: j.definition.Tinker.Model}
}

// session returns the number of the judge's sampling session: a digest, in 48 bits, of the weights that the judge
// samples from.
func (j *judge) session() int64 {
	return digestNumber("tinker-operator judge session 1 "+j.name(), nil) & (1<<48 - 1)
}

// digestNumber hashes numbers and tokens to 63 bits. Requests of judges are numbered by their content: a response may
// be judged under many slots and versions of the policy, and the same request has the same answer.
func digestNumber(tag string, tokens []int32, numbers ...uint64) int64 {
	data := []byte(tag)
	for _, n := range numbers {
		data = binary.LittleEndian.AppendUint64(data, n)
	}
	for _, token := range tokens {
		data = binary.LittleEndian.AppendUint32(data, uint32(token))
	}
	sum := sha256.Sum256(data)
	return int64(binary.LittleEndian.Uint64(sum[:8]) & math.MaxInt64)
}

type rankKey struct{}

// withRank returns a context whose requests wait with the rank of a group.
func withRank(ctx context.Context, rank int64) context.Context {
	return context.WithValue(ctx, rankKey{}, rank)
}

// rankFrom returns the rank of a context's group.
func rankFrom(ctx context.Context) int64 {
	rank, _ := ctx.Value(rankKey{}).(int64)
	return rank
}
