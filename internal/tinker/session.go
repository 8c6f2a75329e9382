// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"bytes"
	"encoding/json"
)

// The values of the field "type" of bodies.
const (
	TypeCreateSession         = "create_session"
	TypeSessionHeartbeat      = "session_heartbeat"
	TypeCreateSamplingSession = "create_sampling_session"
	TypeCreateModel           = "create_model"
	TypeUnloadModel           = "unload_model"
	TypeGetInfo               = "get_info"
	TypeOptimStep             = "optim_step"
	TypeSaveWeights           = "save_weights"
	TypeLoadWeights           = "load_weights"
	TypeSaveSampler           = "save_weights_for_sampler"
	TypeSaveExternal          = "save_weights_external"
	TypeSample                = "sample"
	TypeTryAgain              = "try_again"
)

// Metadata is a user's metadata of a session or model. The API accepts any JSON values and returns strings: decoding
// turns every other value into its JSON text.
type Metadata map[string]string

// UnmarshalJSON converts values to strings.
func (m *Metadata) UnmarshalJSON(data []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if raw == nil {
		*m = nil
		return nil
	}
	out := make(Metadata, len(raw))
	for key, value := range raw {
		text, err := metadataText(value)
		if err != nil {
			return err
		}
		out[key] = text
	}
	*m = out
	return nil
}

func metadataText(value json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(value, &text) == nil && !bytes.Equal(value, []byte("null")) {
		return text, nil
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, value)
	return compact.String(), err
}

// CreateSessionRequest is the body of POST create_session.
type CreateSessionRequest struct {
	Tags         []string `json:"tags"`
	UserMetadata Metadata `json:"user_metadata"`
	SDKVersion   string   `json:"sdk_version"`
	ProjectID    string   `json:"project_id,omitempty"`
	DisplayName  string   `json:"display_name,omitempty"`
	Type         string   `json:"type"`
}

// CreateSessionResponse is the response of POST create_session. The messages are for people.
type CreateSessionResponse struct {
	Type           string  `json:"type,omitempty"`
	Session        string  `json:"session_id"`
	InfoMessage    *string `json:"info_message"`
	WarningMessage *string `json:"warning_message"`
	ErrorMessage   *string `json:"error_message"`
}

// SessionHeartbeat is the body of POST session_heartbeat, and without a session also its response.
type SessionHeartbeat struct {
	Session string `json:"session_id,omitempty"`
	Type    string `json:"type"`
}

// CreateSamplingSessionRequest is the body of POST create_sampling_session.
type CreateSamplingSessionRequest struct {
	Session string `json:"session_id"`
	// Seq is the number within the session; Session and Seq identify the sampling session.
	Seq       int64  `json:"sampling_session_seq_id"`
	BaseModel string `json:"base_model,omitempty"`
	ModelPath string `json:"model_path,omitempty"`
	Type      string `json:"type"`
}

// CreateSamplingSessionResponse is the response of POST create_sampling_session.
type CreateSamplingSessionResponse struct {
	Type            string `json:"type,omitempty"`
	SamplingSession string `json:"sampling_session_id"`
}

// Sampler is the response of GET samplers/{id}.
type Sampler struct {
	SamplerID string  `json:"sampler_id"`
	BaseModel string  `json:"base_model"`
	ModelPath *string `json:"model_path"`
}

// SessionList is the response of GET sessions.
type SessionList struct {
	Sessions []string `json:"sessions"`
}

// SessionInfo is the response of GET sessions/{id}.
type SessionInfo struct {
	TrainingRunIDs []string `json:"training_run_ids"`
	SamplerIDs     []string `json:"sampler_ids"`
}
