// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/learner/idle"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// Serve answers questions for transcripts at a listener, with one delivery for each, until there was no question for
// a while or the context ends. A claim that one node alone may mount is then free for the learner. A question is a
// GET with the values step and evaluation.
func Serve(ctx context.Context, r Request, listener net.Listener) error {
	return serve(ctx, r, listener, idle.Patience)
}

func serve(ctx context.Context, r Request, listener net.Listener, after time.Duration) error {
	handler := http.HandlerFunc(func(w http.ResponseWriter, asked *http.Request) { answer(w, asked, r) })
	return idle.Serve(ctx, handler, listener, after)
}

// answer answers one question.
func answer(w http.ResponseWriter, asked *http.Request, r Request) {
	query := asked.URL.Query()
	step, err := strconv.ParseInt(query.Get("step"), 10, 64)
	if asked.Method != http.MethodGet || err != nil || step < List {
		http.Error(w, "ask with GET, and give a step", http.StatusBadRequest)
		return
	}
	r.Step, r.Evaluation = step, query.Get("evaluation") == "true"
	// A reader whose connection has ended finds the delivery cut.
	_ = delivery.Write(w, Read(asked.Context(), r))
}
