// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// idle is after how long without a question a server ends: whoever asked is gone, or reads, and a claim that one node
// alone may mount is free for the learner.
const idle = 2 * time.Minute

// Serve answers questions for transcripts at a listener, one delivery for each, until nobody has asked for a while or
// the context ends. A question is a GET with the values step and evaluation.
func Serve(ctx context.Context, r Request, listener net.Listener) error {
	return serve(ctx, r, listener, idle)
}

func serve(ctx context.Context, r Request, listener net.Listener, after time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alone := time.AfterFunc(after, cancel)
	defer alone.Stop()
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, asked *http.Request) {
			alone.Stop()
			defer alone.Reset(after)
			answer(w, asked, r)
		})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving transcripts: %w", err)
	case <-ctx.Done():
		return errors.Join(server.Close(), ignoreClosed(<-ended))
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
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
