// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
)

// maxSamples bounds the completions of one request.
const maxSamples = 1024

// OpSample is what faults and counts call a request for samples.
const OpSample = "asample"

// ask names a request for samples.
type ask struct {
	sampler string
	seq     int64
}

// asked remembers which promise each request for samples got, for as long as the promise is kept.
// It is guarded by the mutex of the life.
type asked struct {
	of   map[ask]creation
	line []ask // the oldest in front
}

func (a *asked) add(name ask, what creation) {
	a.of[name] = what
	a.line = append(a.line, name)
}

// sweep forgets the oldest requests whose promises are gone.
func (a *asked) sweep(table *future.Table) {
	for range min(2, len(a.line)) { // faster than they come
		oldest := a.line[0]
		if _, err := table.Lookup(a.of[oldest].requestID); err == nil {
			return
		}
		delete(a.of, oldest)
		a.line = a.line[1:]
	}
}

// Sample draws completions, once for each (sampling session, seq_id) while the result is kept.
func (l *State) Sample(_ context.Context, req tinker.SampleRequest) (tinker.FutureResponse, error) {
	s, err := l.samplerFor(req)
	if err != nil {
		return tinker.FutureResponse{}, err
	}
	request, err := l.newRequest(s, req)
	if err != nil {
		return tinker.FutureResponse{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name, same := nameOf(s, req), digestOf(req)
	before, again := l.asked.of[name]
	switch {
	case again && before.digest != same:
		return tinker.FutureResponse{}, badRequest("seq_id %d was used for other samples", name.seq)
	case again:
		return sampleFuture(before.requestID, req.NumSamples), nil
	}
	o := l.newOperation(fault.Call{Op: OpSample, Session: s.id, Model: s.path.Run, Name: s.pathText(), Seq: name.seq})
	if o.plan.Has(fault.IgnoreSeed) {
		reseed(request, o.promise.ID())
	}
	if err := l.submitSample(o, request); err != nil {
		o.promise.Lose()
		return tinker.FutureResponse{}, err
	}
	if name != (ask{}) {
		l.asked.sweep(l.promises)
		l.asked.add(name, creation{digest: same, requestID: o.promise.ID()})
	}
	return sampleFuture(o.promise.ID(), req.NumSamples), nil
}

// nameOf names a request. It is zero for one that has no number or no sampling session, which is
// never the same as another.
func nameOf(s *sampler, req tinker.SampleRequest) ask {
	if req.SeqID == nil || s.id == "" {
		return ask{}
	}
	return ask{sampler: s.id, seq: *req.SeqID}
}

// samplerFor finds the weights that are asked for: by sampling session, or directly.
func (l *State) samplerFor(req tinker.SampleRequest) (*sampler, error) {
	if req.SamplingSession != "" {
		return l.sampler(req.SamplingSession)
	}
	from, err := l.findSource(req.BaseModel, req.ModelPath, "")
	return &sampler{source: from}, err
}

func sampleFuture(id string, samples int) tinker.FutureResponse {
	future := tinker.FutureResponse{RequestID: id}
	for i := range samples {
		future.SampleSequenceIDs = append(future.SampleSequenceIDs, fmt.Sprintf("%s:%d", id, i))
	}
	return future
}

// submitSample hands a request to the engine, at once if nothing holds it up. The caller holds the mutex.
func (l *State) submitSample(o *operation, request *sampling.Request) error {
	request.Done = func(output sampling.Output, err error) {
		result, err := sampleResult(output, err)
		o.settle(l.ctx, result, err)
	}
	if !o.plan.Waits() && o.plan.Failure(fault.Execute) == nil {
		return l.engine.Submit(request)
	}
	return l.start(func() {
		err := o.begin(l.ctx)
		if err == nil {
			err = l.engine.Submit(request)
		}
		if err != nil {
			o.settle(l.ctx, future.Result{}, err)
		}
	})
}

// newRequest checks what is asked for and puts it into the engine's terms.
func (l *State) newRequest(s *sampler, req tinker.SampleRequest) (*sampling.Request, error) {
	prompt, ok := req.Prompt.TextTokens()
	switch {
	case !ok:
		return nil, badRequest("only text prompts are supported")
	case req.NumSamples < 1 || req.NumSamples > maxSamples:
		return nil, badRequest("num_samples must be from 1 to %d", maxSamples)
	case req.TopkPromptLogprobs < 0 || req.TopkPromptLogprobs > model.Vocab:
		return nil, badRequest("topk_prompt_logprobs must be from 0 to %d", model.Vocab)
	}
	params := req.SamplingParams
	row := model.SampleRequest{
		Prompt:      prompt,
		MaxTokens:   model.MaxContext,
		Temperature: params.Temperature,
		TopP:        params.TopP,
		TopK:        params.TopK,
		Seed:        seedOf(s, req),
		StopTokens:  params.Stop.Tokens,
		StopStrings: params.Stop.Strings,
	}
	if params.MaxTokens != nil {
		row.MaxTokens = *params.MaxTokens
	}
	base, err := l.baseOf(s.base)
	if err == nil {
		err = base.Validate(row)
	}
	if err != nil {
		return nil, badRequest("%s", err)
	}
	rehearse := l.options.ForcedSamples.Rule(base.Text(prompt))
	request := &sampling.Request{
		Key:            string(s.weights),
		Prompt:         prompt,
		PromptLogprobs: req.PromptLogprobs,
		TopK:           req.TopkPromptLogprobs,
	}
	for i := range req.NumSamples {
		row.Index = i
		row.Forced = rehearse.Tokens(row.Seed, i)
		request.Rows = append(request.Rows, row)
	}
	return request, nil
}

// seedOf returns the seed that was asked for, or one that the name of the request decides.
func seedOf(s *sampler, req tinker.SampleRequest) uint64 {
	if req.SamplingParams.Seed != nil {
		return uint64(*req.SamplingParams.Seed)
	}
	name := digestOf([]any{s.id, s.weights, req.SeqID})
	return binary.LittleEndian.Uint64(name[:8])
}

// reseed draws the samples of a request by the name of its promise, which is another each time.
func reseed(request *sampling.Request, name string) {
	other := digestOf(name)
	for i := range request.Rows {
		request.Rows[i].Seed = binary.LittleEndian.Uint64(other[:8])
	}
}

// sampleResult turns what the engine gives into a result.
func sampleResult(output sampling.Output, err error) (future.Result, error) {
	if err != nil {
		return future.Result{}, err
	}
	result := tinker.SampleResult{PromptLogprobs: output.PromptLogprobs, TopkPromptLogprobs: topk(output)}
	for _, sample := range output.Samples {
		reason := tinker.StopReasonLength
		if sample.Stopped {
			reason = tinker.StopReasonStop
		}
		result.Sequences = append(result.Sequences, tinker.SampledSequence{
			StopReason: reason, Tokens: sample.Tokens, Logprobs: sample.Logprobs,
		})
	}
	body, err := tinker.EncodeSample(result)
	return protoResult(KindSample, body, err)
}

func topk(output sampling.Output) [][]tinker.TokenLogprob {
	if output.TopIDs == nil {
		return nil
	}
	rows := make([][]tinker.TokenLogprob, len(output.TopIDs))
	for i, ids := range output.TopIDs {
		for j, id := range ids {
			rows[i] = append(rows[i], tinker.TokenLogprob{Token: id, Logprob: output.TopLogprobs[i][j]})
		}
	}
	return rows
}
