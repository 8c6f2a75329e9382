// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"net/http"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/future"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
)

// retrieve responds to a poll: with the result, or after a while with the status of the queue.
func (s *Server) retrieve(r *request) (response, error) {
	var req tinker.RetrieveRequest
	if err := decode(r.body, &req); err != nil {
		return response{}, err
	}
	result, status, ok, err := r.state.Await(r.Context(), req.RequestID, s.options.PollPatience)
	if err != nil {
		return response{}, err
	}
	if !ok {
		return jsonResponse(http.StatusOK, tryAgain(req.RequestID, status))
	}
	if size := len(result.Body); req.AllowMetadataOnly && size >= s.options.MetadataBytes {
		return jsonResponse(http.StatusOK, tinker.CompleteMetadata{Status: tinker.StatusCompleteMetadata,
			ResponsePayloadSize: int64(size)})
	}
	if result.Kind == state.KindJSON {
		return response{status: http.StatusOK, contentType: tinker.ContentJSON, body: result.Body}, nil
	}
	if strings.Contains(r.Header.Get("Accept"), tinker.ContentProtobuf) {
		return response{status: http.StatusOK, contentType: tinker.ContentProtobuf, body: result.Body}, nil
	}
	return legacyResponse(result)
}

// cancelFuture responds to a client that no longer waits for samples.
func cancelFuture(r *request) (response, error) {
	var req tinker.CancelFuture
	if err := decode(r.body, &req); err != nil {
		return response{}, err
	}
	return response{}, r.state.Cancel(req.RequestID)
}

func tryAgain(id string, status future.QueueStatus) tinker.TryAgain {
	reply := tinker.TryAgain{Type: tinker.TypeTryAgain, RequestID: id, QueueState: tinker.QueueState(status.State)}
	if status.Reason != "" {
		reply.QueueStateReason = &status.Reason
	}
	return reply
}

// legacyResponse returns the JSON form of a protobuf result, for clients before 0.25.
func legacyResponse(result future.Result) (response, error) {
	if result.Kind == state.KindSample {
		decoded, err := tinker.DecodeSample(result.Body)
		if err != nil {
			return response{}, err
		}
		return jsonResponse(http.StatusOK, legacySample(decoded))
	}
	decoded, err := tinker.DecodeOutput(result.Body)
	if err != nil {
		return response{}, err
	}
	return jsonResponse(http.StatusOK, legacyOutput(decoded))
}
