// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import "encoding/json"

// SDKVersion is the version of the official SDK whose wire forms this package speaks.
const SDKVersion = "0.25.0"

// HeaderAPIKey is the header that carries the API key or the JWT.
const HeaderAPIKey = "X-API-Key"

// ConfigRequest is the body of POST client/config and of POST client/dynamic_config.
type ConfigRequest struct {
	SDKVersion string `json:"sdk_version"`
}

// ServerConfig is the answer of POST client/config: how the server wants to be spoken to. Decoding fills
// in the protocol's defaults for what the server leaves out.
type ServerConfig struct {
	// PJWTAuthEnabled says that the key is to be exchanged for a JWT.
	PJWTAuthEnabled bool `json:"pjwt_auth_enabled"`
	// CredentialDefaultSource is api_key or credential_cmd.
	CredentialDefaultSource string `json:"credential_default_source"`
	// SampleDispatchBytes bounds the asample bodies under way.
	SampleDispatchBytes int64 `json:"sample_dispatch_bytes_semaphore_size"`
	// InflightResponseBytes bounds the large results that are fetched at the same time.
	InflightResponseBytes int64 `json:"inflight_response_bytes_semaphore_size"`
	// ParallelChunks lets a client send the chunks of one call concurrently. This client never does.
	ParallelChunks bool `json:"parallel_fwdbwd_chunks"`
	// CompressForwardBackward asks for zstd bodies of forward_backward.
	CompressForwardBackward bool `json:"proto_compress_fwdbwd"`
	// MaxChunkLen is the most datums of one chunk.
	MaxChunkLen int `json:"fwdbwd_max_chunk_len"`
	// MaxChunkBytes is the most bytes of one chunk, as estimated by Datum.Size.
	MaxChunkBytes int64 `json:"fwdbwd_max_chunk_bytes_count"`
	// DispatchBytes bounds the forward_backward bodies under way.
	DispatchBytes int64 `json:"fwdbwd_dispatch_bytes_semaphore_size"`
	// BillingPauseSeconds is how long the official SDK sleeps through 402.
	BillingPauseSeconds float64 `json:"billing_exception_max_pause_duration_sec"`
	// SampleNoRetries switches the official SDK's retries of sampling off.
	SampleNoRetries bool `json:"sample_no_retries"`
	// SampleStuckDetection switches the official SDK's time limit without progress on.
	SampleStuckDetection bool `json:"sample_enable_stuck_detection"`
	// SampleMaxConcurrent bounds the unfinished samples of a sampling session.
	SampleMaxConcurrent int `json:"sample_max_concurrent_requests"`
	// UsePyqwestTransport chooses the official SDK's HTTP library.
	UsePyqwestTransport bool `json:"use_pyqwest_transport"`
	// CreateModelViaLoadWeights allows a load that also creates its model. This client never does.
	CreateModelViaLoadWeights bool `json:"create_model_via_load_weights"`
}

// DefaultServerConfig returns the values that hold where a server says nothing.
func DefaultServerConfig() ServerConfig {
	return ServerConfig{
		CredentialDefaultSource: "api_key",
		SampleDispatchBytes:     10 << 20,
		InflightResponseBytes:   50 << 20,
		ParallelChunks:          true,
		MaxChunkLen:             1024,
		MaxChunkBytes:           5_000_000,
		DispatchBytes:           50_000_000,
		BillingPauseSeconds:     3600,
		SampleStuckDetection:    true,
		SampleMaxConcurrent:     2000,
		UsePyqwestTransport:     true,
	}
}

// UnmarshalJSON decodes over the defaults.
func (c *ServerConfig) UnmarshalJSON(data []byte) error {
	type plain ServerConfig
	decoded := plain(DefaultServerConfig())
	if err := json.Unmarshal(data, &decoded); err != nil {
		return err
	}
	*c = ServerConfig(decoded)
	return nil
}

// DynamicConfig is the answer of POST client/dynamic_config.
type DynamicConfig struct {
	RefreshIntervalSec float64 `json:"refresh_interval_sec,omitempty"`
}

// TokenResponse is the answer of POST auth/token, whose request is an empty object.
type TokenResponse struct {
	JWT string `json:"jwt"`
}

// Health is the answer of GET healthz.
type Health struct {
	Status string `json:"status"`
}

// ServerCapabilities is the answer of GET get_server_capabilities.
type ServerCapabilities struct {
	SupportedModels []SupportedModel `json:"supported_models"`
}

// SupportedModel is a base model that the server knows.
type SupportedModel struct {
	ModelName string `json:"model_name,omitempty"`
	// MaxContextLength in tokens; 0 is unsaid.
	MaxContextLength int `json:"max_context_length,omitempty"`
	// Trainable and Sampleable are nil where the server does not say.
	Trainable  *bool `json:"trainable,omitempty"`
	Sampleable *bool `json:"sampleable,omitempty"`
}

// TelemetryResponse is the answer of POST telemetry, with status "accepted". This client sends none.
type TelemetryResponse struct {
	Status string `json:"status"`
}
