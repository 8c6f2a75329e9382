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
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// maxSamples is the largest number of completions of one request.
const maxSamples = 1024

// OpSample is the name of a request for samples in faults and counters.
const OpSample = "asample"

// sampleKey identifies a request for samples. It is zero for a request without a number or without a
// sampling session, which is never a repetition of another.
type sampleKey struct {
	sampler string
	seq     int64
}

// sampleRequests holds the requests for samples whose futures still exist. Samplers guards it.
type sampleRequests struct {
	byKey map[sampleKey]accepted
	keys  []sampleKey // the oldest first
}

func (r *sampleRequests) add(key sampleKey, request accepted) {
	r.byKey[key] = request
	r.keys = append(r.keys, key)
}

// sweep removes the oldest requests whose futures no longer exist.
func (r *sampleRequests) sweep(table *future.Table) {
	for range min(2, len(r.keys)) { // two for each request that is added
		oldest := r.keys[0]
		if _, err := table.Lookup(r.byKey[oldest].requestID); err == nil {
			return
		}
		delete(r.byKey, oldest)
		r.keys = r.keys[1:]
	}
}

// Sample draws completions, once for each (sampling session, seq_id) while the result exists.
func (s *Samplers) Sample(req tinker.SampleRequest) (tinker.FutureResponse, error) {
	from, err := s.samplerFor(req)
	if err != nil {
		return tinker.FutureResponse{}, err
	}
	request, err := s.newRequest(from, req)
	if err != nil {
		return tinker.FutureResponse{}, err
	}
	key := keyOfRequest(from, req)
	s.mu.Lock()
	defer s.mu.Unlock()
	if earlier, ok := s.requests.byKey[key]; ok {
		if earlier.digest != digestOf(req) {
			return tinker.FutureResponse{}, badRequest("seq_id %d was used for other samples", key.seq)
		}
		return sampleFuture(earlier.requestID, req.NumSamples), nil
	}
	o := s.newOperation(fault.Call{Op: OpSample, Session: from.id, Model: from.path.Run, Name: from.pathText(),
		Seq: key.seq})
	if o.faults.Has(fault.IgnoreSeed) {
		reseed(request, o.result.ID())
	}
	if o.faults.Has(fault.ReorderSamples) {
		sum := digestOf(o.result.ID())
		request.Reorder(binary.LittleEndian.Uint64(sum[:]))
	}
	perturb(request, o.result.ID(), s.options.SampleNoise)
	o.ready = s.options.Latency.Sample(from.path.Run, from.pathText(), seeds(request))
	o.result.AllowCancel()
	if err := s.submit(from, o, request, req.TargetPromptLogprobs); err != nil {
		o.result.Lose()
		return tinker.FutureResponse{}, err
	}
	if key != (sampleKey{}) {
		s.requests.sweep(s.futures)
		s.requests.add(key, accepted{digest: digestOf(req), requestID: o.result.ID()})
	}
	return sampleFuture(o.result.ID(), req.NumSamples), nil
}

func keyOfRequest(from *sampler, req tinker.SampleRequest) sampleKey {
	if req.SeqID == nil || from.id == "" {
		return sampleKey{}
	}
	return sampleKey{sampler: from.id, seq: *req.SeqID}
}

// samplerFor finds the weights of a request: by sampling session, or else by path or base model.
func (s *Samplers) samplerFor(req tinker.SampleRequest) (*sampler, error) {
	if req.SamplingSession != "" {
		return s.get(req.SamplingSession)
	}
	from, err := s.findSource(req.BaseModel, req.ModelPath, "")
	return &sampler{source: from, ctx: s.background.ctx}, err
}

func sampleFuture(id string, samples int) tinker.FutureResponse {
	future := tinker.FutureResponse{RequestID: id}
	for i := range samples {
		future.SampleSequenceIDs = append(future.SampleSequenceIDs, fmt.Sprintf("%s:%d", id, i))
	}
	return future
}

// submit submits a request to the engine, at once if no fault delays it. The request is abandoned if the sampler ends
// before there is a result.
func (s *Samplers) submit(from *sampler, o *operation, request *sampling.Request, targets *tinker.Tensor) error {
	ctx := from.ctx
	stop := context.AfterFunc(ctx, o.result.Abandon)
	request.Canceled = o.result.Done()
	request.Done = func(output sampling.Output, err error) {
		// The end of ctx is seen here before or after AfterFunc sees it.
		if !stop() || ctx.Err() != nil {
			o.result.Abandon()
			return
		}
		result, err := sampleResult(output, targets, err)
		if err == nil {
			s.counters.CountSample(s.payer(from), len(request.Prompt), sampledTokens(output))
		}
		o.settle(ctx, result, err)
	}
	if !o.faults.Waits() && o.faults.Failure(fault.Execute) == nil {
		err := s.engine.Submit(request)
		if err != nil {
			stop()
		}
		return err
	}
	return s.background.start(func() {
		err := o.begin(ctx)
		if err == nil {
			err = s.engine.Submit(request)
		}
		if err != nil {
			request.Done(sampling.Output{}, err)
		}
	})
}

// payer returns whom the samples of a sampler are billed to.
func (s *Samplers) payer(from *sampler) stats.Payer {
	return stats.Payer{Session: from.session, BaseModel: from.base, At: s.options.Clock()}
}

// newRequest validates a request and converts it to the engine's types.
func (s *Samplers) newRequest(from *sampler, req tinker.SampleRequest) (*sampling.Request, error) {
	prompt, err := promptOf(req)
	if err != nil {
		return nil, err
	}
	base, err := s.bases.get(from.base)
	if err != nil {
		return nil, badRequest("%s", err)
	}
	row := newRow(from, req, prompt, base.Context())
	if err := base.Validate(row); err != nil {
		return nil, badRequest("%s", err)
	}
	targets, err := targetsOf(req.TargetPromptLogprobs, len(prompt))
	if err != nil {
		return nil, err
	}
	forced := s.options.ForcedSamples.Rule(base.Text(prompt))
	request := &sampling.Request{
		Key:            string(from.weights),
		Prompt:         prompt,
		PromptLogprobs: req.PromptLogprobs,
		TopK:           req.TopkPromptLogprobs,
		Targets:        targets,
	}
	if req.PromptLogprobsLastN > 0 {
		request.Unscored = len(prompt) - req.PromptLogprobsLastN
	}
	for i := range req.NumSamples {
		row.Index = i
		row.Forced = forced.Tokens(row.Seed, i)
		request.Rows = append(request.Rows, row)
		if sample, ok := s.bases.reply(from.base, base.Text(prompt), row.MaxTokens, row.StopTokens); ok {
			if req.TopkSampleLogprobs > 0 {
				return nil, badRequest("topk_sample_logprobs is not supported of %s, which replies by rule", from.base)
			}
			request.Ready = append(request.Ready, sample)
		}
	}
	return request, nil
}

// promptOf returns the prompt of a request whose numbers are within their bounds.
func promptOf(req tinker.SampleRequest) ([]int32, error) {
	prompt, ok := req.Prompt.TextTokens()
	switch {
	case !ok:
		return nil, badRequest("only text prompts are supported")
	case req.NumSamples < 1 || req.NumSamples > maxSamples:
		return nil, badRequest("num_samples must be from 1 to %d", maxSamples)
	case req.TopkPromptLogprobs < 0 || req.TopkPromptLogprobs > model.Vocab:
		return nil, badRequest("topk_prompt_logprobs must be from 0 to %d", model.Vocab)
	case req.TopkSampleLogprobs < 0 || req.TopkSampleLogprobs > model.Vocab:
		return nil, badRequest("topk_sample_logprobs must be from 0 to %d", model.Vocab)
	case req.PromptLogprobsLastN != 0 && (!req.PromptLogprobs || req.PromptLogprobsLastN < 1 ||
		req.PromptLogprobsLastN >= len(prompt)):
		return nil, badRequest("prompt_logprobs_last_n needs prompt_logprobs, and must be from 1 to %d", len(prompt)-1)
	}
	return prompt, nil
}

// newRow returns the first of the completions that a request asks for. Without max_tokens it may fill the context.
func newRow(from *sampler, req tinker.SampleRequest, prompt []int32, context int) model.SampleRequest {
	params := req.SamplingParams
	row := model.SampleRequest{
		Prompt:      prompt,
		MaxTokens:   context,
		Temperature: params.Temperature,
		TopP:        params.TopP,
		TopK:        params.TopK,
		Seed:        seedOf(from, req),
		StopTokens:  params.Stop.Tokens,
		StopStrings: params.Stop.Strings,

		Alternatives: req.TopkSampleLogprobs,
	}
	if params.MaxTokens != nil {
		row.MaxTokens = *params.MaxTokens
	}
	return row
}

// seedOf returns the seed of a request. If the request has none, the seed depends on the identity of the request.
func seedOf(from *sampler, req tinker.SampleRequest) uint64 {
	if req.SamplingParams.Seed != nil {
		return uint64(*req.SamplingParams.Seed)
	}
	sum := digestOf([]any{from.id, from.weights, req.SeqID})
	return binary.LittleEndian.Uint64(sum[:8])
}

// reseed replaces the seed of a request by one that depends on the request id, which is unique.
func reseed(request *sampling.Request, id string) {
	sum := digestOf(id)
	for i := range request.Rows {
		request.Rows[i].Seed = binary.LittleEndian.Uint64(sum[:8])
	}
}

// seeds returns the seeds of a request's samples.
func seeds(request *sampling.Request) []uint64 {
	seeds := make([]uint64, len(request.Rows))
	for i, row := range request.Rows {
		seeds[i] = row.Seed + uint64(row.Index) // the index distinguishes the samples of one prompt
	}
	return seeds
}

// perturb adds noise to the logits of a request. It depends on the seed and on the request id, so that a
// repetition under another id draws other noise with the same random numbers.
func perturb(request *sampling.Request, id string, sigma float64) {
	if sigma == 0 {
		return
	}
	for i := range request.Rows {
		row := &request.Rows[i]
		sum := digestOf([]any{"noise", id, row.Seed})
		row.Noise, row.NoiseKey = sigma, binary.LittleEndian.Uint64(sum[:8])
	}
}

// sampleResult encodes the output of the engine.
func sampleResult(output sampling.Output, targets *tinker.Tensor, err error) (future.Result, error) {
	if err != nil {
		return future.Result{}, err
	}
	result := tinker.SampleResult{PromptLogprobs: output.PromptLogprobs,
		TopkPromptLogprobs:   topk(output.TopIDs, output.TopLogprobs),
		TargetPromptLogprobs: scored(targets, output.TargetLogprobs)}
	for _, sample := range output.Samples {
		reason := tinker.StopReasonLength
		if sample.Stopped {
			reason = tinker.StopReasonStop
		}
		result.Sequences = append(result.Sequences, tinker.SampledSequence{
			StopReason: reason, Tokens: sample.Tokens, Logprobs: sample.Logprobs,
			TopkLogprobs: topk(sample.TopIDs, sample.TopLogprobs),
		})
	}
	body, err := tinker.EncodeSample(result)
	return protoResult(KindSample, body, err)
}

func topk(ids [][]int32, logprobs [][]float32) [][]tinker.TokenLogprob {
	if ids == nil {
		return nil
	}
	rows := make([][]tinker.TokenLogprob, len(ids))
	for i, row := range ids {
		for j, id := range row {
			rows[i] = append(rows[i], tinker.TokenLogprob{Token: id, Logprob: logprobs[i][j]})
		}
	}
	return rows
}

// sampledTokens counts the tokens of all samples.
func sampledTokens(output sampling.Output) (tokens int) {
	for _, sample := range output.Samples {
		tokens += len(sample.Tokens)
	}
	return tokens
}
