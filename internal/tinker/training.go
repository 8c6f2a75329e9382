// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/json"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// LoraConfig describes the adapter that a model trains. Decoding sets missing flags to true.
type LoraConfig struct {
	Rank         int    `json:"rank"`
	Seed         *int64 `json:"seed,omitempty"`
	TrainUnembed bool   `json:"train_unembed"`
	TrainMLP     bool   `json:"train_mlp"`
	TrainAttn    bool   `json:"train_attn"`
}

// DefaultLora returns rank 32 on every kind of layer.
func DefaultLora() LoraConfig {
	return LoraConfig{Rank: 32, TrainUnembed: true, TrainMLP: true, TrainAttn: true}
}

// UnmarshalJSON sets missing fields to the defaults.
func (c *LoraConfig) UnmarshalJSON(data []byte) error {
	type plain LoraConfig
	*c = DefaultLora()
	return json.Unmarshal(data, (*plain)(c))
}

// CreateModelRequest is the body of POST create_model. (Session, ModelSeq) identifies the model: if the request is
// posted again, the server returns the same model.
type CreateModelRequest struct {
	Session      string   `json:"session_id"`
	ModelSeq     int      `json:"model_seq_id"`
	BaseModel    string   `json:"base_model"`
	UserMetadata Metadata `json:"user_metadata,omitempty"`
	// Lora is the zero value if the body has none.
	Lora LoraConfig `json:"lora_config,omitzero"`
	// Type is set by the client.
	Type string `json:"type"`
}

// CreateModelResult is the result of create_model.
type CreateModelResult struct {
	ModelID string `json:"model_id"`
	Type    string `json:"type,omitempty"`
}

// ModelRequest is the body of POST unload_model and of POST get_info.
type ModelRequest struct {
	ModelID string `json:"model_id"`
	Type    string `json:"type"`
}

// UnloadModelResult is the result of unload_model.
type UnloadModelResult struct {
	ModelID string `json:"model_id"`
	Type    string `json:"type,omitempty"`
}

// ModelInfo is the response of POST get_info.
type ModelInfo struct {
	Type      string    `json:"type,omitempty"`
	ModelID   string    `json:"model_id"`
	IsLora    *bool     `json:"is_lora,omitempty"`
	LoraRank  *int      `json:"lora_rank,omitempty"`
	ModelName string    `json:"model_name,omitempty"`
	ModelData ModelData `json:"model_data"`
}

// ModelData describes the base model.
type ModelData struct {
	Arch        string `json:"arch,omitempty"`
	ModelName   string `json:"model_name,omitempty"`
	TokenizerID string `json:"tokenizer_id,omitempty"`
}

// AdamParams are the settings of one optimizer step (AdamW). All are always sent; decoding sets missing ones to the
// protocol's defaults.
type AdamParams struct {
	LearningRate float64 `json:"learning_rate"`
	Beta1        float64 `json:"beta1"`
	Beta2        float64 `json:"beta2"`
	Eps          float64 `json:"eps"`
	WeightDecay  float64 `json:"weight_decay"`
	// GradClipNorm is the maximum norm of the gradient; 0 means no maximum.
	GradClipNorm float64 `json:"grad_clip_norm"`
}

// DefaultAdam returns the protocol's defaults.
func DefaultAdam() AdamParams {
	return AdamParams{LearningRate: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-12}
}

// UnmarshalJSON sets missing fields to the defaults.
func (p *AdamParams) UnmarshalJSON(data []byte) error {
	type plain AdamParams
	*p = DefaultAdam()
	return json.Unmarshal(data, (*plain)(p))
}

// OptimStepRequest is the body of POST optim_step.
type OptimStepRequest struct {
	AdamParams AdamParams `json:"adam_params"`
	ModelID    string     `json:"model_id"`
	SeqID      int64      `json:"seq_id"`
	Type       string     `json:"type"`
}

// OptimStepResult is the result of optim_step. Its metrics may have any names, and may be missing.
type OptimStepResult struct {
	Metrics map[string]float64 `json:"metrics"`
}

// optimStepJSON is an OptimStepResult in JSON, which has null for numbers that are not finite.
type optimStepJSON struct {
	Metrics map[string]*float64 `json:"metrics"`
}

// UnmarshalJSON decodes metrics that are null as NaN.
func (r *OptimStepResult) UnmarshalJSON(data []byte) error {
	var wire optimStepJSON
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	r.Metrics = finiteOrNaN(wire.Metrics)
	return nil
}

// MarshalJSON encodes metrics that are not finite as null.
func (r OptimStepResult) MarshalJSON() ([]byte, error) {
	return json.Marshal(optimStepJSON{NullableMetrics(r.Metrics)})
}

// NullableMetrics returns metrics as servers encode them in JSON: metrics that are not finite are null.
func NullableMetrics(metrics map[string]float64) map[string]*float64 {
	nullable := make(map[string]*float64, len(metrics))
	for name, value := range metrics {
		nullable[name] = nil
		if finite.Is(value) {
			nullable[name] = &value
		}
	}
	return nullable
}

// finiteOrNaN is the inverse: null becomes NaN. It returns nil if there are no metrics.
func finiteOrNaN(nullable map[string]*float64) map[string]float64 {
	if len(nullable) == 0 {
		return nil
	}
	metrics := make(map[string]float64, len(nullable))
	for name, value := range nullable {
		metrics[name] = numberOrNaN(value)
	}
	return metrics
}

// SaveWeightsRequest is the body of POST save_weights.
type SaveWeightsRequest struct {
	ModelID string `json:"model_id"`
	// Path is a name without slashes; if it is empty, the server chooses one.
	Path  string `json:"path,omitempty"`
	SeqID int64  `json:"seq_id"`
	// TTLSeconds is nil if the checkpoint never expires.
	TTLSeconds *int64 `json:"ttl_seconds,omitempty"`
	Overwrite  bool   `json:"overwrite"`
	// UserMetadata is stored with the checkpoint. A save that overwrites replaces it as a whole.
	UserMetadata Metadata `json:"user_metadata,omitempty"`
	Type         string   `json:"type"`
}

// SaveSamplerRequest is the body of POST save_weights_for_sampler: exactly one of Path and
// SamplingSessionSeq is set.
type SaveSamplerRequest struct {
	ModelID string `json:"model_id"`
	// Path is a name without slashes.
	Path string `json:"path,omitempty"`
	// SamplingSessionSeq requests an ephemeral sampling session. Package client never does.
	SamplingSessionSeq *int64 `json:"sampling_session_seq_id,omitempty"`
	// Kind is snapshot, or empty for the same, or inflight for weights that follow the training.
	Kind  string `json:"kind,omitempty"`
	SeqID int64  `json:"seq_id"`
	// TTLSeconds is nil if the checkpoint never expires.
	TTLSeconds *int64 `json:"ttl_seconds,omitempty"`
	// UserMetadata is stored with the checkpoint.
	UserMetadata Metadata `json:"user_metadata,omitempty"`
	Type         string   `json:"type"`
}

// SaveExternalRequest is the body of POST save_weights_external, which saves weights in the format of other programs.
type SaveExternalRequest struct {
	ModelID string `json:"model_id"`
	// Path is a name without slashes.
	Path  string `json:"path"`
	SeqID int64  `json:"seq_id"`
	// TTLSeconds is nil if the checkpoint never expires.
	TTLSeconds *int64 `json:"ttl_seconds,omitempty"`
	// Recipients can decrypt the files; without any, the files are not encrypted.
	Recipients []string `json:"age_encryption_recipients,omitempty"`
	Type       string   `json:"type"`
}

// SaveResult is the result of all saves.
type SaveResult struct {
	// Path is tinker://RUN/KIND/NAME.
	Path string `json:"path,omitempty"`
	// SamplingSession is set only for an ephemeral save.
	SamplingSession string `json:"sampling_session_id,omitempty"`
	Type            string `json:"type,omitempty"`
}

// LoadWeightsRequest is the body of POST load_weights. With ModelID and SeqID it loads into a model; with Session and
// ModelSeq it also creates the model, which servers may allow by a flag of their configuration.
type LoadWeightsRequest struct {
	ModelID string `json:"model_id,omitempty"`
	SeqID   int64  `json:"seq_id,omitempty"`
	// Path is tinker://RUN/weights/NAME.
	Path string `json:"path"`
	// Optimizer also restores the optimizer's state.
	Optimizer    bool     `json:"optimizer"`
	Session      string   `json:"session_id,omitempty"`
	ModelSeq     *int     `json:"model_seq_id,omitempty"`
	BaseModel    string   `json:"base_model,omitempty"`
	UserMetadata Metadata `json:"user_metadata,omitempty"`
	AccessToken  string   `json:"weights_access_token,omitempty"`
	Type         string   `json:"type"`
}

// LoadResult is the result of load_weights.
type LoadResult struct {
	Path    string `json:"path,omitempty"`
	ModelID string `json:"model_id,omitempty"`
	Type    string `json:"type,omitempty"`
}
