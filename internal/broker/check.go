// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker/checks"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
)

// CheckUID is the UID, and the name in the usage, of the run as which the broker checks the server. Its usage is
// ascribed to the platform, and counts in no budget.
const CheckUID = "capability-check"

const (
	// checkPatience is how long a run waits for one answer about a check.
	checkPatience = 5 * time.Second
	// maxCheckRequest bounds a request for a check, in bytes.
	maxCheckRequest = 64 << 10
	// checkSeconds is the Retry-After of a request for a check that failed.
	checkSeconds = 10
)

// checkRun returns the run of checks, in the form of the runs of endpoint.Settings.
func (b *Broker) checkRun() endpoint.Run {
	return endpoint.Run{UID: CheckUID, Namespace: b.config.Namespace, Name: CheckUID, Weight: 1}
}

// openChecks prepares the checks of the server.
func (b *Broker) openChecks() error {
	var err error
	b.loop = newLoop(b)
	b.checks, err = checks.Open(checks.Config{Dir: b.config.Dir, Run: b.runCheck, Lease: b.config.Lease,
		ClientVersion: b.config.ClientVersion, Logger: b.config.Logger, Now: b.config.Now})
	return err
}

// closeChecks ends the checks in progress.
func (b *Broker) closeChecks() {
	if b.checks != nil {
		b.checks.Close()
	}
	if b.loop != nil {
		b.loop.close()
	}
}

// runCheck checks features of the server, by requests that the broker passes on like a run's: they are recorded,
// counted and shared alike.
func (b *Broker) runCheck(ctx context.Context, r tinker.CheckRequest, knownJSON bool) (capability.Report, error) {
	api, err := client.New(client.Config{
		BaseURL: loopURL, APIKey: contract.RunToken(b.inForce.Load().TokenKey, CheckUID),
		UserAgent: "tinker-operator-broker", HTTP: b.loop.client(), Logger: b.config.Logger,
	})
	if err != nil {
		return capability.Report{}, fmt.Errorf("checking the server: %w", err)
	}
	if knownJSON {
		api.UseJSON()
	}
	checker := capability.Checker{API: api, Model: r.BaseModel, Lora: r.Lora,
		UserMetadata: tinker.Metadata{"purpose": "probe"}}
	for _, name := range r.Features {
		checker.Features = append(checker.Features, capability.Feature(name))
	}
	return checker.Run(ctx)
}

// answerCheck answers a run that asks for the features of the server.
func (b *Broker) answerCheck(w http.ResponseWriter, r *http.Request, run Run) error {
	if run.UID == CheckUID {
		return refuseRoute(r.Method, tinker.PathCheck)
	}
	if b.isDraining() {
		return standby(b.config.Endpoint, "it is being replaced")
	}
	var asked tinker.CheckRequest
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCheckRequest))
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err == nil && asked.BaseModel == "" {
		err = errors.New("base_model is empty")
	}
	if err != nil {
		return invalid(fmt.Errorf("reading what to check: %w", err))
	}
	if !b.mayUseModel(asked.BaseModel) {
		return b.modelRefused(asked.BaseModel)
	}
	ctx, cancel := context.WithTimeout(r.Context(), checkPatience)
	defer cancel()
	defer context.AfterFunc(b.drained, cancel)()
	found, ended, err := b.checks.Ask(ctx, asked)
	if err != nil {
		return b.uncheckable(err)
	}
	if !ended {
		// The run learns why the check takes long, as it does for its own requests.
		if err := b.unavailable(); err != nil {
			return err
		}
	}
	return sendCheck(w, b.config.Endpoint, found, ended)
}

func sendCheck(w http.ResponseWriter, name string, found endpoint.Check, ended bool) error {
	answer := tinker.CheckResponse{Pending: !ended}
	if ended {
		answer = tinker.CheckResponse{Endpoint: name, Supported: found.Supported, Ignored: found.Ignored,
			Unsupported: found.Unsupported, ClientVersion: found.ClientVersion}
		if !found.CheckedAt.IsZero() {
			answer.CheckedAt = found.CheckedAt.UTC().Format(time.RFC3339)
		}
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	sendJSON(w, http.StatusOK, encoded)
	return nil
}

// uncheckable answers for a check that failed. After a refusal a run waits, as it does during an outage: the platform
// repairs both.
func (b *Broker) uncheckable(err error) error {
	if refused, ok := errors.AsType[*checks.RefusedError](err); ok {
		return refuse(http.StatusBadRequest, problem.CheckRefused, "the Tinker endpoint refuses to be checked: %s",
			refused.Message)
	}
	if err := b.unavailable(); err != nil {
		return err
	}
	return refuse(http.StatusServiceUnavailable, problem.EndpointFailing, "the Tinker endpoint could not be checked: %s",
		err).after(checkSeconds)
}

// unavailable returns the error for runs while the server refuses the API key, or does not answer; nil if it serves.
func (b *Broker) unavailable() error {
	if message := b.KeyRefused(); message != "" {
		return b.keyRefused(message)
	}
	if found := b.unreachable.Load(); found != nil {
		return refuse(http.StatusBadGateway, found.code,
			"the broker does not get an answer from the Tinker endpoint: %s", found.message).after(checkSeconds)
	}
	return nil
}
