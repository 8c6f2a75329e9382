// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"maps"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
)

// The names in faults and counters of a forward_backward, and of one without a backward pass.
const (
	OpForwardBackward = "forward_backward"
	OpForward         = "forward"
)

// ForwardBackward submits a chunk. Invalid data are reported by the result: a client that sends chunks
// concurrently gets stuck when one of them is refused.
func (m *Models) ForwardBackward(req tinker.ForwardBackwardRequest) (tinker.FutureResponse, error) {
	return m.submit(req.ModelID, submission{
		op:     OpOf(req),
		seq:    req.SeqID,
		chunk:  true,
		digest: digestOfData(req),
		kind:   stats.Training,

		sequences: len(req.Data),
		do:        func(t *trainer, _ *operation) (future.Result, error) { return t.forwardBackward(req) },
	})
}

// OpOf returns the name of the request in faults and counters.
func OpOf(req tinker.ForwardBackwardRequest) string {
	if req.ForwardOnly {
		return OpForward
	}
	return OpForwardBackward
}

func (t *trainer) forwardBackward(req tinker.ForwardBackwardRequest) (future.Result, error) {
	batch, tokens, err := modelData(req.Data)
	if err != nil {
		return future.Result{}, err
	}
	pass := t.adapter.ForwardBackward
	if req.ForwardOnly {
		pass = t.adapter.Forward
	}
	result, err := pass(t.ctx, batch, model.Loss{Name: string(req.Loss.Name), Config: req.Loss.Config})
	if err != nil {
		return future.Result{}, err
	}
	t.models.counters.CountPass(t.payer(), tokens, req.ForwardOnly)
	if !req.ForwardOnly {
		t.sequences += len(req.Data)
	}
	outputs := make([]map[string]tinker.Tensor, len(result.Logprobs))
	for i, logprobs := range result.Logprobs {
		outputs[i] = map[string]tinker.Tensor{tinker.InputLogprobs: tinker.Floats(logprobs,
			shapeOf[int64](result.Shapes[i])...)}
	}
	body, err := tinker.EncodeOutput(tinker.ForwardBackwardResult{
		LossFnOutputType: tinker.OutputArrayRecord, LossFnOutputs: outputs, Metrics: result.Metrics,
	})
	return protoResult(KindOutput, body, err)
}

// modelData converts the datums of a request to datums of the model, and counts their tokens.
func modelData(data []tinker.Datum) (batch []model.Datum, tokens int, err error) {
	if len(data) == 0 {
		return nil, 0, userError("data is empty")
	}
	batch = make([]model.Datum, len(data))
	for i, datum := range data {
		text, ok := datum.ModelInput.TextTokens()
		if !ok {
			return nil, 0, userError("datum %d: only text is supported", i)
		}
		inputs := make(map[string]model.Tensor, len(datum.LossFnInputs))
		for name, tensor := range datum.LossFnInputs {
			dense, err := tensor.Dense()
			if err != nil {
				return nil, 0, userError("datum %d: %s: %s", i, name, err)
			}
			inputs[name] = model.Tensor{Shape: shapeOf[int](dense.Shape), Int: dense.Int, Float: dense.Float}
		}
		batch[i] = model.Datum{Tokens: text, Inputs: inputs}
		tokens += len(text)
	}
	return batch, tokens, nil
}

func shapeOf[To, From int | int64](shape []From) []To {
	out := make([]To, len(shape))
	for i, n := range shape {
		out[i] = To(n)
	}
	return out
}

// OptimStep submits an optimizer step.
func (m *Models) OptimStep(req tinker.OptimStepRequest) (tinker.FutureResponse, error) {
	return m.submit(req.ModelID, submission{
		op:     tinker.TypeOptimStep,
		seq:    req.SeqID,
		digest: digestOf(req),
		kind:   stats.Training,
		do: func(t *trainer, _ *operation) (future.Result, error) {
			result, err := t.step(model.AdamParams(req.AdamParams))
			if err != nil {
				return future.Result{}, err
			}
			return jsonResult(tinker.OptimStepResult{Metrics: result.Metrics}), nil
		},
	})
}

// digest identifies the content of an operation.
type digest [sha256.Size]byte

// digestOf identifies a request of a JSON type.
func digestOf(req any) digest {
	body, err := json.Marshal(req)
	if err != nil { // every request type can be encoded
		panic(err)
	}
	return sha256.Sum256(body)
}

// digestOfData identifies a chunk by the bytes of its numbers.
func digestOfData(req tinker.ForwardBackwardRequest) digest {
	h := sha256.New()
	write(h, req.ForwardOnly, int64(len(req.Data)))
	writeText(h, string(req.Loss.Name))
	for _, name := range slices.Sorted(maps.Keys(req.Loss.Config)) {
		writeText(h, name)
		write(h, req.Loss.Config[name])
	}
	for _, datum := range req.Data {
		for _, chunk := range datum.ModelInput.Chunks {
			writeText(h, chunk.Type)
			write(h, int64(len(chunk.Tokens)), chunk.Tokens, chunk.Data, chunk.Dmel)
		}
		for _, name := range slices.Sorted(maps.Keys(datum.LossFnInputs)) {
			tensor := datum.LossFnInputs[name]
			writeText(h, name)
			write(h, int64(len(tensor.Shape)), tensor.Shape, int64(tensor.Len()), tensor.Int, tensor.Float)
			if tensor.Sparse != nil {
				write(h, tensor.Sparse.Rows, tensor.Sparse.Cols)
			}
		}
	}
	return digest(h.Sum(nil))
}

func writeText(h hash.Hash, text string) { write(h, int64(len(text)), []byte(text)) }

// write adds numbers of fixed sizes, and slices of them, to a hash.
func write(h hash.Hash, values ...any) {
	for _, value := range values {
		if err := binary.Write(h, binary.LittleEndian, value); err != nil {
			panic(err) // a type that has no fixed size
		}
	}
}
