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

// retrieve answers a poll: with the result, or after a while with how it stands.
func (s *Server) retrieve(r *request) (response, error) {
	var req tinker.RetrieveRequest
	if err := decode(r.body, &req); err != nil {
		return response{}, err
	}
	result, pause, ok, err := r.state.Await(r.Context(), req.RequestID, s.options.PollPatience)
	if err != nil {
		return response{}, err
	}
	if !ok {
		return jsonResponse(http.StatusOK, tryAgain(req.RequestID, pause))
	}
	if size := len(result.Body); req.AllowMetadataOnly && size >= s.options.MetadataBytes {
		return jsonResponse(http.StatusOK, tinker.CompleteMetadata{Status: tinker.StatusCompleteMetadata, ResponsePayloadSize: int64(size)})
	}
	if result.Kind == state.KindJSON {
		return response{status: http.StatusOK, contentType: typeJSON, body: result.Body}, nil
	}
	if strings.Contains(r.Header.Get("Accept"), typeProtobuf) {
		return response{status: http.StatusOK, contentType: typeProtobuf, body: result.Body}, nil
	}
	return legacyResponse(result)
}

func tryAgain(id string, pause future.QueueStatus) tinker.TryAgain {
	answer := tinker.TryAgain{Type: tinker.TypeTryAgain, RequestID: id, QueueState: tinker.QueueState(pause.State)}
	if pause.Reason != "" {
		answer.QueueStateReason = &pause.Reason
	}
	return answer
}

// legacyResponse is the JSON form of a protobuf result, for clients before 0.25.
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
	return jsonResponse(http.StatusOK, decoded)
}
