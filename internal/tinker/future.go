// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinker

// FutureResponse is the response to every submit. The request id identifies the future of the result.
type FutureResponse struct {
	RequestID string `json:"request_id"`
	ModelID   string `json:"model_id,omitempty"`
	// SampleSequenceIDs has an id for each sample of an asample; newer clients require it.
	SampleSequenceIDs []string `json:"sample_sequence_ids,omitempty"`
}

// RetrieveRequest is the body of POST retrieve_future.
type RetrieveRequest struct {
	RequestID string `json:"request_id"`
	// AllowMetadataOnly allows the server to respond with CompleteMetadata first.
	AllowMetadataOnly bool `json:"allow_metadata_only"`
}

// CancelFuture is the body of POST cancel_future, by which a client that no longer waits for samples stops the work.
type CancelFuture struct {
	RequestID string `json:"request_id"`
}

// QueueState says why a result is not available yet.
type QueueState string

// The states that the API defines; servers may have others.
const (
	QueueActive          QueueState = "active"
	QueuePausedCapacity  QueueState = "paused_capacity"
	QueuePausedRateLimit QueueState = "paused_rate_limit"
)

// TryAgain is the response to a long poll that ended before the result was available. It is also the body of 408.
type TryAgain struct {
	// Type is try_again.
	Type             string     `json:"type"`
	RequestID        string     `json:"request_id"`
	QueueState       QueueState `json:"queue_state"`
	QueueStateReason *string    `json:"queue_state_reason"`
}

// StatusCompleteMetadata is the status of CompleteMetadata.
const StatusCompleteMetadata = "complete_metadata"

// CompleteMetadata is the response for a large available result, to a poll that allows it.
type CompleteMetadata struct {
	// Status is complete_metadata.
	Status string `json:"status"`
	// ResponsePayloadSize is in bytes.
	ResponsePayloadSize int64 `json:"response_payload_size"`
}

// FailedResult is the result of an operation that failed; it comes with status 200.
type FailedResult struct {
	Error string `json:"error"`
	// Category is CategoryUser, CategoryServer or CategoryUnknown.
	Category Category `json:"category"`
}

// ErrorResponse is the body of every status from 400 up. It must not be empty, because clients ascribe an empty 400 to
// a proxy.
type ErrorResponse struct {
	// Detail is a string, or for 422 a list of ValidationIssue.
	Detail any `json:"detail"`
}

// ValidationIssue is one reason for a 422.
type ValidationIssue struct {
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
	Type string   `json:"type"`
}
