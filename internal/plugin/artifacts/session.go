// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/runpod"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// answerPatience is the time within which a session must answer.
const answerPatience = 5 * time.Minute

// Session is a pod that answers questions about the artifacts of a run, over a forwarded port, until it is closed.
type Session struct {
	*runpod.Session

	client *http.Client
}

// Open starts the pod of a session. If the error is runpod.ErrUnserved, each question needs a pod of its own, whose
// log is read.
func (r Reader) Open(ctx context.Context, run *v1alpha1.TrainingRun) (*Session, error) {
	pod, err := r.podFor(ctx, run, []string{"--serve=" + runpod.SessionAddress})
	if err != nil {
		return nil, err
	}
	s := &Session{}
	_, err = r.Pods.Open(ctx, run, pod, func(opened *runpod.Session) error {
		s.Session, s.client = opened, &http.Client{Timeout: answerPatience, Transport: opened.Transport()}
		_, err := s.Ask(ctx, listOnly, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// listOnly is the step that asks only for the list of steps.
const listOnly = -2

// Ask returns the transcript of a step, or of the evaluation after it, and the steps that have one.
func (s *Session) Ask(ctx context.Context, step int64, evaluation bool) (delivery.Delivery, error) {
	query := url.Values{"step": {strconv.FormatInt(step, 10)}, "evaluation": {strconv.FormatBool(evaluation)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://reader/?"+query.Encode(), http.NoBody)
	if err != nil {
		return delivery.Delivery{}, fmt.Errorf("asking pod %q: %w", s.Name(), err)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return delivery.Delivery{}, fmt.Errorf("asking pod %q: %w", s.Name(), err)
	}
	defer func() { _ = answer.Body.Close() }()
	d, err := delivery.Read(answer.Body)
	if err != nil {
		return d, fmt.Errorf("reading the answer of pod %q: %w", s.Name(), err)
	}
	return d, nil
}
