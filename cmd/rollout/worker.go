// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
	"github.com/tinker-operator/tinker-operator/internal/rollout/setup"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
	"github.com/tinker-operator/tinker-operator/internal/version"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// options of a worker, as flags and the environment give them.
type options struct {
	runFile, credentialsDir, spillDir string
	healthListen                      string
	memoryBytes, spillBytes           int64
	grace, keyPatience                time.Duration
	level                             slog.Level
	apiKey, worker                    string
	connection                        transport.Options
	// sharedServers is the prefix of the names of the environment servers that all workers of the run share.
	sharedServers string
	// hub fetches the tokenizers of judges, and tokenFile is the file with the token for the tokenizer of the run's model;
	// "" for the token of the hub.
	hub       fetch.Fetcher
	tokenFile string
	// data is where data sets are read from and stored.
	data source.Config
}

func parseWorker(env environ) (options, error) {
	o := options{apiKey: env.getenv("TINKER_API_KEY"), worker: env.getenv("POD_NAME"),
		connection: transport.FromEnvironment(env.getenv)}
	o.sharedServers = env.getenv(contract.SharedServersVariable)
	o.hub.Endpoint, o.hub.Token = env.getenv("HF_ENDPOINT"), env.getenv("HF_TOKEN")
	o.tokenFile = env.getenv(contract.TokenizerTokenVariable)
	flags := flag.NewFlagSet("rollout", flag.ContinueOnError)
	flags.StringVar(&o.runFile, "run-file", "/etc/tinker-operator/run/"+contract.RunFileName,
		"`file` that says which run this is")
	flags.StringVar(&o.credentialsDir, "credentials-dir", "/etc/tinker-operator/credentials",
		"`folder` with the run's token and certificate")
	flags.StringVar(&o.spillDir, "spill-dir", "", "`folder` for finished groups beyond the memory's bound; empty for none")
	flags.StringVar(&o.hub.Cache, "tokenizer-dir", "",
		"`folder` where tokenizers are kept by their digests; empty for none")
	flags.StringVar(&o.healthListen, "health-listen", ":8081", "`address` of /healthz and /readyz; empty for none")
	flags.Int64Var(&o.memoryBytes, "memory-bytes", 16<<20, "finished groups that are stored in memory, in `bytes`")
	flags.Int64Var(&o.spillBytes, "spill-bytes", 1<<30, "finished groups that are stored in files, in `bytes`")
	flags.DurationVar(&o.grace, "grace", 20*time.Second, "how long finished groups are submitted after SIGTERM")
	flags.DurationVar(&o.keyPatience, "key-patience", rollout.DefaultKeyPatience,
		"how long the API key may be refused before the program ends, and how long it waits without one")
	flags.TextVar(&o.level, "log-level", slog.LevelInfo, "least `level` that is logged")
	addDataFlags(flags, &o.data)
	if err := parse(flags, env); err != nil {
		return options{}, err
	}
	if o.worker == "" {
		return options{}, configError(errors.New("POD_NAME is not set"))
	}
	return o, nil
}

// runWorker plays groups until ctx ends.
func runWorker(ctx context.Context, env environ) error {
	o, err := parseWorker(env)
	if err != nil {
		return err
	}
	logger := newLogger(env.stderr, o.level)
	if o.apiKey == "" {
		return awaitOtherPod(ctx, o.keyPatience, logger)
	}
	parts, err := build(o, logger)
	if err != nil {
		return err
	}
	health, err := serveHealth(ctx, o.healthListen, parts.worker.Ready)
	if err != nil {
		return err
	}
	logger.Info("working", "worker", o.worker, "version", version.String(), "spilled", parts.groups.Len())
	err = errors.Join(parts.worker.Run(ctx), parts.client.Close(), health.Close())
	var unplayable *rollout.ConfigError
	if errors.As(err, &unplayable) || exchange.IsFinal(err) {
		return configError(err)
	}
	if errors.Is(err, rollout.ErrKeyRefused) {
		return &exitError{code: contract.ExitKeyRefused, err: err}
	}
	if err != nil {
		return err
	}
	logger.Info("ended", "stored", parts.groups.Len())
	return errStopped
}

// errNoKey ends a worker whose Secret has an empty key.
var errNoKey = &exitError{code: contract.ExitKeyRefused, err: errors.New(
	"TINKER_API_KEY is empty: put the key into the Secret that tinker.apiKeySecretKeyRef names")}

// awaitOtherPod waits before the program ends without an API key, since Kubernetes waits longer and longer to replace
// pods that end immediately.
func awaitOtherPod(ctx context.Context, patience time.Duration, logger *slog.Logger) error {
	logger.Warn("ending for want of an API key", "in", patience.String(), "err", errNoKey)
	if err := wait.Sleep(ctx, patience); err != nil {
		return errStopped
	}
	return errNoKey
}

// errStopped ends a worker that was asked to stop. It is not a success: an Indexed Job never replaces an index
// whose pod exited with 0, and the run would have one worker less to its end.
var errStopped = &exitError{code: exitUnavailable, err: errors.New("stopped")}

// parts are the parts of a worker.
type parts struct {
	client *exchange.Client
	groups *groupstore.Store
	worker *rollout.Worker
}

// build reads the run file and the credentials and makes the worker.
func build(o options, logger *slog.Logger) (parts, error) {
	data, err := os.ReadFile(o.runFile)
	if err != nil {
		return parts{}, configError(err)
	}
	file, err := contract.DecodeRunFile(data)
	if err != nil {
		return parts{}, configError(err)
	}
	credentials, err := contract.ReadCredentials(o.credentialsDir)
	if err != nil {
		return parts{}, configError(err)
	}
	meter := client.NewMeter(client.MeterConfig{Lifetime: context.Background()})
	spending := rollout.NewSpending(meter)
	learner, err := exchange.NewClient(exchange.ClientConfig{
		Address: file.LearnerAddress, Credentials: credentials, RunUID: file.Run.UID, SpecDigest: file.SpecDigest,
		Version: file.Version, Worker: o.worker, Spent: spending.Spent, Logger: logger,
	})
	if err != nil {
		return parts{}, configError(err)
	}
	pressure := &rollout.Pressure{}
	endpoint, err := connect(o, file.Fixed.BaseURL, logger, pressure, meter)
	if err != nil {
		return parts{}, configError(err)
	}
	store, err := groupstore.Open(groupstore.Config{
		Dir: o.spillDir, Version: file.Version, MemoryBytes: o.memoryBytes, DiskBytes: o.spillBytes, Logger: logger,
	})
	if err != nil {
		return parts{}, err
	}
	o.hub.Logger = logger
	placement := setup.Placement{Prefix: o.sharedServers, Token: credentials.Token}
	worker := setup.NewWorker(setup.Config{
		Learner: learner, Endpoint: endpoint, Pressure: pressure, Spending: spending, Groups: store,
		Renderer: rendererOf(o), Hub: &o.hub, Data: o.data,
		Programs: placement.Programs, Agents: placement.Agents, Sandboxes: placement.Sandboxes,
		SharedServers: o.sharedServers,
		UserAgent:     version.UserAgent(userAgent), Grace: o.grace,
		KeyPatience: o.keyPatience,
		Logger:      logger,
	})
	return parts{client: learner, groups: store, worker: worker}, nil
}

// rendererOf returns a function that loads the renderer of the run's model.
func rendererOf(o options) func(context.Context, contract.Model) (*load.Renderer, error) {
	hub := o.hub
	hub.TokenFile = o.tokenFile
	return func(ctx context.Context, model contract.Model) (*load.Renderer, error) {
		return load.ForModel(ctx, &hub, model)
	}
}

// connect returns the client of the endpoint.
func connect(o options, baseURL string, logger *slog.Logger, pressure *rollout.Pressure,
	meter *client.Meter) (*client.Client, error) {
	connection, err := transport.New(o.connection)
	if err != nil {
		return nil, fmt.Errorf("preparing to connect to the endpoint: %w", err)
	}
	return client.New(client.Config{
		BaseURL: baseURL, APIKey: o.apiKey, UserAgent: version.UserAgent(userAgent),
		HTTP: &http.Client{Transport: connection}, Logger: logger, Observe: pressure.Observe, Meter: meter,
	})
}
