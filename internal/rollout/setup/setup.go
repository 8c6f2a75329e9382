// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package setup makes rollout workers from the flags and files of a program: their environments, data sets, Secrets and
// judges.
package setup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/download"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/gateway"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// Config has the parts and settings of a worker.
type Config struct {
	Learner  rollout.Learner
	Endpoint *client.Client
	// Pressure observes the endpoint's client.
	Pressure *rollout.Pressure
	// Spending counts the tokens that the worker asks for.
	Spending *rollout.Spending
	Groups   *groupstore.Store
	// Renderer loads the renderer of the run's model, as the learner sent it.
	Renderer func(ctx context.Context, model contract.Model) (*load.Renderer, error)
	// Hub fetches tokenizers of judges.
	Hub *fetch.Fetcher
	// Data has the folders and limits of data sets.
	Data source.Config
	// Programs returns the runner of the functions of a definition.
	Programs func(definition contract.Definition) *pythonreward.Host
	// Agents returns the runner of the agent of a definition.
	Agents func(definition contract.Definition) *pythonreward.Host
	// Sandboxes returns the runner of programs that the policy writes.
	Sandboxes func(definition contract.Definition) *pythonreward.Host
	// SharedServers is the prefix of the names of environment servers that all workers of the run share.
	SharedServers string
	// UserAgent identifies the program to servers of data sets.
	UserAgent string
	// Grace and KeyPatience are as in rollout.Config.
	Grace, KeyPatience time.Duration
	Logger             *slog.Logger
}

// NewWorker makes a worker.
func NewWorker(config Config) *rollout.Worker {
	reading, judges := &rollout.Data{}, newJudges(config.Hub, config.Endpoint)
	config.Data.Permit = reading.Permit
	return rollout.New(rollout.Config{
		Environments: registry.Builder{
			Data: NewLoader(config.Data, config.UserAgent, config.Logger).Open, Secret: ReadSecret(config.Data.Root),
			Logger:        config.Logger,
			SharedServers: config.SharedServers, Programs: config.Programs, Agents: config.Agents,
			Sandboxes:   config.Sandboxes,
			Gateway:     Gateway(config.Logger),
			TinkerJudge: judges.New, Frozen: judges.Frozen, JudgeProblem: judges.Report, Now: time.Now,
		},
		Data: reading, Judges: judges,
		Learner: config.Learner, Endpoint: config.Endpoint, Groups: config.Groups, Pressure: config.Pressure,
		Spending: config.Spending, Grace: config.Grace, KeyPatience: config.KeyPatience,
		Logger: config.Logger, Renderer: config.Renderer,
	})
}

// NewLoader returns a loader of data sets.
func NewLoader(config source.Config, userAgent string, logger *slog.Logger) *source.Loader {
	config.Logger = logger
	config.Client = &download.Client{UserAgent: userAgent, Logger: logger}
	return source.New(config)
}

// Programs returns the runner of the functions of a definition in the worker's pod. It runs in a separate container,
// with the environment of the image of that container.
func Programs(definition contract.Definition) *pythonreward.Host {
	return &pythonreward.Host{Socket: contract.SocketOf(definition.ProgramID()), InheritEnv: true}
}

// Agents returns the runner of the agent of a definition in the worker's pod. It runs in a separate container.
func Agents(definition contract.Definition) *pythonreward.Host {
	return &pythonreward.Host{Socket: contract.SocketOf(definition.AgentID()), InheritEnv: true}
}

// Sandboxes returns the runner of programs of the policy in the worker's pod. It runs in a separate container.
func Sandboxes(definition contract.Definition) *pythonreward.Host {
	return &pythonreward.Host{Socket: contract.SocketOf(definition.SandboxID()), InheritEnv: true}
}

// Placement selects the runners of a run's workers: in the worker's pod, or in separate pods.
type Placement struct {
	// Prefix begins the names of programs in separate pods. It is empty if the run has no such program.
	Prefix string
	// Token is the token of the run's workers.
	Token string
}

// Programs returns the runner of the functions of a definition: in separate pods if the definition asks for them, or
// else the runner that the function Programs returns.
func (p Placement) Programs(definition contract.Definition) *pythonreward.Host {
	return p.host(definition, definition.ProgramID(), Programs)
}

// Agents returns the runner of the agent of a definition: in separate pods if the definition asks for them, or else the
// runner that the function Agents returns.
func (p Placement) Agents(definition contract.Definition) *pythonreward.Host {
	return p.host(definition, definition.AgentID(), Agents)
}

// Sandboxes returns the runner of programs of the policy: in separate pods if the definition asks for them, or else the
// runner that the function Sandboxes returns.
func (p Placement) Sandboxes(definition contract.Definition) *pythonreward.Host {
	return p.host(definition, definition.SandboxID(), Sandboxes)
}

func (p Placement) host(definition contract.Definition, id string,
	beside func(contract.Definition) *pythonreward.Host) *pythonreward.Host {
	if !definition.InPods() || p.Prefix == "" || id == "" {
		return beside(definition)
	}
	pods := &pythonreward.Pods{Name: contract.ProgramName(p.Prefix, id), Port: contract.ProgramPort, Now: time.Now}
	secrets, err := contract.DeriveProgramCredentials(p.Token, id)
	if err != nil {
		pods.LookUp = func(context.Context, string) ([]string, error) { return nil, err }
	}
	pods.Token, pods.TLS = secrets.Token, secrets.ClientTLS
	if pool := definition.WarmPool(); pool != "" {
		pods.TLS = func() (*tls.Config, error) { return warmPoolTLS(contract.WarmPoolCertificate(pool)) }
	}
	return &pythonreward.Host{Pods: pods, InheritEnv: true}
}

// warmPoolTLS returns a configuration that trusts the certificate of a warm pool. The pods of a pool started before the
// run and have no certificate of the run.
func warmPoolTLS(file string) (*tls.Config, error) {
	certificate, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of a warm pool: %w", err)
	}
	return contract.ProgramTLS(certificate)
}

// Gateway returns a function that returns the server for agents. The process has one server, which starts at the first
// call.
func Gateway(logger *slog.Logger) func() (*gateway.Server, error) {
	return sync.OnceValues(func() (*gateway.Server, error) { return gateway.Listen(gateway.Config{Logger: logger}) })
}

// ReadSecret returns a function that reads the value of a key of a Secret, which is mounted below root. It removes
// white space at both ends, such as a final line break, which is not part of the value.
func ReadSecret(root string) func(ref.SecretKey) (string, error) {
	return func(key ref.SecretKey) (string, error) {
		value, err := os.ReadFile(filepath.Join(root, contract.SecretMount(key), key.Key))
		if err != nil {
			return "", errors.New("the Secret or its key does not exist: create it")
		}
		return strings.TrimSpace(string(value)), nil
	}
}
