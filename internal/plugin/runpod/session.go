// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package runpod

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
)

// Bounds of a session.
const (
	// sessionPort is the port of the pod's own loopback at which its program answers.
	sessionPort = 8092
	// sessionLasts is the maximum lifetime of a session's pod.
	sessionLasts = 2 * time.Hour
	// listenPatience is the time that a running pod has to listen.
	listenPatience = 15 * time.Second
)

// SessionAddress is the address at which the program of a session's pod answers.
var SessionAddress = net.JoinHostPort("127.0.0.1", strconv.Itoa(sessionPort))

// Session is a pod that answers requests over a forwarded port, until it is closed.
type Session struct {
	pods   Pods
	pod    *corev1.Pod
	tunnel Dialer
}

// Open creates a pod whose program answers at SessionAddress, and waits until check has returned nil.
func (p Pods) Open(ctx context.Context, run *v1alpha1.TrainingRun, pod *corev1.Pod,
	check func(*Session) error) (*Session, error) {
	pod.Spec.ActiveDeadlineSeconds = new(int64(sessionLasts / time.Second))
	if err := p.Create(ctx, run, pod); err != nil {
		return nil, err
	}
	s := &Session{pods: p, pod: pod}
	if err := s.connect(ctx, run, check); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// connect waits until the pod answers.
func (s *Session) connect(ctx context.Context, run *v1alpha1.TrainingRun, check func(*Session) error) error {
	if err := s.pods.AwaitStart(ctx, run, s.pod); err != nil {
		return err
	}
	for deadline := time.Now().Add(listenPatience); ; {
		if s.pod.Status.Phase != corev1.PodRunning {
			return ErrUnserved
		}
		opened, err := s.pods.Forward(s.pod.Namespace, s.pod.Name, sessionPort)
		if err == nil {
			s.tunnel = opened
			if err = check(s); err == nil {
				return nil
			}
			_ = s.tunnel.Close()
			s.tunnel = nil
		}
		if time.Now().After(deadline) || apierrors.IsForbidden(err) {
			return errors.Join(ErrUnserved, err)
		}
		select {
		case <-time.After(s.pods.Period):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := s.pods.Kube.Get(ctx, client.ObjectKeyFromObject(s.pod), s.pod); err != nil {
			return fmt.Errorf("reading pod %q: %w", s.pod.Name, err)
		}
	}
}

// Name is the name of the pod.
func (s *Session) Name() string { return s.pod.Name }

// Transport sends requests to the pod, whatever host they name. Each has a connection of its own.
func (s *Session) Transport() http.RoundTripper {
	return &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return s.tunnel.Dial() }}
}

// Close deletes the pod, even if the context has ended.
func (s *Session) Close(ctx context.Context) error {
	if s.tunnel != nil {
		_ = s.tunnel.Close()
	}
	return s.pods.Remove(ctx, s.pod)
}
