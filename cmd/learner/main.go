// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command learner runs one attempt of a training run: it leases groups to rollout workers, trains through the
// Tinker API, saves states and writes metrics. When it ends it writes the verdict to the termination
// log and exits with the code of its cause. `learner transcripts` prints a transcript from the artifacts of a run, and
// `learner relay` passes requests of a person on to its endpoint.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback" // CA certificates, since the image has none

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/download"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// options are the flags.
type options struct {
	runFile, credentialsDir, exchange, heartbeat, terminationLog string
	data                                                         source.Config
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == transcriptsCommand {
		os.Exit(printTranscript(context.Background(), os.Args[2:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == relayCommand {
		os.Exit(passRequests(context.Background(), os.Args[2:], os.Getenv, os.Stderr))
	}
	var o options
	flag.StringVar(&o.runFile, "run-file", "/etc/tinker-operator/run/"+contract.RunFileName,
		"The run file of this attempt.")
	flag.StringVar(&o.credentialsDir, "credentials-dir", "/etc/tinker-operator/credentials",
		"The folder of the Secret with the run's credentials.")
	flag.StringVar(&o.exchange, "exchange-listen", ":7443", "Where workers are served.")
	flag.StringVar(&o.heartbeat, "heartbeat-listen", ":7444", "Where the manager is served.")
	flag.StringVar(&o.terminationLog, "termination-log", "/dev/termination-log", "Where the verdict is written.")
	flag.StringVar(&o.data.Root, "data-root", contract.DataDir,
		"The folder with the ConfigMaps, volumes and Secrets of data sets.")
	flag.StringVar(&o.data.Dir, "data-dir", "",
		"The folder for the rows of data sets. Defaults to the folder of temporary files.")
	flag.Int64Var(&o.data.Space, "data-bytes", 1<<30, "How many bytes the rows of data sets may take.")
	flag.Parse()
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	verdict := run(o, logger)
	if err := writeVerdict(o.terminationLog, verdict); err != nil {
		logger.Error("verdict is not written", "err", err)
	}
	os.Exit(verdict.Cause.ExitCode())
}

// run runs a learner with the pod's options until it ends.
func run(o options, logger *slog.Logger) contract.Verdict {
	config, err := configure(o, logger)
	if errors.Is(err, errNoKey) {
		logger.Error("learner cannot start", "err", err)
		return contract.Verdict{Cause: contract.CauseUpstream, Reason: problem.KeyRefused, Message: err.Error(),
			Attempt: config.File.Attempt}
	}
	if err != nil {
		logger.Error("learner cannot start", "err", err)
		return contract.Verdict{Cause: contract.CauseConfigRejected, Reason: problem.StartRejected, Message: err.Error(),
			Attempt: config.File.Attempt}
	}
	ctx := context.Background()
	var listen net.ListenConfig
	if config.Exchange, err = listen.Listen(ctx, "tcp", o.exchange); err == nil {
		config.Heartbeat, err = listen.Listen(ctx, "tcp", o.heartbeat)
	}
	if err != nil {
		return contract.Verdict{Cause: contract.CauseCrashed, Message: fmt.Sprintf("listening: %v", err),
			Attempt: config.File.Attempt}
	}
	return learner.Run(ctx, config)
}

// openBucket opens artifacts.url.
func openBucket(ctx context.Context, url string) (artifacts.Objects, error) {
	objects, err := bucket.Open(ctx, url, os.Getenv)
	if err != nil {
		return nil, err
	}
	return objects, nil
}

// errNoKey says that there is no key. A user can add it to the Secret while the run waits.
var errNoKey = errors.New(
	"TINKER_API_KEY is empty: put the key into the Secret that tinker.apiKeySecretKeyRef names")

// configure reads files and the environment.
func configure(o options, logger *slog.Logger) (learner.Config, error) {
	config := learner.Config{
		APIKey: os.Getenv("TINKER_API_KEY"), UserAgent: version.UserAgent("tinker-operator-learner"),
		Identity: os.Getenv("POD_NAME") + "/" + rand.Text(), Drain: drainOnSignal(),
		Hub: &fetch.Fetcher{Endpoint: os.Getenv("HF_ENDPOINT"), Token: os.Getenv("HF_TOKEN"),
			TokenFile: os.Getenv(contract.TokenizerTokenVariable), Logger: logger},
		OpenBucket: openBucket, Endpoint: os.Getenv(contract.EndpointVariable),
	}
	endpoint, err := transport.New(transport.FromEnvironment(os.Getenv))
	if err != nil {
		return config, fmt.Errorf("preparing to connect to the endpoint: %w", err)
	}
	config.HTTP = &http.Client{Transport: endpoint}
	data, err := os.ReadFile(o.runFile)
	if err != nil {
		return config, fmt.Errorf("reading the run file: %w", err)
	}
	if config.File, err = contract.DecodeRunFile(data); err != nil {
		return config, fmt.Errorf("reading the run file: %w", err)
	}
	if config.Credentials, err = readCredentials(o.credentialsDir); err != nil {
		return config, err
	}
	if config.APIKey == "" {
		return config, errNoKey
	}
	if config.Fault, err = requestedFault(); err != nil {
		return config, err
	}
	o.data.AnyRows, o.data.Logger = true, logger
	o.data.Client = &download.Client{UserAgent: config.UserAgent, Logger: logger}
	config.Data = source.New(o.data)
	config.Logger = logger.With("run", config.File.Run.Namespace+"/"+config.File.Run.Name, "attempt", config.File.Attempt)
	return config, nil
}

// readCredentials reads the credentials of a learner, which has the private key.
func readCredentials(dir string) (contract.Credentials, error) {
	credentials, err := contract.ReadCredentials(dir)
	if err == nil && credentials.PrivateKey == nil {
		err = fmt.Errorf("reading credentials: %s is missing", contract.PrivateKeyKey)
	}
	return credentials, err
}

// drainOnSignal returns a channel that is closed at the first SIGTERM or SIGINT.
func drainOnSignal() <-chan struct{} {
	drain := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	once := sync.OnceFunc(func() { close(drain) })
	go func() {
		for range signals {
			once()
		}
	}()
	return drain
}

// writeVerdict writes the verdict to the termination log.
func writeVerdict(path string, verdict contract.Verdict) error {
	encoded, err := contract.EncodeVerdict(verdict)
	if err != nil {
		return err
	}
	return os.WriteFile(path, encoded, 0o644)
}
