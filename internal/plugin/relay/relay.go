// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package relay sends the requests of a person to the TinkerEndpoint of a run, by a pod in the run's namespace that has
// the token of the run. No key reaches the person's machine.
package relay

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/plugin/runpod"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// BaseURL is the address of the endpoint for clients that use a Relay. Token takes the place of the run's token,
// which only the pod has.
const (
	BaseURL = "http://" + host
	Token   = "tml-by-the-pod"

	host = "endpoint-of-the-run"
)

// Relay is an http.RoundTripper that sends requests through a pod. It starts another pod if the pod has ended: pods
// end after some hours. It fetches files of other hosts itself, or through the pod if it cannot connect to these
// hosts.
type Relay struct {
	pods   runpod.Pods
	run    *v1alpha1.TrainingRun
	direct http.RoundTripper

	mu      sync.Mutex
	session *runpod.Session
}

// New returns a relay to the endpoint of a run, which names a TinkerEndpoint. direct fetches files. Close deletes the
// pod.
func New(pods runpod.Pods, run *v1alpha1.TrainingRun, direct http.RoundTripper) *Relay {
	pods.Task = "asks TinkerEndpoint " + run.Spec.Tinker.EndpointRef.Name
	pods.Otherwise = "ask somebody who has it"
	return &Relay{pods: pods, run: run, direct: direct}
}

// Start starts the pod.
func (r *Relay) Start(ctx context.Context) error {
	_, err := r.open(ctx)
	return err
}

// RoundTrip implements http.RoundTripper.
func (r *Relay) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host == host {
		answer, err := r.byPod(request)
		if err != nil {
			return nil, err
		}
		return answer, refuse(answer)
	}
	answer, err := r.direct.RoundTrip(request)
	if err == nil || !wait.IsDialError(err) || request.Method != http.MethodGet {
		return answer, err
	}
	file := request.Clone(request.Context())
	file.Header.Set(tinker.HeaderRelayFile, request.URL.String())
	file.URL.Scheme, file.URL.Host, file.Host = "http", host, ""
	return r.byPod(file)
}

// byPod sends a request to the pod. If the pod has ended, the next request starts another one.
func (r *Relay) byPod(request *http.Request) (*http.Response, error) {
	session, err := r.open(request.Context())
	if err != nil {
		return nil, err
	}
	answer, err := session.Transport().RoundTrip(request)
	if err != nil && request.Context().Err() == nil {
		r.drop(request.Context(), session)
	}
	return answer, err
}

// open returns the session of the pod.
func (r *Relay) open(ctx context.Context) (*runpod.Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != nil {
		return r.session, nil
	}
	settings, file, err := r.pods.Settings(ctx, r.run)
	if err != nil {
		return nil, err
	}
	secret := ""
	if file != nil {
		secret = file.Annotations[v1alpha1.AnnotationEndpointSecret]
	}
	if secret == "" {
		return nil, fmt.Errorf("run %q has no attempt that says which Secret has its token at TinkerEndpoint %q: retry the "+
			"run once, or give the key of the endpoint by TINKER_API_KEY with --base-url", r.run.Name,
			r.run.Spec.Tinker.EndpointRef.Name)
	}
	attempt, err := strconv.ParseInt(file.Labels[v1alpha1.LabelAttempt], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("reading the attempt of ConfigMap %q: %w", client.ObjectKeyFromObject(file), err)
	}
	name := desired.ServiceName(r.run) + "-relay-" + strings.ToLower(rand.Text()[:6])
	pod := desired.RelayPod(r.run, name, secret, int32(attempt), runpod.SessionAddress, settings)
	opened, err := r.pods.Open(ctx, r.run, pod, func(s *runpod.Session) error { return check(ctx, s) })
	if errors.Is(err, runpod.ErrUnserved) {
		return nil, fmt.Errorf("pod %q passes no requests on: the image %s may be of an earlier version, or you may not "+
			"forward ports of pods: %w", name, pod.Spec.Containers[0].Image, err)
	}
	if err != nil {
		return nil, err
	}
	r.session = opened
	return opened, nil
}

// check returns nil if the program of the pod answers, whatever the broker says.
func check(ctx context.Context, s *runpod.Session) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, BaseURL+"/api/v1/healthz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := s.Transport().RoundTrip(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// drop deletes a pod that cannot be reached.
func (r *Relay) drop(ctx context.Context, failed *runpod.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session == failed {
		r.session = nil
		_ = failed.Close(ctx)
	}
}

// Close deletes the pod, even if the context has ended.
func (r *Relay) Close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session == nil {
		return nil
	}
	err := r.session.Close(ctx)
	r.session = nil
	return err
}

// told are the refusals of a broker that a person sees at once. A run waits instead, until the cause is repaired.
var told = map[problem.Code]bool{problem.TokenRefused: true, problem.EndpointBudgetReached: true,
	problem.EndpointKeyRefused: true}

// refuse turns an answer that makes clients wait into an answer that ends the request, with the broker's message and
// the repair.
func refuse(answer *http.Response) error {
	code := problem.Code(answer.Header.Get(tinker.HeaderBrokerCode))
	if !told[code] {
		return nil
	}
	defer func() { _ = answer.Body.Close() }()
	const most = 64 << 10
	var said struct {
		Detail string `json:"detail"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, most)).Decode(&said); err != nil {
		return fmt.Errorf("reading the refusal of the broker: %w", err)
	}
	encoded, err := json.Marshal(map[string]string{
		"detail": fmt.Sprintf("%s. %s", strings.TrimSuffix(said.Detail, "."), problem.Lookup(code).Repair)})
	if err != nil {
		return err
	}
	answer.StatusCode, answer.Status = http.StatusBadRequest, ""
	answer.ContentLength, answer.Body = int64(len(encoded)), io.NopCloser(bytes.NewReader(encoded))
	for _, name := range []string{tinker.HeaderBrokerCode, tinker.HeaderBrokerForwarded, "Retry-After"} {
		answer.Header.Del(name)
	}
	answer.Header.Set("Content-Length", strconv.Itoa(len(encoded)))
	return nil
}
