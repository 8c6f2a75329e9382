// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package orstest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// chunkSize is the number of bytes of an event's data.
const chunkSize = 4096

// stream sends keep-alive comments until there is a result, then the result in pieces.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, result *result) {
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for running := true; running; {
		select {
		case <-result.done:
			running = false
		case <-ticker.C:
			send(w, ": ping\r\n\r\n")
		case <-r.Context().Done():
			return
		}
	}
	if result.err != nil {
		event(w, "error", result.err.Error())
		return
	}
	text := result.text
	for len(text) > chunkSize {
		event(w, "chunk", text[:chunkSize])
		text = text[chunkSize:]
	}
	event(w, "end", text)
}

func startStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
}

// event sends one event. The data must not contain a line break.
func event(w http.ResponseWriter, kind, data string) {
	send(w, fmt.Sprintf("event: %s\r\ndata: %s\r\n\r\n", kind, data))
}

// send sends a part of a stream. It ignores errors, since the client may have gone away.
func send(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func fail(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"detail": detail})
}
