// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import "time"

// Cursor is the position of a page in a listing.
type Cursor struct {
	Offset     int `json:"offset"`
	Limit      int `json:"limit"`
	TotalCount int `json:"total_count"`
}

// TrainingRun is a model in a listing.
type TrainingRun struct {
	TrainingRunID         string      `json:"training_run_id"`
	BaseModel             string      `json:"base_model"`
	ModelOwner            string      `json:"model_owner"`
	IsLora                bool        `json:"is_lora"`
	Corrupted             bool        `json:"corrupted"`
	LoraRank              *int        `json:"lora_rank"`
	LastRequestTime       time.Time   `json:"last_request_time"`
	LastCheckpoint        *Checkpoint `json:"last_checkpoint"`
	LastSamplerCheckpoint *Checkpoint `json:"last_sampler_checkpoint"`
	UserMetadata          Metadata    `json:"user_metadata,omitempty"`
}

// TrainingRunList is the response of GET training_runs.
type TrainingRunList struct {
	TrainingRuns []TrainingRun `json:"training_runs"`
	Cursor       Cursor        `json:"cursor"`
}

// The types of a checkpoint.
const (
	CheckpointTraining = "training"
	CheckpointSampler  = "sampler"
	CheckpointExternal = "external"
)

// Checkpoint is a state or sampler weights in a listing.
type Checkpoint struct {
	// CheckpointID is the kind and the name: weights/0010.
	CheckpointID string `json:"checkpoint_id"`
	// CheckpointType is training, sampler or external.
	CheckpointType string    `json:"checkpoint_type"`
	Time           time.Time `json:"time"`
	TinkerPath     string    `json:"tinker_path"`
	SizeBytes      *int64    `json:"size_bytes,omitempty"`
	Public         bool      `json:"public"`
	UserMetadata   Metadata  `json:"user_metadata,omitempty"`
	// ExpiresAt is nil if the checkpoint never expires.
	ExpiresAt *time.Time `json:"expires_at"`
}

// CheckpointList is the response of GET checkpoints and of GET training_runs/{id}/checkpoints. The cursor
// may be missing from the latter.
type CheckpointList struct {
	Checkpoints []Checkpoint `json:"checkpoints"`
	Cursor      *Cursor      `json:"cursor"`
}

// TTLRequest is the body of PUT ttl.
type TTLRequest struct {
	// TTLSeconds counts from now; nil means never, and is sent as null.
	TTLSeconds *int64 `json:"ttl_seconds"`
}

// ArchiveResponse is the response of GET archive: the address of the archive.
type ArchiveResponse struct {
	URL     string     `json:"url"`
	Expires *time.Time `json:"expires,omitempty"`
}

// ExternalWeightsURLs is the response of GET external_weights_urls: the address of each file by its name.
type ExternalWeightsURLs struct {
	URLs    map[string]string `json:"urls"`
	Expires time.Time         `json:"expires"`
}

// WeightsInfoRequest is the body of POST weights_info.
type WeightsInfoRequest struct {
	TinkerPath string `json:"tinker_path"`
}

// WeightsInfo is the response of POST weights_info: it says which model can load the state.
type WeightsInfo struct {
	BaseModel string `json:"base_model"`
	IsLora    bool   `json:"is_lora"`
	LoraRank  *int   `json:"lora_rank"`
	// TrainUnembed, TrainMLP and TrainAttn are true if they are missing.
	TrainUnembed *bool `json:"train_unembed"`
	TrainMLP     *bool `json:"train_mlp"`
	TrainAttn    *bool `json:"train_attn"`
}
