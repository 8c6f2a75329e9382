// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

import (
	"encoding/json"
	"iter"
)

// SDKVersion is the version of the official SDK whose wire format this package has.
const SDKVersion = "0.25.0"

// HeaderAPIKey is the header that carries the API key or the JWT.
const HeaderAPIKey = "X-API-Key"

// These headers are used only between programs of this project. The first two belong to an answer that a broker in
// front of the server makes itself.
const (
	// HeaderBrokerCode has the code of the answer, of package problem.
	HeaderBrokerCode = "X-Tinker-Broker-Code"
	// HeaderBrokerForwarded is true if the server may have executed the request, and otherwise false.
	HeaderBrokerForwarded = "X-Tinker-Broker-Forwarded"
	// HeaderRelayFile, in a request to a relay, is the address of a file that the relay fetches instead of passing the
	// request on to the endpoint.
	HeaderRelayFile = "X-Tinker-Operator-Relay-File"
)

// ConfigRequest is the body of POST client/config and of POST client/dynamic_config.
type ConfigRequest struct {
	SDKVersion string `json:"sdk_version"`
}

// ServerConfig is the response of POST client/config: how clients are to call the server. Decoding sets missing fields
// to the protocol's defaults.
type ServerConfig struct {
	// PJWTAuthEnabled says that clients must exchange the key for a JWT.
	PJWTAuthEnabled bool `json:"pjwt_auth_enabled"`
	// CredentialDefaultSource is api_key or credential_cmd.
	CredentialDefaultSource string `json:"credential_default_source"`
	// SampleDispatchBytes limits the bytes of asample bodies in flight.
	SampleDispatchBytes int64 `json:"sample_dispatch_bytes_semaphore_size"`
	// InflightResponseBytes limits the bytes of large results that are fetched at the same time.
	InflightResponseBytes int64 `json:"inflight_response_bytes_semaphore_size"`
	// ParallelChunks allows clients to send the chunks of one call concurrently. Package client never does.
	ParallelChunks bool `json:"parallel_fwdbwd_chunks"`
	// CompressForwardBackward requires zstd bodies of forward_backward.
	CompressForwardBackward bool `json:"proto_compress_fwdbwd"`
	// MaxChunkLen is the maximum number of datums in a chunk.
	MaxChunkLen int `json:"fwdbwd_max_chunk_len"`
	// MaxChunkBytes is the maximum number of bytes in a chunk, as estimated by Datum.Size.
	MaxChunkBytes int64 `json:"fwdbwd_max_chunk_bytes_count"`
	// DispatchBytes limits the bytes of forward_backward bodies in flight.
	DispatchBytes int64 `json:"fwdbwd_dispatch_bytes_semaphore_size"`
	// BillingPauseSeconds is the time for which the official SDK retries 402.
	BillingPauseSeconds float64 `json:"billing_exception_max_pause_duration_sec"`
	// SampleNoRetries switches the official SDK's retries of sampling off.
	SampleNoRetries bool `json:"sample_no_retries"`
	// SampleStuckDetection switches the official SDK's time limit without progress on.
	SampleStuckDetection bool `json:"sample_enable_stuck_detection"`
	// SampleMaxConcurrent limits the unfinished samples of a sampling session.
	SampleMaxConcurrent int `json:"sample_max_concurrent_requests"`
	// UsePyqwestTransport chooses the official SDK's HTTP library.
	UsePyqwestTransport bool `json:"use_pyqwest_transport"`
	// CreateModelViaLoadWeights allows a load that also creates its model. Package client never does that.
	CreateModelViaLoadWeights bool `json:"create_model_via_load_weights"`
}

// DefaultServerConfig returns the values of fields that a server leaves out.
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

// Chunks splits training data greedily into the data of requests: a chunk ends when it has the maximum number of
// datums, or when another datum would exceed the maximum number of bytes. A datum that is larger is a chunk of its own.
func (c ServerConfig) Chunks(data iter.Seq[Datum]) iter.Seq[[]Datum] {
	return func(yield func([]Datum) bool) {
		var chunk []Datum
		size := int64(0)
		for datum := range data {
			own := datum.Size()
			if len(chunk) > 0 && (len(chunk) >= c.MaxChunkLen || size+own > c.MaxChunkBytes) {
				if !yield(chunk) {
					return
				}
				chunk, size = nil, 0
			}
			chunk, size = append(chunk, datum), size+own
		}
		if len(chunk) > 0 {
			yield(chunk)
		}
	}
}

// UnmarshalJSON sets missing fields to the defaults.
func (c *ServerConfig) UnmarshalJSON(data []byte) error {
	type plain ServerConfig
	*c = DefaultServerConfig()
	return json.Unmarshal(data, (*plain)(c))
}

// DynamicConfig is the response of POST client/dynamic_config.
type DynamicConfig struct {
	RefreshIntervalSec float64 `json:"refresh_interval_sec,omitempty"`
	// SampleCancelEnabled makes clients send CancelFuture for samples that they no longer wait for.
	SampleCancelEnabled bool `json:"sample_cancel_enabled,omitempty"`
}

// TokenResponse is the response of POST auth/token, whose request is an empty object.
type TokenResponse struct {
	JWT string `json:"jwt"`
}

// Health is the response of GET healthz.
type Health struct {
	Status string `json:"status"`
}

// ServerCapabilities is the response of GET get_server_capabilities.
type ServerCapabilities struct {
	SupportedModels []SupportedModel `json:"supported_models"`
}

// SupportedModel is a base model that the server supports.
type SupportedModel struct {
	ModelName string `json:"model_name,omitempty"`
	// MaxContextLength is in tokens; 0 means unknown.
	MaxContextLength int `json:"max_context_length,omitempty"`
	// Trainable and Sampleable are nil if unknown.
	Trainable  *bool `json:"trainable,omitempty"`
	Sampleable *bool `json:"sampleable,omitempty"`
}

// TelemetryResponse is the response of POST telemetry, with status "accepted". Package client sends none.
type TelemetryResponse struct {
	Status string `json:"status"`
}
