// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/algorithm"
	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/learner"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/bucket"
	"github.com/tinker-operator/tinker-operator/internal/tinker/capability"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/stats"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
	"github.com/tinker-operator/tinker-operator/test/archive"
)

const apiKey = "tml-survival"

// patience bounds everything that a test waits for: many trainings share the processors.
const patience = 30 * time.Minute

// fixture is a simulator, an artifact folder and a run, whose learners and workers are started and killed.
type fixture struct {
	t         testing.TB
	sim       *tinkersim.Server
	url       string
	artifacts string
	// data is the folder with the files of data sets of supervised runs.
	data string
	// checkpoints is the folder of the simulator.
	checkpoints string
	credentials contract.Credentials
	file        contract.RunFile
	client      *client.Client
	workers     []*fakeWorker
	// front is the address at which the run reaches the simulator, and key the run's credential there. If they are empty,
	// the run uses the simulator's own.
	front, key string
	// endpoint is the name of a TinkerEndpoint. The learner asks its broker what the server supports. If it is empty,
	// the learner checks the server itself.
	endpoint string
	// http is the client by which learners call the simulator; nil means their own.
	http *http.Client
	// barrier is the time for which learners wait for the workers of the previous learner; 0 means 80 ms, which is less
	// than a worker may wait before it dials again.
	barrier time.Duration
	// tick is the interval at which learners look for lost workers; 0 means 50 ms.
	tick time.Duration
	// skipAfter is the time for which an environment has to be unavailable before learners skip it; 0 means their
	// default.
	skipAfter time.Duration
	// trackingPatience is the time for which a learner that ends tries to send the last steps to tracking services; 0
	// means patience.
	trackingPatience time.Duration
	// silence is the time without a message after which a worker's leases are given to others; 0 means a minute, within
	// which a worker sends something on a machine of any speed.
	silence time.Duration
	// storeSlow is the time after which a call of the artifact store is reported, and drainPatience the time for which a
	// draining learner waits for the store; 0 means the learner's default.
	storeSlow, drainPatience time.Duration
	// billed is the simulator's bill before the run.
	billed stats.Billed
	*shared
}

// shared has the fields that several goroutines read and write.
type shared struct {
	mu      sync.Mutex
	address string
	clock   time.Duration // how far the simulator's clock is ahead of the real time
	ahead   time.Duration // how far the learners' clock is ahead of the real time
	// ended has the errors with which rollout workers ended, by their names.
	ended map[string]error
}

// advance puts the simulator's clock forward.
func (w *fixture) advance(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock += by
}

func (w *fixture) learnerNow() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

// small is a run of a second: 3 steps of 4 groups of 4, evaluated before and after.
func small() contract.Fixed {
	return contract.Fixed{
		Model: contract.Model{Name: tinkersim.ModelName, Renderer: "role_colon_end", LoraRank: 4, TrainAttention: true,
			TrainMLP: true, TrainUnembed: true, Seed: 7},
		Environments: []contract.Environment{arithmetic("train", 400, 4, 8)},
		Algorithm: &algorithm.Algorithm{
			TasksPerStep: 4, Steps: 3, Seed: 11, Substeps: 1, OnDroppedGroup: algorithm.RefillDroppedGroups,
			Advantage: algorithm.Advantage{Baseline: algorithm.BaselineGroupMean, Scale: algorithm.ScaleNone},
			Loss:      algorithm.Loss{Name: algorithm.LossImportanceSampling},
			Optimizer: algorithm.Optimizer{LearningRate: 1e-3, Schedule: algorithm.ScheduleConstant, Beta1: new(0.9),
				Beta2:   new(0.95),
				Epsilon: 1e-8},
		},
	}
}

func arithmetic(split string, tasks int64, groupSize, maxTokens int) contract.Environment {
	return contract.Environment{
		Name: "arithmetic", Digest: strings.Repeat("d", 64),
		Definition: contract.Definition{
			Dataset: &contract.Dataset{Dataset: settings.Dataset{Arithmetic: &settings.ArithmeticData{MaxOperand: 99}}},
			Reward:  &settings.Reward{RewardRule: settings.RewardRule{ExactMatch: &settings.ExactMatch{}}},
		},
		Splits:    []contract.Split{{Name: split, Shuffle: split == "train", Tasks: tasks}},
		GroupSize: groupSize, MinMembers: 1, Retries: 1,
		Sampling: playing.Sampling{MaxTokens: int32(maxTokens), Temperature: new(1.0), TopP: 1},
		Limits:   playing.Limits{Turns: 1, OnLimit: "Grade"},
		Reward:   playing.EpisodeReward{Reduction: "Sum"},
	}
}

func smallEvaluation() *contract.Evaluation {
	env := arithmetic("test", 6, 1, 8)
	env.PassAt = []int{1}
	return &contract.Evaluation{Before: true, After: true, Environments: []contract.Environment{env}}
}

// newFixture prepares the small run; change may alter its file.
func newFixture(t testing.TB, change func(*contract.RunFile)) *fixture {
	t.Helper()
	return newFixtureOn(t, tinkersim.Options{SessionTimeout: time.Minute}, change)
}

// newFixtureOn prepares the small run on a simulator with these options.
func newFixtureOn(t testing.TB, options tinkersim.Options, change func(*contract.RunFile)) *fixture {
	t.Helper()
	w := &fixture{t: t, artifacts: t.TempDir(), data: t.TempDir(), shared: &shared{}}
	w.checkpoints = t.TempDir()
	options.Dir, options.APIKey, options.Clock = w.checkpoints, apiKey, w.now
	var err error
	w.sim, err = tinkersim.New(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.sim)
	t.Cleanup(func() {
		w.sim.Close()
		server.CloseClientConnections()
		server.Close()
	})
	w.url = server.URL
	w.file = contract.RunFile{
		Version: contract.FormatVersion, Run: contract.RunReference{Namespace: "default", Name: "survival"},
		Fixed: small(), Evaluation: smallEvaluation(), Concurrency: 64, RequireOptimizer: true,
		Checkpoints: contract.Checkpoints{
			EverySteps: 20, TTLSeconds: 604800, RollingEverySteps: 1, RollingTTLSeconds: 86400,
			KeepBestCount: 1, KeepBestMetric: "test/pass@1",
		},
		ArtifactsDir: w.artifacts, LearnerAddress: "learner:7443",
	}
	n := fixtures.Add(1)
	w.identify(fmt.Sprintf("%08x-0000-4000-8000-%012x", 0x1f3a9c2b+n, n))
	if change != nil {
		change(&w.file)
	}
	digest, err := contract.SpecDigest(w.file.Fixed)
	if err != nil {
		t.Fatal(err)
	}
	// The base URL differs between two fixtures, and so is not part of the digest.
	w.file.SpecDigest, w.file.Fixed.BaseURL = digest, w.url
	w.file.Capabilities = allCapabilities(w.file.Fixed)
	if w.client, err = client.New(client.Config{BaseURL: w.url, APIKey: apiKey}); err != nil {
		t.Fatal(err)
	}
	return w
}

// fixtures counts the fixtures that were made. Each fixture has a run of its own.
var fixtures atomic.Int64

// identify sets the run's UID, and derives the run's credentials from it.
func (w *fixture) identify(uid string) {
	w.t.Helper()
	w.file.Run.UID = uid
	w.billed = w.sim.Stats().Billed
	var err error
	if w.credentials, err = contract.DeriveCredentials(bytes.Repeat([]byte{1}, 32), uid); err != nil {
		w.t.Fatal(err)
	}
}

// allCapabilities returns the findings of a first attempt at the simulator. A learner that knows them checks nothing,
// so that scripted faults count the operations of the run alone.
func allCapabilities(fixed contract.Fixed) *contract.Capabilities {
	known := &contract.Capabilities{BaseURL: fixed.BaseURL, Model: fixed.Model.Name}
	for _, feature := range capability.All() {
		known.Supported = append(known.Supported, string(feature))
	}
	return known
}

func (w *fixture) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.clock)
}

// addFaults puts faults in force at the simulator. The test fails if one of them is never injected.
func (w *fixture) addFaults(rules ...fault.Rule) {
	w.t.Helper()
	for _, rule := range rules {
		ids, err := w.sim.Faults().Add([]fault.Rule{rule})
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() {
			for _, status := range w.sim.Faults().List() {
				if status.ID == ids[0] && status.Hits == 0 {
					w.t.Errorf("the fault %s of %s was never injected", rule.Do, rule.Op)
				}
			}
		})
	}
}

// dial connects workers to the newest learner, as the Service does.
func (w *fixture) dial(ctx context.Context, _ string) (net.Conn, error) {
	w.mu.Lock()
	address := w.address
	w.mu.Unlock()
	if address == "" {
		return nil, errors.New("no learner is up")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// attempt is a learner that was started.
type attempt struct {
	heartbeat string
	cancel    context.CancelFunc
	drain     func()
	done      chan struct{}
	verdict   contract.Verdict
}

// hook is called at each fault point with the learner's own context and a function that kills it.
type hook func(ctx context.Context, kill func() error, point string, step int64) error

// startLearner starts the learner of the attempt with this number.
func (w *fixture) startLearner(number int32, hook hook) *attempt {
	w.t.Helper()
	return w.startLearnerOn(number, hook, func(l net.Listener) net.Listener { return l })
}

func (w *fixture) startLearnerOn(number int32, hook hook, wrap func(net.Listener) net.Listener) *attempt {
	w.t.Helper()
	listener, heartbeats := w.listen(), w.listen()
	w.mu.Lock()
	w.address = listener.Addr().String()
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(w.t.Context())
	drain := make(chan struct{})
	a := &attempt{heartbeat: heartbeats.Addr().String(), cancel: cancel, done: make(chan struct{}),
		drain: sync.OnceFunc(func() { close(drain) })}
	file := w.file
	file.Attempt = number
	config := learner.Config{
		File: file, Credentials: w.credentials, APIKey: cmp.Or(w.key, apiKey), Identity: fmt.Sprintf("pod-%d-%p", number, a),
		Exchange: wrap(listener), Heartbeat: heartbeats, Logger: w.logger(), Drain: drain, HTTP: w.http,
		Endpoint: w.endpoint, Hub: &fetch.Fetcher{Endpoint: w.url},
		Timing: learner.Timing{
			Tracking: time.Millisecond, TrackingPatience: cmp.Or(w.trackingPatience, patience),
			Barrier: cmp.Or(w.barrier, 80*time.Millisecond), Silence: cmp.Or(w.silence, time.Minute),
			Tick: cmp.Or(w.tick, 50*time.Millisecond), Pause: 5 * time.Millisecond, SkipAfter: w.skipAfter,
			Question:   100 * time.Millisecond,
			StorePause: 5 * time.Millisecond, StoreSlow: w.storeSlow, DrainPatience: w.drainPatience,
		},
		Now:  w.learnerNow,
		Data: source.New(source.Config{Root: w.data, Dir: w.t.TempDir(), Space: 1 << 28, AnyRows: true}),
		OpenBucket: func(ctx context.Context, url string) (artifacts.Objects, error) {
			return bucket.Open(ctx, url, os.Getenv)
		},
	}
	if hook != nil {
		kill := func() error {
			cancel()
			return learner.ErrKilled
		}
		config.Fault = func(ctx context.Context, point string, step int64) error { return hook(ctx, kill, point, step) }
	}
	go func() {
		defer close(a.done)
		a.verdict = learner.Run(ctx, config)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-a.done
	})
	return a
}

func (w *fixture) listen() net.Listener {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	return listener
}

// dieAt kills the learner when it passes a fault point, at the given step or, if step is negative, at any step. The
// test fails if no learner passes the point.
func (w *fixture) dieAt(point string, step int64) hook {
	w.t.Helper()
	return w.at(point, step, dieIfAt(point, step))
}

// at calls another hook when a learner passes a fault point, at the given step or, if step is negative, at any step.
// The test fails if no learner passes the point.
func (w *fixture) at(point string, step int64, do hook) hook {
	w.t.Helper()
	var reached atomic.Bool
	w.t.Cleanup(func() {
		if !reached.Load() {
			w.t.Errorf("no learner came to the fault point %s of step %d", point, step)
		}
	})
	return func(ctx context.Context, kill func() error, at string, now int64) error {
		if at != point || (step >= 0 && now != step) {
			return nil
		}
		reached.Store(true)
		return do(ctx, kill, at, now)
	}
}

// inOrder calls hooks one after the other, up to the first that fails.
func inOrder(hooks ...hook) hook {
	return func(ctx context.Context, kill func() error, point string, step int64) error {
		for _, hook := range hooks {
			if err := hook(ctx, kill, point, step); err != nil {
				return err
			}
		}
		return nil
	}
}

// rename renames a file or a folder.
func rename(from, to string) hook {
	return func(context.Context, func() error, string, int64) error { return os.Rename(from, to) }
}

// dieIfAt is dieAt for a fault point that the learner need not pass.
func dieIfAt(point string, step int64) hook {
	return func(_ context.Context, kill func() error, at string, now int64) error {
		if at == point && (step < 0 || now == step) {
			return kill()
		}
		return nil
	}
}

func (w *fixture) logger() *slog.Logger {
	if os.Getenv("SURVIVAL_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// waitFor waits for a learner and checks the cause.
func (w *fixture) waitFor(a *attempt, want contract.Cause) contract.Verdict {
	w.t.Helper()
	select {
	case <-a.done:
	case <-time.After(patience):
		w.t.Fatalf("the learner did not end; it should with %s", want)
	}
	if a.verdict.Cause != want {
		w.t.Fatalf("learner ended with %s (%s: %s), want %s", a.verdict.Cause, a.verdict.Reason, a.verdict.Message, want)
	}
	return a.verdict
}

// weights returns the digest of the adapter in the newest state that the verdict names.
func (w *fixture) weights(verdict contract.Verdict) string {
	w.t.Helper()
	if len(verdict.Progress.Checkpoints) == 0 {
		w.t.Fatal("the verdict names no state")
	}
	newest := verdict.Progress.Checkpoints[0]
	if newest.Step != w.file.Algorithm().Steps {
		w.t.Fatalf("the newest state is of step %d, want %d", newest.Step, w.file.Algorithm().Steps)
	}
	return w.archive(newest.State)
}

func (w *fixture) archive(path string) string {
	w.t.Helper()
	body := archive.Open(w.t, w.url, apiKey, path)
	defer body.Close()
	files := tar.NewReader(body)
	for {
		header, err := files.Next()
		if err != nil {
			w.t.Fatalf("no adapter in the archive of %s: %v", path, err)
		}
		if !strings.Contains(filepath.Base(header.Name), "adapter") || strings.HasSuffix(header.Name, ".json") {
			continue
		}
		hash := sha256.New()
		if _, err := io.Copy(hash, files); err != nil {
			w.t.Fatal(err)
		}
		return hex.EncodeToString(hash.Sum(nil))
	}
}
