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
	// Data is where data sets are read from and stored.
	Data source.Config
	// Programs is where functions of users run.
	Programs func(definition contract.Definition) *pythonreward.Host
	// Agents is where agents run.
	Agents func(definition contract.Definition) *pythonreward.Host
	// Sandboxes is the host of programs of a policy.
	Sandboxes func(definition contract.Definition) *pythonreward.Host
	// SharedServers is the prefix of the names of environment servers that the run has once.
	SharedServers string
	// UserAgent identifies the program where data sets are downloaded.
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

// Programs returns where the functions of a definition run in a pod: at a runner in a container of its own, which has
// the environment of its image.
func Programs(definition contract.Definition) *pythonreward.Host {
	return &pythonreward.Host{Socket: contract.SocketOf(definition.ProgramID()), InheritEnv: true}
}

// Agents returns where the agent of a definition runs in a pod: at another runner, in a container of its own.
func Agents(definition contract.Definition) *pythonreward.Host {
	return &pythonreward.Host{Socket: contract.SocketOf(definition.AgentID()), InheritEnv: true}
}

// Sandboxes returns the host of programs of a policy in a pod: another runner, in a container of its own.
func Sandboxes(definition contract.Definition) *pythonreward.Host {
	return &pythonreward.Host{Socket: contract.SocketOf(definition.SandboxID()), InheritEnv: true}
}

// Placement is where the programs of definitions run for the workers of a run.
type Placement struct {
	// Prefix begins the names of programs that have pods of their own; it is empty where none has.
	Prefix string
	// Token is the token of the run's workers.
	Token string
}

// Programs returns where the functions of a definition run: in pods of their own, if it says so, or as Programs has it.
func (p Placement) Programs(definition contract.Definition) *pythonreward.Host {
	return p.host(definition, definition.ProgramID(), Programs)
}

// Agents returns where the agent of a definition runs: in pods of its own, if it says so, or as Agents has it.
func (p Placement) Agents(definition contract.Definition) *pythonreward.Host {
	return p.host(definition, definition.AgentID(), Agents)
}

// Sandboxes returns the host of programs of a policy: in pods of their own, or as the function Sandboxes does.
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

// warmPoolTLS trusts the certificate of a warm pool. The pods of a pool began before the run, and have no certificate
// of the run's own.
func warmPoolTLS(file string) (*tls.Config, error) {
	certificate, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of a warm pool: %w", err)
	}
	return contract.ProgramTLS(certificate)
}

// Gateway returns what serves agents: one server of the process, which begins when it is first needed.
func Gateway(logger *slog.Logger) func() (*gateway.Server, error) {
	return sync.OnceValues(func() (*gateway.Server, error) { return gateway.Listen(gateway.Config{Logger: logger}) })
}

// ReadSecret returns a function that reads the value of a Secret's key, which is mounted below root. Files end with a
// line break more often than keys do.
func ReadSecret(root string) func(ref.SecretKey) (string, error) {
	return func(key ref.SecretKey) (string, error) {
		value, err := os.ReadFile(filepath.Join(root, contract.SecretMount(key), key.Key))
		if err != nil {
			return "", errors.New("the Secret or its key does not exist: create it")
		}
		return strings.TrimSpace(string(value)), nil
	}
}
