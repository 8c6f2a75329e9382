// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import "fmt"

// The types of a chunk.
const (
	ChunkText         = "encoded_text"
	ChunkImage        = "image"
	ChunkImagePointer = "image_asset_pointer"
	ChunkDmel         = "dmel"
)

// ModelInput is the input of a model: chunks, usually one of text.
type ModelInput struct {
	Chunks []Chunk `json:"chunks"`
}

// Chunk is a part of a model's input; its Type says which fields it uses.
type Chunk struct {
	// Type is ChunkText, ChunkImage, ChunkImagePointer or ChunkDmel.
	Type string `json:"type"`
	// Tokens of a text chunk.
	Tokens []int32 `json:"tokens,omitempty"`
	// Data and Format (png, jpeg) belong to an image chunk, Location to an image pointer.
	Data           []byte `json:"data,omitempty"`
	Location       string `json:"location,omitempty"`
	Format         string `json:"format,omitempty"`
	ExpectedTokens *int32 `json:"expected_tokens,omitempty"`
	// Dmel is a serialised audio tensor.
	Dmel []byte `json:"dmel,omitempty"`
}

// Text returns an input of one text chunk.
func Text(tokens []int32) ModelInput {
	return ModelInput{Chunks: []Chunk{{Type: ChunkText, Tokens: tokens}}}
}

// TextTokens returns the tokens of all chunks, or false if a chunk is not text.
func (m ModelInput) TextTokens() ([]int32, bool) {
	if len(m.Chunks) == 1 && m.Chunks[0].Type == ChunkText {
		return m.Chunks[0].Tokens, true
	}
	var tokens []int32
	for _, chunk := range m.Chunks {
		if chunk.Type != ChunkText {
			return nil, false
		}
		tokens = append(tokens, chunk.Tokens...)
	}
	return tokens, true
}

// The names of a loss's inputs.
const (
	InputTargetTokens = "target_tokens"
	InputWeights      = "weights"
	InputLogprobs     = "logprobs"
	InputAdvantages   = "advantages"
	// InputSequenceRatioMask is 1 for the tokens over which gspo takes the ratio of a sequence, and 0 for the others.
	InputSequenceRatioMask = "sequence_ratio_mask"
)

// Datum is one training sequence. Position i of the input predicts target i: the caller shifts the targets.
type Datum struct {
	ModelInput ModelInput `json:"model_input"`
	// LossFnInputs are the tensors of the loss by name, each as long as the input.
	LossFnInputs map[string]Tensor `json:"loss_fn_inputs"`
}

// Size estimates the bytes of the datum on the wire, as the limit of a chunk counts them: 4 bytes for a token, and the
// raw bytes of images, audio and tensors.
func (d Datum) Size() int64 {
	var size int64
	for _, chunk := range d.ModelInput.Chunks {
		size += int64(4*len(chunk.Tokens) + len(chunk.Data) + len(chunk.Dmel))
	}
	for _, tensor := range d.LossFnInputs {
		size += tensor.size()
	}
	return size
}

// Validate checks that the datum has a protobuf form: it consists of text, images and audio, and its tensors
// are valid.
func (d Datum) Validate() error {
	for _, chunk := range d.ModelInput.Chunks {
		switch chunk.Type {
		case ChunkText, ChunkImage, ChunkDmel:
		default:
			return fmt.Errorf("chunk of type %q has no protobuf form", chunk.Type)
		}
	}
	for name, tensor := range d.LossFnInputs {
		if err := tensor.Validate(); err != nil {
			return fmt.Errorf("tensor %s: %w", name, err)
		}
	}
	return nil
}

// LossName is the name of a loss.
type LossName string

// The losses.
const (
	LossCrossEntropy       LossName = "cross_entropy"
	LossImportanceSampling LossName = "importance_sampling"
	LossPPO                LossName = "ppo"
	LossCISPO              LossName = "cispo"
	LossGSPO               LossName = "gspo"
	LossDRO                LossName = "dro"
)

// Loss is a loss with its settings.
type Loss struct {
	Name   LossName
	Config map[string]float64
}

// ForwardBackwardRequest is the body of POST forward_backward, in protobuf.
type ForwardBackwardRequest struct {
	ModelID string
	SeqID   int64
	// ForwardOnly computes the loss without gradients.
	ForwardOnly bool
	Loss        Loss
	Data        []Datum
}

// ForwardBackwardJSON is the same body in JSON. Clients before 0.25 sent it, and package client sends it to servers
// that do not read protobuf: with forward_backward_input to forward_backward, and with forward_input to forward.
type ForwardBackwardJSON struct {
	ModelID  string                `json:"model_id"`
	SeqID    int64                 `json:"seq_id"`
	Backward *ForwardBackwardInput `json:"forward_backward_input,omitempty"`
	Forward  *ForwardBackwardInput `json:"forward_input,omitempty"`
}

// ForwardBackwardInput is the data and the loss within ForwardBackwardJSON.
type ForwardBackwardInput struct {
	Data         []Datum            `json:"data"`
	LossFn       LossName           `json:"loss_fn"`
	LossFnConfig map[string]float64 `json:"loss_fn_config,omitempty"`
}

// ForwardBackwardResult is the result of forward_backward and forward.
type ForwardBackwardResult struct {
	LossFnOutputType string `json:"loss_fn_output_type"`
	// LossFnOutputs has the named outputs of each datum, in order. One of them is logprobs: float32, of the shape of
	// target_tokens. Servers may leave out all outputs.
	LossFnOutputs []map[string]Tensor `json:"loss_fn_outputs"`
	// Metrics have names of the form name:reduction.
	Metrics map[string]float64 `json:"metrics"`
}
