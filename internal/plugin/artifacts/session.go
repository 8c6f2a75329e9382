// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// Bounds of a session.
const (
	// sessionPort is the port of the pod's own loopback at which its program answers.
	sessionPort = 8092
	// sessionLasts is how long a pod of a session exists at most, and answerPatience how long one answer takes.
	sessionLasts, answerPatience = 2 * time.Hour, 5 * time.Minute
	// listenPatience is how long a pod that runs may take to listen.
	listenPatience = 15 * time.Second
)

// ErrUnserved says that a pod does not answer questions, as of an image that does not know them or where ports cannot
// be forwarded: each question then takes a pod of its own, whose log is read.
var ErrUnserved = errors.New("the pod does not answer questions")

// Session is a pod that answers questions about the artifacts of a run, over a forwarded port, until it is closed.
type Session struct {
	reader Reader
	pod    *corev1.Pod
	tunnel io.Closer
	client *http.Client
}

// Open starts the pod of a session.
func (r Reader) Open(ctx context.Context, run *v1alpha1.TrainingRun) (*Session, error) {
	r.deadline = sessionLasts
	pod, err := r.podFor(ctx, run, []string{"--serve=" + net.JoinHostPort("127.0.0.1", strconv.Itoa(sessionPort))})
	if err != nil {
		return nil, err
	}
	if err := r.kube.Create(ctx, pod); err != nil {
		return nil, explainCreate(run, err)
	}
	s := &Session{reader: r, pod: pod}
	if err := s.connect(ctx, run); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// connect waits until the pod answers.
func (s *Session) connect(ctx context.Context, run *v1alpha1.TrainingRun) error {
	if err := s.reader.awaitStart(ctx, run, s.pod); err != nil {
		return err
	}
	for deadline := time.Now().Add(listenPatience); ; {
		if s.pod.Status.Phase != corev1.PodRunning {
			return ErrUnserved
		}
		err := s.dial()
		if err == nil {
			if _, err = s.Ask(ctx, listOnly, false); err == nil {
				return nil
			}
			_ = s.tunnel.Close()
			s.tunnel = nil
		}
		if time.Now().After(deadline) || apierrors.IsForbidden(err) {
			return errors.Join(ErrUnserved, err)
		}
		select {
		case <-time.After(s.reader.period):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := s.reader.kube.Get(ctx, client.ObjectKeyFromObject(s.pod), s.pod); err != nil {
			return fmt.Errorf("reading pod %q: %w", s.pod.Name, err)
		}
	}
}

// listOnly is the step that asks for the list of steps alone.
const listOnly = -2

// dial opens the tunnel to the pod.
func (s *Session) dial() error {
	opened, err := s.reader.forward(s.pod.Namespace, s.pod.Name, sessionPort)
	if err != nil {
		return err
	}
	s.tunnel = opened
	s.client = &http.Client{Timeout: answerPatience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return opened.Dial() }}}
	return nil
}

// Ask returns the transcript of a step, or of the evaluation after it, and the steps that have one.
func (s *Session) Ask(ctx context.Context, step int64, evaluation bool) (delivery.Delivery, error) {
	query := url.Values{"step": {strconv.FormatInt(step, 10)}, "evaluation": {strconv.FormatBool(evaluation)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://reader/?"+query.Encode(), http.NoBody)
	if err != nil {
		return delivery.Delivery{}, fmt.Errorf("asking pod %q: %w", s.pod.Name, err)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return delivery.Delivery{}, fmt.Errorf("asking pod %q: %w", s.pod.Name, err)
	}
	defer func() { _ = answer.Body.Close() }()
	d, err := delivery.Read(answer.Body)
	if err != nil {
		return d, fmt.Errorf("reading the answer of pod %q: %w", s.pod.Name, err)
	}
	return d, nil
}

// Close deletes the pod, also where the context has ended.
func (s *Session) Close(ctx context.Context) error {
	if s.tunnel != nil {
		_ = s.tunnel.Close()
	}
	return s.reader.remove(ctx, s.pod)
}
