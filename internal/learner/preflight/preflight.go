// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight finds out, before anything is bought, whether the endpoint can serve a run as its spec says. It
// also measures the wait for a user who has to repair the connection to the endpoint or the endpoint itself.
package preflight

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/failure"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// RejectedError is a setting that this learner or the endpoint cannot honour.
type RejectedError struct {
	Code    problem.Code
	Message string
}

// Error returns the message.
func (e *RejectedError) Error() string { return e.Message }

// Reject returns a RejectedError.
func Reject(code problem.Code, format string, args ...any) error {
	return &RejectedError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Await returns an error with a RejectedError whose repair a run waits for, since the server or the spec may be
// changed.
func Await(code problem.Code, format string, args ...any) error {
	return failure.New(code, Reject(code, format, args...), "checking the endpoint")
}

// api lists the models that an endpoint serves, and returns the base model of a checkpoint.
type api interface {
	lister
	WeightsInfo(ctx context.Context, path string) (tinker.WeightsInfo, error)
}

// featureChecker checks features of an endpoint.
type featureChecker interface {
	Check(ctx context.Context, features []capability.Feature) (capability.Report, error)
}

// broker has the findings of a TinkerEndpoint's broker about features, for all runs.
type broker interface {
	Ask(ctx context.Context, features []capability.Feature) (tinker.CheckResponse, error)
}

// hub fetches tokenizers.
type hub interface {
	Load(ctx context.Context, source fetch.Source) (tokenizer.Tokenizer, string, error)
}

// Config configures a Checker.
type Config struct {
	File           contract.RunFile
	API            api
	FeatureChecker featureChecker
	// Broker is asked before anything is checked; nil for a run with a key of its own.
	Broker broker
	Hub    hub
	// Blocked receives why the tokenizer cannot be fetched, and nil once it can.
	Blocked func(err error)
	// ReadTemplate reads the chat template of the run's model and tries it; TemplateBlocked receives why that fails, and
	// an empty text once it succeeds.
	ReadTemplate    func(ctx context.Context, model contract.Model) (contract.Template, error)
	TemplateBlocked func(problem string)
	// CountSystem returns how many tokens a system message has in the run's format.
	CountSystem func(ctx context.Context, text string) (int, error)
	// IsFinal reports whether an error is permanent, so that another try would also fail.
	IsFinal func(error) bool
	// Pause waits before the next try, the longer the more tries have failed.
	Pause  func(ctx context.Context, failures int) error
	Logger *slog.Logger
	Now    func() time.Time
	// ClientVersion is the version of this client. Features that another version found are checked again.
	ClientVersion string
}

// Checker checks one endpoint for one run.
type Checker struct {
	Config
	// checkedAt is the end of the last check of features; zero if there was none.
	checkedAt time.Time
	// shared is the check of the broker that was asked; nil if none was.
	shared *contract.SharedCheck
}

// New returns a checker.
func New(config Config) *Checker { return &Checker{Config: config} }

// CheckModel fails for a base model that the endpoint does not train, for a base model or a teacher with a context that
// is too short for the run, and for a judge that the endpoint does not know. A run waits for the repair.
func (c *Checker) CheckModel(ctx context.Context) error {
	server, err := c.API.Capabilities(ctx)
	switch client.CategoryFrom(err) {
	case tinker.CategoryNotFound, tinker.CategoryUnsupported:
		return nil // the endpoint lists no models
	}
	if err != nil {
		return fmt.Errorf("asking for capabilities: %w", err)
	}
	name := c.File.Fixed.Model.Name
	for _, model := range server.SupportedModels {
		if model.ModelName != name {
			continue
		}
		if model.Trainable != nil && !*model.Trainable {
			return Await(problem.ModelUnknown, "The endpoint cannot train %s: choose another model.name",
				name)
		}
		if err := checkContext(c.File, model.MaxContextLength); err != nil {
			return err
		}
		if err := c.checkTeachers(ctx, server.SupportedModels); err != nil {
			return err
		}
		return checkJudges(c.File, server.SupportedModels)
	}
	if len(server.SupportedModels) == 0 {
		return nil
	}
	return Await(problem.ModelUnknown,
		"The endpoint does not know the model %s: serve it there, or choose another "+
			"model.name or tinker.baseURL, which may be changed until a first step is committed", name)
}
