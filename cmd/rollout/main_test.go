// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// call runs the program with arguments, and returns its exit code and its output.
func call(t *testing.T, env map[string]string, args ...string) (code int, stdout string) {
	t.Helper()
	var out, errors bytes.Buffer
	code = run(t.Context(), environ{args: args, getenv: func(name string) string { return env[name] }, stdout: &out,
		stderr: &errors})
	t.Logf("rollout %s: exit code %d, %s", strings.Join(args, " "), code, errors.String())
	return code, out.String()
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestProbe(t *testing.T) {
	cases := map[string]struct {
		definition string
		code       int
		want       contract.ProbeResult
	}{
		"an environment that is well": {
			definition: `{"dataset":{"arithmetic":{"maxOperand":99}},"reward":{"exactMatch":{}}}`,
			want: contract.ProbeResult{OK: true, CanaryReward: new(1.0),
				Splits: []contract.ProbeSplit{{Name: "test", Tasks: 2006}, {Name: "train", Tasks: 7994}}},
		},
		"data that is not there": {
			definition: `{"dataset":{"jsonl":{"configMapRef":{"name":"own"}},"splits":[{"name":"train","source":"rows.jsonl"}]},"reward":{"exactMatch":{}}}`,
			code:       64, want: contract.ProbeResult{Reason: "DataInvalid"}},
		"one that cannot be built": {definition: `{"dataset":{"arithmetic":{"maxOperand":10000}},"reward":{"exactMatch":{}}}`,
			code: 64, want: contract.ProbeResult{Reason: "Invalid"}},
		"a definition that is not whole": {definition: `{"dataset":{"arithmetic":{"maxOperand":9}}}`, code: 64,
			want: contract.ProbeResult{Reason: "Invalid"}},
		"a setting that nobody knows": {
			definition: `{"dataset":{"arithmetic":{"maxOperand":9,"minOperand":1}},"reward":{"exactMatch":{}}}`, code: 64,
			want: contract.ProbeResult{Reason: "Invalid"}},
		"a definition that is not JSON": {definition: `dataset: arithmetic`, code: 64,
			want: contract.ProbeResult{Reason: "Invalid"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log := filepath.Join(dir, "termination-log")
			code, stdout := call(t, nil, "probe", "--definition", write(t, filepath.Join(dir, "definition.json"), tc.definition),
				"--termination-log", log)
			message, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			got, err := contract.DecodeProbeResult(string(message))
			if err != nil {
				t.Fatalf("the termination log: %v", err)
			}
			if code != tc.code || strings.TrimSpace(stdout) != string(message) || (got.Message != "") == got.OK {
				t.Errorf("exit code %d, want %d; standard output %q", code, tc.code, stdout)
			}
			got.Message = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProbeWithoutADefinition(t *testing.T) {
	if code, _ := call(t, nil, "probe", "--definition", filepath.Join(t.TempDir(), "none")); code != 64 {
		t.Errorf("exit code %d, want 64", code)
	}
}

// pod has the paths of the files in a worker's pod.
type pod struct{ dir, runFile, credentialsDir string }

func newPod(t *testing.T, learner string, secrets contract.Credentials) pod {
	t.Helper()
	p := pod{dir: t.TempDir()}
	p.credentialsDir = p.dir
	write(t, filepath.Join(p.dir, contract.TokenKey), secrets.Token)
	write(t, filepath.Join(p.dir, contract.CertificateKey), string(secrets.Certificate))
	encoded, err := contract.EncodeRunFile(runFile(t, learner))
	if err != nil {
		t.Fatal(err)
	}
	p.runFile = write(t, filepath.Join(p.dir, contract.RunFileName), string(encoded))
	return p
}

func runFile(t *testing.T, learner string) contract.RunFile {
	t.Helper()
	file := contract.RunFile{
		Version: contract.FormatVersion, Run: contract.RunReference{Namespace: "ns", Name: "run", UID: "uid-1"}, Attempt: 1,
		Concurrency:    8,
		LearnerAddress: learner,
		Fixed: contract.Fixed{
			Model:    contract.Model{Name: "tinkersim/byte-136k", Renderer: "role_colon_end", LoraRank: 8, TrainMLP: true},
			BaseURL:  "http://127.0.0.1:1",
			InitFrom: &contract.InitFrom{Checkpoint: "tinker://run/sampler_weights/a"},
		},
		Evaluation: &contract.Evaluation{After: true, Environments: []contract.Environment{{
			Name: "arithmetic", Digest: strings.Repeat("0", 64), GroupSize: 1, MinMembers: 1, PassAt: []int{1},
			Definition: contract.Definition{Dataset: &contract.Dataset{Dataset: environment.Dataset{
				Arithmetic: &environment.ArithmeticData{MaxOperand: 9}}},
				Reward: &environment.Reward{RewardRule: environment.RewardRule{ExactMatch: &environment.ExactMatch{}}}},
			Splits:   []contract.Split{{Name: "test", Tasks: 1}},
			Sampling: playing.Sampling{MaxTokens: 1, Temperature: new(1.0), TopP: 1},
			Reward:   playing.EpisodeReward{Reduction: "Sum"},
		}}},
	}
	digest, err := contract.SpecDigest(file.Fixed)
	if err != nil {
		t.Fatal(err)
	}
	file.SpecDigest = digest
	return file
}

func TestWorkerConfiguration(t *testing.T) {
	secrets, err := contract.DeriveCredentials(make([]byte, 32), "uid-1")
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"TINKER_API_KEY": "tml-test", "POD_NAME": "worker-0"}
	p := newPod(t, "127.0.0.1:1", secrets)
	cases := map[string]struct {
		env  map[string]string
		args []string
	}{
		"no name":     {env: map[string]string{"TINKER_API_KEY": "tml-test"}},
		"no run file": {env: env, args: []string{"--run-file", filepath.Join(p.dir, "none")}},
		"no credentials": {env: env, args: []string{"--run-file", p.runFile, "--credentials-dir",
			filepath.Join(p.dir, "none")}},
		"an empty run file":    {env: env, args: []string{"--run-file", write(t, filepath.Join(p.dir, "empty.json"), "")}},
		"a flag of nobody":     {env: env, args: []string{"--nobody"}},
		"an argument too many": {env: env, args: []string{"run"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if code, _ := call(t, tc.env, tc.args...); code != 64 {
				t.Errorf("exit code %d, want 64", code)
			}
		})
	}
}

// TestWorkerWithEmptyKey checks that a worker without a key waits before it ends, with the exit code by which the
// manager replaces it.
func TestWorkerWithEmptyKey(t *testing.T) {
	env := map[string]string{"POD_NAME": "worker-0", "TINKER_API_KEY": ""}
	began := time.Now()
	if code, _ := call(t, env, "--key-patience", "50ms"); code != contract.ExitKeyRefused {
		t.Errorf("exit code %d, want %d", code, contract.ExitKeyRefused)
	}
	if took := time.Since(began); took < 50*time.Millisecond {
		t.Errorf("it ended after %v, want the patience", took)
	}
}

// idleLearner is a learner that leases nothing.
type idleLearner struct {
	play   contract.Play
	hellos chan string
	// version is the version of the exchange, and playVersion the version of the play settings; 0 means the present
	// version.
	version, playVersion int
}

func (g *idleLearner) Hello(_ context.Context, worker string, _ exchange.HelloRequest) (exchange.HelloReply, error) {
	offered := g.play
	offered.Version = contract.FormatVersion
	if g.playVersion != 0 {
		offered.Version = g.playVersion
	}
	play, err := json.Marshal(offered)
	select {
	case g.hellos <- worker:
	default:
	}
	return exchange.HelloReply{Play: play}, err
}

func (g *idleLearner) Acquire(ctx context.Context, _ string, _ int) ([]exchange.Lease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (g *idleLearner) Renew(string, exchange.Renewal) exchange.Directive { return exchange.Directive{} }
func (g *idleLearner) Directive(string) exchange.Directive               { return exchange.Directive{} }
func (g *idleLearner) Submit(string, rl.Group, rl.Digest) *exchange.SubmitReply {
	return &exchange.SubmitReply{}
}
func (*idleLearner) Report(string, exchange.Spent, []rl.Key) {}

func (g *idleLearner) Disconnected(string) {}

func (g *idleLearner) Release(string, []rl.Key, string) {}

// serve starts a learner and returns its address.
func serve(t *testing.T, g *idleLearner, secrets contract.Credentials) string {
	t.Helper()
	return serveEpoch(t, g, &exchange.Epoch{RunUid: "uid-1", SpecDigest: runFile(t, "learner:1").SpecDigest, Attempt: 1,
		Version: int32(g.version)}, secrets)
}

func serveEpoch(t *testing.T, handler exchange.Handler, epoch *exchange.Epoch, secrets contract.Credentials) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := exchange.NewServer(exchange.ServerConfig{
		Epoch: epoch, Credentials: secrets, Handler: handler,
		Fenced: func(int32) {}, Logger: slog.New(slog.DiscardHandler), Timing: exchange.Timing{Drain: 10 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return listener.Addr().String()
}

func TestExitCodesOfWorkers(t *testing.T) {
	const known = "tinkersim/byte-136k"
	cases := map[string]struct {
		model                string
		version, playVersion int
		code                 int
	}{
		"a worker that is stopped":       {model: known, code: 75},
		"a model that is not known":      {model: "nobody/nothing", code: 64},
		"an exchange of another version": {model: known, version: contract.FormatVersion + 2, code: 76},
		"something of another version":   {model: known, playVersion: contract.FormatVersion + 1, code: 76},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			secrets, err := contract.DeriveCredentials(make([]byte, 32), "uid-1")
			if err != nil {
				t.Fatal(err)
			}
			g := &idleLearner{play: contract.Play{Model: contract.Model{Name: tc.model, Renderer: "role_colon_end"}},
				hellos:  make(chan string, 1),
				version: tc.version, playVersion: tc.playVersion}
			p := newPod(t, serve(t, g, secrets), secrets)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			code := make(chan int, 1)
			go func() {
				getenv := func(name string) string {
					return map[string]string{"TINKER_API_KEY": "tml-test", "POD_NAME": "worker-7"}[name]
				}
				var output bytes.Buffer
				code <- run(ctx, environ{getenv: getenv, stdout: &output, stderr: &output, args: []string{
					"--run-file", p.runFile, "--credentials-dir", p.credentialsDir, "--spill-dir", filepath.Join(p.dir, "spill"),
					"--health-listen", "127.0.0.1:0"}})
			}()
			if tc.version == 0 {
				if worker := <-g.hellos; worker != "worker-7" {
					t.Errorf("worker %q said hello", worker)
				}
			}
			if tc.code == exitUnavailable {
				cancel()
			}
			if got := <-code; got != tc.code {
				t.Errorf("exit code %d, want %d", got, tc.code)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	ready := false
	handler := healthHandler(func() bool { return ready })
	status := func(path string) int {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		return recorder.Code
	}
	before := []int{status("/healthz"), status("/readyz")}
	ready = true
	after := []int{status("/healthz"), status("/readyz"), status("/")}
	if diff := cmp.Diff([][]int{{200, 503}, {200, 200, 404}}, [][]int{before, after}); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}
