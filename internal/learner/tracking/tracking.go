// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracking sends the committed steps of a run to services that show its curves, or writes them into files for
// such services. Each service is a Sink with a goroutine of its own, so that no service delays another, or the
// training.
//
// Sinks receive lines, in order: line i has the metrics of batch i, as in metrics.jsonl, and the metrics of the
// evaluation of version i, as in evaluations.jsonl. A line is sent once its step is committed and the evaluation has
// its result. Whenever a sink connects, it asks its service for the newest step there and continues after it, so that
// each step is sent once, regardless of deaths and outages.
package tracking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/openreward"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// Line is the line of a step.
type Line struct {
	Step    int64
	Time    time.Time
	Metrics map[string]float64
}

// Run is the description of a run that services show beside its lines.
type Run struct {
	UID, Namespace, Name string
	// Attempt is the number of the attempt.
	Attempt int32
	// Config is the spec as it runs, as a JSON object.
	Config map[string]any
	// Deployments are the environments that OpenReward hosts, by their names in the run.
	Deployments map[string]openreward.Deployment
}

// Outcome is the outcome of a run.
type Outcome int

// The outcomes. A run that is interrupted may continue later.
const (
	Interrupted Outcome = iota
	Completed
	Failed
)

// Sink is a service that shows curves. Its methods are called by one goroutine.
type Sink interface {
	// Service returns the name of the service's field in the spec.
	Service() string
	// Open finds the run at the service, or creates it, and returns the newest step that the service has; -1 if it has
	// none.
	Open(ctx context.Context) (newest int64, err error)
	// Write adds lines after the newest step. Without lines it shows the service that the run continues.
	Write(ctx context.Context, lines []Line) error
	// Close records how the run ended.
	Close(ctx context.Context, outcome Outcome) error
}

// New returns the sinks that the settings name; none if settings is nil. files returns the event files of the
// artifact store; nil if there is no store.
func New(settings *contracttracking.Settings, run Run, files func() *artifacts.EventFiles) []Sink {
	if settings == nil {
		return nil
	}
	var sinks []Sink
	if settings.WandB != nil {
		sinks = append(sinks, newWandB(*settings.WandB, run))
	}
	if settings.MLflow != nil {
		sinks = append(sinks, newMLflow(*settings.MLflow, run))
	}
	if settings.TensorBoard != nil {
		sinks = append(sinks, newTensorBoard(*settings.TensorBoard, run, files))
	}
	return sinks
}

// NewUploads returns the sender of the run's rollouts to OpenReward; nil unless the settings name OpenReward. files
// returns the files of the artifact store; nil if there is no store.
func NewUploads(settings *contracttracking.Settings, run Run, files func() *artifacts.UploadFiles,
	logger *slog.Logger) *Uploads {
	if settings == nil || settings.OpenReward == nil {
		return nil
	}
	return newUploads(
		openreward.Run{UID: run.UID, Name: settings.OpenReward.RunName, Deployments: run.Deployments},
		newOpenReward(*settings.OpenReward), files, logger)
}

// serviceError is a failure with its code and its repair.
type serviceError struct {
	code    problem.Code
	message string
	// retryAfter is the time for which the service asks to wait; 0 if it does not ask.
	retryAfter time.Duration
	// status is the status of the service's answer; 0 if there was no answer.
	status int
	// unknown says that the service may have executed the request.
	unknown bool
}

// isOfContent reports whether the service refused the content of a request, and not the request itself.
func (p *serviceError) isOfContent() bool {
	return p.status == http.StatusBadRequest || p.status == http.StatusRequestEntityTooLarge ||
		p.status == http.StatusUnprocessableEntity
}

// Error implements error.
func (p *serviceError) Error() string { return p.message }

// problemOf returns a failure as heartbeats report it.
func problemOf(service string, err error) *contracttracking.Problem {
	var known *serviceError
	if !errors.As(err, &known) {
		known = &serviceError{code: problem.ServiceFailing, message: err.Error()}
	}
	return &contracttracking.Problem{Service: service, Reason: known.code, Message: known.message}
}

// refusal returns the problem of an answer other than success. field is the path of the service in the spec, and
// keyField the path of its key.
func refusal(field, keyField, host string, status int, body string) *serviceError {
	answer := fmt.Sprintf("%s answers %d", host, status)
	if body != "" {
		answer += fmt.Sprintf(" (%s)", body)
	}
	switch {
	case status == http.StatusUnauthorized:
		return &serviceError{code: problem.TrackerKeyRefused, message: answer + ": put a valid key into the Secret of " +
			keyField}
	case status == http.StatusForbidden:
		return &serviceError{code: problem.PermissionDenied, message: answer +
			": give the key's user the right to write there, or correct " + field}
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return &serviceError{code: problem.ServiceFailing, message: answer + ": it is tried again"}
	default:
		return &serviceError{code: problem.ServiceNotFound, message: answer + ": correct " + field +
			".baseURL, or the names in " + field}
	}
}
