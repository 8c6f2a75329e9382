// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/pythonreward"
	"github.com/tinker-operator/tinker-operator/internal/environment/registry"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/renderer/load"
	"github.com/tinker-operator/tinker-operator/internal/rollout"
	"github.com/tinker-operator/tinker-operator/internal/rollout/groupstore"
	"github.com/tinker-operator/tinker-operator/internal/rollout/probe"
	"github.com/tinker-operator/tinker-operator/internal/rollout/setup"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
	"github.com/tinker-operator/tinker-operator/internal/version"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

const (
	keyVariable = "TINKER_API_KEY"
	userAgent   = "kubectl-tinker"
	// simulatorKey is the key of the simulator in this process.
	simulatorKey = "tml-try"
	dataBytes    = 4 << 30
)

// trial is one run of the command.
type trial struct {
	flags
	input  input
	env    cli.IO
	dir    string
	format output.Format
	logger *slog.Logger

	key    string
	http   *http.Client
	hub    *fetch.Fetcher
	outage outage
	// hosts run functions.
	hosts []*pythonreward.Host
	// started are the addresses of the servers of --ors-command, by environment.
	started map[string]string
	// only are the environments that are probed; nil means the environments that the run names.
	only []string
}

// run prepares the inputs of the pods, and plays or trains.
func (t *trial) run(ctx context.Context) error {
	stop, err := t.connect(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if err := t.confirm(ctx); err != nil {
		return err
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	t.outage = outage{url: t.url, progress: t.progress, giveUp: giveUp}
	t.hub = &fetch.Fetcher{Endpoint: t.env.Getenv("HF_ENDPOINT"), Token: t.env.Getenv("HF_TOKEN"), Logger: t.logger}
	started, stopServers, err := t.startServers(ctx)
	if err != nil {
		return err
	}
	defer stopServers()
	t.started = started
	pins, stopPrograms, err := t.pins(ctx)
	if err != nil {
		return err
	}
	defer stopPrograms()
	file, err := t.runFile(pins)
	if err != nil {
		return err
	}
	act := t.play
	switch {
	case file.Fixed.Supervised != nil:
		act = t.trainRows
	case t.input.train:
		act = t.train
	}
	err = act(ctx, file)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// confirm asks a person before tokens are bought, unless the endpoint is on this machine.
func (t *trial) confirm(ctx context.Context) error {
	if t.yes || isLocal(t.url) {
		return nil
	}
	what := fmt.Sprintf("plays %d episodes", cmp.Or(t.episodes, defaultEpisodes))
	switch alg := t.input.run.Spec.Algorithm; {
	case t.input.train && t.input.run.Spec.Supervised != nil:
		what = fmt.Sprintf("trains %d steps of rows", t.steps)
	case t.input.train && alg != nil:
		what = fmt.Sprintf("trains %d steps on %d tasks each", t.steps, alg.TasksPerStep)
	}
	return cli.Confirm(ctx, t.env, fmt.Sprintf("This trial %s at %s, which may bill their tokens. Continue?", what, t.url))
}

// isLocal reports whether an address is on the loopback interface of this machine.
func isLocal(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(parsed.Hostname())
	return parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// pins probes the environments and pins them. stop ends the programs that they have started.
func (t *trial) pins(ctx context.Context) (pins desired.Pins, stop func(), err error) {
	if err := t.fillRoot(); err != nil {
		return nil, nil, err
	}
	if err := t.fillCode(); err != nil {
		return nil, nil, err
	}
	if stop, err = t.hostPrograms(ctx); err != nil {
		return nil, nil, err
	}
	if pins, err = t.probeAll(ctx); err != nil {
		stop()
		return nil, nil, err
	}
	return pins, stop, nil
}

// progress prints a line about work that takes a while.
func (t *trial) progress(format string, args ...any) {
	fmt.Fprintf(t.env.Stderr, format+"\n", args...)
}

// connect starts the simulator, or takes the endpoint that the command line names.
func (t *trial) connect(ctx context.Context) (stop func(), err error) {
	if t.url == "" {
		return t.simulate(ctx)
	}
	if t.key = strings.TrimSpace(t.env.Getenv(keyVariable)); t.key == "" {
		return nil, fmt.Errorf("the variable %s is not set: set it to the key of the endpoint %s", keyVariable, t.url)
	}
	if !strings.HasPrefix(t.url, "http://") && !strings.HasPrefix(t.url, "https://") {
		return nil, cli.Misused("--url %q is invalid: it begins with http:// or https://, followed by a host", t.url)
	}
	options := transport.FromEnvironment(t.env.Getenv)
	connection, err := transport.New(options)
	if err != nil {
		return nil, err
	}
	t.http = &http.Client{Transport: connection}
	return func() {}, nil
}

// simulate serves tinkersim in this process.
func (t *trial) simulate(ctx context.Context) (stop func(), err error) {
	sim, err := tinkersim.New(tinkersim.Options{Dir: filepath.Join(t.dir, "tinkersim"), APIKey: simulatorKey,
		Log: t.logger})
	if err != nil {
		return nil, fmt.Errorf("starting the simulator: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		sim.Close()
		return nil, fmt.Errorf("starting the simulator: %w", err)
	}
	server := &http.Server{Handler: sim, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	t.url, t.key = "http://"+listener.Addr().String(), simulatorKey
	return func() {
		sim.Close()
		_ = server.Close()
	}, nil
}

// probeAll probes the environments as probe Jobs do, and pins them.
func (t *trial) probeAll(ctx context.Context) (desired.Pins, error) {
	pins := desired.Pins{}
	servers, err := t.servers()
	if err != nil {
		return nil, err
	}
	for _, name := range t.names() {
		definition := desired.Definition(t.input.environments[name].Spec)
		if err := t.useServer(name, &definition, servers); err != nil {
			return nil, err
		}
		pin, err := t.probe(ctx, name, definition)
		if err != nil {
			return nil, err
		}
		pins[name] = pin
	}
	return pins, nil
}

// names returns the names of the environments that are probed.
func (t *trial) names() []string {
	switch {
	case t.environment != "":
		return []string{t.environment}
	case t.only != nil:
		return t.only
	}
	return desired.References(t.input.run)
}

func (t *trial) sourceConfig() source.Config {
	return source.Config{Root: t.root(), Dir: t.dir, Space: dataBytes}
}

// probe checks one environment, and says every few seconds that it still does.
func (t *trial) probe(ctx context.Context, name string, definition contract.Definition) (desired.Pin, error) {
	defer t.repeat(ctx, fmt.Sprintf("environment %s: still reading its data and checking its rewards", name))()
	loader, builder := t.builder()
	result, _ := probe.Probe(ctx, builder, definition)
	if ctx.Err() != nil {
		return desired.Pin{}, ctx.Err()
	}
	if !result.OK {
		return desired.Pin{}, fmt.Errorf("RewardEnvironment %q (%s): %s%s", name, result.Reason, result.Message,
			t.advice(name, result.Reason, definition))
	}
	if definition.Dataset != nil {
		definition.Dataset.Contents = loader.Contents(*definition.Dataset)
	}
	digest, err := contract.DefinitionDigest(definition)
	if err != nil {
		return desired.Pin{}, err
	}
	pin := desired.Pin{Digest: digest, Definition: definition, Splits: map[string]int64{},
		DeclaresTools: result.DeclaresTools}
	line := ""
	for _, split := range result.Splits {
		pin.Splits[split.Name] = split.Tasks
		line += fmt.Sprintf(" %s=%d", split.Name, split.Tasks)
	}
	if result.CanaryReward != nil {
		line += fmt.Sprintf(", and a right answer earns %s", output.Number(result.CanaryReward))
	}
	t.progress("environment %s: tasks%s", name, line)
	if result.Message != "" {
		t.progress("environment %s: warning: %s", name, result.Message)
	}
	return pin, nil
}

// builder returns the builder of environments, and the loader of their data.
func (t *trial) builder() (*source.Loader, registry.Builder) {
	loader := setup.NewLoader(t.sourceConfig(), version.UserAgent(userAgent), t.logger)
	return loader, registry.Builder{
		Data: loader.Open, Secret: setup.ReadSecret(t.root()),
		Programs: t.programs, Agents: t.programs, Sandboxes: t.sandboxes,
		Gateway: setup.Gateway(t.logger), Logger: t.logger, Now: time.Now,
	}
}

// repeat prints a line every few seconds until the returned function is called.
func (t *trial) repeat(ctx context.Context, line string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var printing sync.WaitGroup
	printing.Go(func() {
		for wait.Sleep(ctx, 5*time.Second) == nil {
			t.progress("%s", line)
		}
	})
	return func() {
		cancel()
		printing.Wait()
	}
}

// advice names the flag for an object that a definition refers to and the command does not have.
func (t *trial) advice(name string, reason problem.Code, definition contract.Definition) string {
	switch d := definition.Dataset; {
	case definition.ORS != nil && (reason == problem.EnvironmentFault || reason == problem.EnvironmentAuthorityUnknown):
		return fmt.Sprintf("; check the server at %s, which --ors %s=URL names", definition.ORS.URL, name)
	case reason != problem.DataInvalid, d == nil, d.JSONL == nil,
		exists(filepath.Join(t.root(), contract.FilesMount(*d.JSONL))):
		return ""
	case d.JSONL.ClaimName != "":
		return fmt.Sprintf("; give the claim's folder with --data %s=DIR", d.JSONL.ClaimName)
	case d.JSONL.ConfigMapRef != nil:
		return fmt.Sprintf("; put the ConfigMap into the file, or give its files with --data %s=DIR",
			d.JSONL.ConfigMapRef.Name)
	}
	return ""
}

// exists reports whether a file or a folder exists.
func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// servers returns the addresses of --ors, by environment.
func (t *trial) servers() (map[string]string, error) {
	servers := maps.Clone(t.started)
	for _, value := range t.ors {
		name, address, ok := strings.Cut(value, "=")
		if !ok || !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
			return nil, cli.Misused("--ors: %q is not NAME=URL with a URL that begins with http:// or https://", value)
		}
		if t.input.environments[name] == nil {
			return nil, t.noEnvironment("--ors", name)
		}
		servers[name] = address
	}
	return servers, nil
}

// noEnvironment refuses a flag that names a RewardEnvironment which the file does not have.
func (t *trial) noEnvironment(flag, name string) error {
	return cli.Misused("%s: the file has no RewardEnvironment %q; it has %s", flag, name,
		strings.Join(slices.Sorted(maps.Keys(t.input.environments)), ", "))
}

// useServer sets the address of the server of an environment. This command does not run images.
func (t *trial) useServer(name string, definition *contract.Definition, servers map[string]string) error {
	address, given := servers[name]
	switch o := definition.ORS; {
	case o == nil && given:
		return cli.Misused("--ors: RewardEnvironment %q has no environment server", name)
	case o == nil, !given && o.Server == nil:
		return nil
	case !given:
		return cli.Misused("RewardEnvironment %q runs an image, which this command does not: start it, for instance with "+
			"docker run -p 8080:%d %s, and add --ors %s=http://localhost:8080; or give the program of this machine that serves "+
			"at the port $PORT, as --ors-command '%s=python server.py'",
			name, o.Server.Port, o.Server.Image, name, name)
	default:
		o.URL, o.Server = address, nil
	}
	return nil
}

// runFile returns the run file for the pods of the run.
func (t *trial) runFile(pins desired.Pins) (contract.RunFile, error) {
	run := t.input.run
	if t.environment != "" {
		use := v1alpha1.TrainingEnvironment{}
		for _, known := range run.Spec.Environments {
			if desired.RefName(known.EnvironmentUse) == t.environment {
				use = known
			}
		}
		if use.Name == "" {
			return contract.RunFile{}, cli.Misused("--environment: the run does not train on %q", t.environment)
		}
		run.Spec.Environments = []v1alpha1.TrainingEnvironment{use}
	}
	run.Spec.Tinker.BaseURL = t.url
	run.Namespace, run.UID = cmp.Or(run.Namespace, "default"), trialUID()
	checkpoint := ""
	if from := run.Spec.InitFrom; from != nil {
		if from.RunRef != nil {
			return contract.RunFile{}, fmt.Errorf("spec.initFrom.runRef: no cluster is asked for checkpoints: name one with " +
				"spec.initFrom.checkpoint")
		}
		checkpoint = from.Checkpoint
	}
	var template *string
	if key := desired.TemplateKey(run.Spec.Model); key != nil {
		text, missing, err := t.readKey(*key)
		if err != nil {
			return contract.RunFile{}, err
		}
		if missing != "" {
			return contract.RunFile{}, fmt.Errorf("spec.model.renderer.template.configMapKeyRef: %s", missing)
		}
		template = &text
	}
	file, err := desired.File(desired.FileInput{Run: run, Attempt: 1, Pins: pins, DefaultBaseURL: t.url,
		InitFrom: checkpoint, Template: template})
	if err != nil {
		return contract.RunFile{}, fmt.Errorf("the run would be refused: %w", err)
	}
	return file, nil
}

// readRenderer reads the renderer of the run's model.
func (t *trial) readRenderer(ctx context.Context, file contract.RunFile) (*load.Renderer, error) {
	defer t.repeat(ctx, "still reading the tokenizer of "+file.Fixed.Model.Name)()
	return load.ForModel(ctx, t.hub, file.Fixed.Model)
}

// endpoint returns a client of the endpoint.
func (t *trial) endpoint(observe func(client.Event)) (*client.Client, error) {
	return client.New(client.Config{
		BaseURL: t.url, APIKey: t.key, UserAgent: version.UserAgent(userAgent), HTTP: t.http, Logger: t.logger,
		Observe: observe,
	})
}

// worker makes a rollout worker.
func (t *trial) worker(file contract.RunFile, modelRenderer *load.Renderer,
	learner rollout.Learner) (*rollout.Worker, *client.Client, error) {
	pressure := &rollout.Pressure{}
	endpoint, err := t.endpoint(func(event client.Event) {
		pressure.Observe(event)
		t.outage.observe(event)
	})
	if err != nil {
		return nil, nil, err
	}
	groups, err := groupstore.Open(groupstore.Config{Version: file.Version, MemoryBytes: 1 << 30, Logger: t.logger})
	if err != nil {
		return nil, nil, err
	}
	worker := setup.NewWorker(setup.Config{
		Learner: learner, Endpoint: endpoint, Pressure: pressure, Groups: groups,
		Renderer: func(context.Context, contract.Model) (*load.Renderer, error) { return modelRenderer, nil }, Hub: t.hub,
		Data: t.sourceConfig(), Programs: t.programs, Agents: t.programs, Sandboxes: t.sandboxes,
		UserAgent: version.UserAgent(userAgent),
		Logger:    t.logger,
	})
	return worker, endpoint, nil
}
