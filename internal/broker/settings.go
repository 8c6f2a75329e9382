// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
)

// Settings are what may change while a broker serves.
type Settings struct {
	// BaseURL is the address of the server, without /api/v1, and APIKey the key that the server accepts.
	BaseURL, APIKey string
	// TokenKey is the key of contract.DeriveEndpointKey, from which the tokens of runs are derived.
	TokenKey []byte
	// Models are the base models that runs may use; all if there are none.
	Models []string
	// Readable are checkpoints that runs may use besides the checkpoints of their namespace.
	Readable []Readable
	// Publication says that runs may publish their own checkpoints.
	Publication bool
	// Project is the project of the sessions, or empty.
	Project string
	// HTTP sends the requests; nil means a client that holds thousands of idle long polls.
	HTTP *http.Client
}

// inForce has the settings and the clients that are made from them. A value is never changed.
type inForce struct {
	Settings
	client *client.Client
	http   *http.Client
	base   string
}

// Update puts settings in force for the requests that arrive from now on. After an error the previous settings stay
// in force.
func (b *Broker) Update(settings Settings) error {
	b.updating.Lock()
	defer b.updating.Unlock()
	if len(settings.TokenKey) < sha256.Size {
		return errors.New("the key of the tokens is too short")
	}
	before := b.inForce.Load()
	next := &inForce{Settings: settings, base: trimBase(settings.BaseURL)}
	if before != nil && before.BaseURL == settings.BaseURL && before.APIKey == settings.APIKey &&
		before.HTTP == settings.HTTP {
		next.client, next.http = before.client, before.http
	} else if err := b.connect(next); err != nil {
		return err
	}
	b.inForce.Store(next)
	if before == nil || !bytes.Equal(before.TokenKey, settings.TokenKey) {
		b.SetRuns(nil)
	}
	return nil
}

// connect makes the clients of settings, and forgets the failures at the previous server or with the previous key.
func (b *Broker) connect(next *inForce) error {
	sender := http.Client{}
	if next.HTTP != nil {
		sender = *next.HTTP
	} else {
		plain, err := transport.New(transport.Options{})
		if err != nil {
			return err
		}
		sender.Transport = plain
	}
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	upstream, err := client.New(client.Config{
		BaseURL: next.BaseURL, APIKey: next.APIKey, UserAgent: "tinker-operator-broker", HTTP: &sender,
		Logger: b.config.Logger,
	})
	if err != nil {
		return err
	}
	next.client, next.http = upstream, &sender
	b.refused.Store(nil)
	b.unreachable.Store(nil)
	return nil
}

// Apply puts the settings that the manager wrote in force, with the keys and the client of the broker's process.
func (b *Broker) Apply(settings endpoint.Settings, apiKey string, tokenKey []byte, sender *http.Client) error {
	next := Settings{BaseURL: settings.BaseURL, APIKey: apiKey, TokenKey: tokenKey, Models: settings.Models,
		Publication: settings.Publication, Project: settings.Project, HTTP: sender}
	for _, readable := range settings.Readable {
		next.Readable = append(next.Readable, Readable(readable))
	}
	if err := b.Update(next); err != nil {
		return fmt.Errorf("applying generation %d of the settings: %w", settings.Generation, err)
	}
	b.checks.SetConnection(settings.Connection)
	counted := settings
	counted.Runs = append(slices.Clone(settings.Runs), b.checkRun())
	if b.config.Meter != nil {
		b.config.Meter.SetSettings(counted)
	}
	if b.config.Gate != nil {
		b.config.Gate.SetLimits(settings.Limits)
		b.config.Gate.SetRuns(counted.Runs)
	}
	runs := make([]Run, 0, len(settings.Runs))
	for _, run := range settings.Runs {
		runs = append(runs, Run{Owner: Owner{UID: run.UID, Namespace: run.Namespace}, Former: run.Former})
	}
	b.SetRuns(runs)
	return nil
}

// SetRuns replaces the runs whose tokens the broker accepts. The broker's own run, which checks the server, is always
// one of them.
func (b *Broker) SetRuns(runs []Run) {
	key := b.inForce.Load().TokenKey
	byToken := make(map[[sha256.Size]byte]Run, len(runs)+1)
	own := Run{Owner: Owner{UID: CheckUID, Namespace: b.config.Namespace}}
	for _, run := range append(slices.Clone(runs), own) {
		byToken[sha256.Sum256([]byte(contract.RunToken(key, run.UID)))] = run
	}
	b.runs.Store(&byToken)
}

// Report returns the broker's report of its work. The process that holds the Lease adds time, identity and generation.
func (b *Broker) Report() endpoint.Report {
	report := endpoint.Report{KeyRefused: b.KeyRefused(), Checks: b.checks.Report()}
	if found := b.unreachable.Load(); found != nil {
		report.Unreachable = found.message
		if found.code != problem.EndpointUnreachable {
			report.UnreachableCode = found.code
		}
	}
	if err := b.Failed(); err != nil {
		report.RecordsFailed = err.Error()
	}
	now := b.config.Now()
	if b.config.Meter != nil {
		report.Budgets = b.config.Meter.Budgets(now)
	}
	if b.config.Gate != nil {
		report.Throttled = b.config.Gate.Throttled(now)
	}
	return report
}

// KeyRefused returns the message with which the server last refused the API key, or "" if the server has accepted the
// key since.
func (b *Broker) KeyRefused() string {
	if message := b.refused.Load(); message != nil {
		return *message
	}
	return ""
}

// Check asks the server for its capabilities, as a run does, and notes whether the server answers and accepts the key.
// Without it a repair would stay unknown until a run asks for something.
func (b *Broker) Check(ctx context.Context) error {
	c := &call{route: route{op: "get_server_capabilities"}, method: http.MethodGet, path: "get_server_capabilities",
		header: http.Header{"Accept": {tinker.ContentJSON}}}
	resp, credential, err := b.send(ctx, c)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return b.checkKey(resp, credential)
}
