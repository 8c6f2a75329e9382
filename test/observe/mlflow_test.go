// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build observe

package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	learner "github.com/tinker-operator/tinker-operator/internal/learner/tracking"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/mlflowtest"
)

const mlflowRecord = "../../internal/learner/tracking/testdata/mlflow.txt"

// startMLflow starts the tracking server of the official package, with basic authentication or without, and returns its
// address.
func startMLflow(t *testing.T, arguments ...string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(host)
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), filepath.Join(venv(t, "mlflow"), "bin", "mlflow"), append([]string{
		"server", "--host", "127.0.0.1", "--port", port, "--workers", "1",
		"--backend-store-uri", "sqlite:///" + filepath.Join(dir, "runs.db"), "--default-artifact-root", dir,
	}, arguments...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "MLFLOW_FLASK_SERVER_SECRET_KEY=secret",
		"MLFLOW_AUTH_ADMIN_PASSWORD=a long password", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false",
		"PATH="+filepath.Join(venv(t, "mlflow"), "bin")+":"+os.Getenv("PATH"))
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its worker processes are stopped with it
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(ended)
	}()
	stop := func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	t.Cleanup(stop)
	deadline := time.After(15 * time.Minute)
	for {
		response, err := http.Get("http://" + host + "/health")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return "http://" + host
			}
		}
		select {
		case <-ended:
			t.Fatalf("the MLflow server has ended:\n%s", log.String())
		case <-deadline:
			stop()
			t.Fatalf("the MLflow server does not start:\n%s", log.String())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// recorder passes requests on to a server, and keeps them.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	requests []mlflowtest.Request
}

func record(t *testing.T, address string) *recorder {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		request.Body, request.Host = io.NopCloser(bytes.NewReader(body)), target.Host
		r.mu.Lock()
		r.requests = append(r.requests, mlflowtest.Request{
			Method: request.Method, Path: strings.TrimPrefix(request.URL.Path, mlflowtest.Root), Query: request.URL.RawQuery,
			Authorization: request.Header.Get("Authorization"), Body: body,
		})
		r.mu.Unlock()
		proxy.ServeHTTP(w, request)
	}))
	t.Cleanup(r.Close)
	return r
}

// TestMLflow sends the requests of the official package and of the learner to one server.
func TestMLflow(t *testing.T) {
	address := startMLflow(t)
	t.Run("record", func(t *testing.T) { checkRecord(t, address) })
	t.Run("learner", func(t *testing.T) { checkAttempts(t, address) })
}

// checkRecord logs to a real server with the official package, and compares its requests with the record that the
// learner's tests read.
func checkRecord(t *testing.T, address string) {
	t.Helper()
	server := record(t, address)
	python(t, "mlflow", "mlflow_calls.py", "write", server.URL)
	events, err := mlflowtest.Events(server.requests)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(events, "\n") + "\n"
	if *update {
		if err := os.WriteFile(mlflowRecord, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(mlflowRecord)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("requests of the package (-record +now):\n%s", diff)
	}
}

// mlflowRun is a run as the official package reads it.
type mlflowRun struct {
	Name, Status string
	Params, Tags map[string]string
	Metrics      map[string][][2]float64
}

// checkAttempts sends lines to a real server in three attempts, and reads the run with the official package. The second
// attempt loses the answers to its lines.
func checkAttempts(t *testing.T, address string) {
	t.Helper()
	const last = 700
	for number, attempt := range []struct {
		last int64
		lose bool
		want learner.Outcome
	}{{300, false, learner.Interrupted}, {310, true, learner.Interrupted}, {last, false, learner.Completed}} {
		server := httptest.NewServer(loseAnswers(t, address, attempt.lose))
		defer server.Close()
		sink := learner.New(&tracking.Settings{MLflow: &tracking.MLflow{
			BaseURL: server.URL, Experiment: "attempts", RunName: "fast", Tags: map[string]string{"night": "yes"},
		}}, learner.Run{UID: "u", Namespace: "team", Name: "run",
			Config: map[string]any{"algorithm": map[string]any{"steps": last}}}, nil)[0]
		newest, err := sink.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for lines := mlflowLines(newest+1, attempt.last); len(lines) > 0; lines = lines[min(100, len(lines)):] {
			if err = sink.Write(t.Context(), lines[:min(100, len(lines))]); err != nil {
				break
			}
		}
		if (err != nil) != attempt.lose {
			t.Fatalf("attempt %d: Write fails with %v", number+1, err)
		}
		if err == nil {
			if err := sink.Close(t.Context(), attempt.want); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []mlflowRun
	if err := json.Unmarshal(python(t, "mlflow", "mlflow_calls.py", "read", address, "attempts"), &got); err != nil {
		t.Fatal(err)
	}
	want := []mlflowRun{{
		Name: "fast", Status: "FINISHED", Params: map[string]string{"algorithm.steps": fmt.Sprint(last)},
		Metrics: map[string][][2]float64{},
		Tags: map[string]string{"night": "yes", "tinker-operator.uid": "u", "tinker-operator.namespace": "team",
			"tinker-operator.name": "run"},
	}}
	for _, line := range mlflowLines(0, last) {
		for name, value := range line.Metrics {
			name = strings.ReplaceAll(name, "@", "_at_")
			want[0].Metrics[name] = append(want[0].Metrics[name], [2]float64{float64(line.Step), value})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records of the server (-want +got):\n%s", diff)
	}
}

// mlflowLines returns lines. Every third has the metrics of an evaluation.
func mlflowLines(first, last int64) []learner.Line {
	lines := eventLines(first, last)
	for i, line := range lines {
		if line.Step%3 == 0 {
			lines[i].Metrics["test/pass@1"] = float64(line.Step)
		}
	}
	return lines
}

// loseAnswers passes requests on. If lose is set, it breaks the connection after each request that adds metrics.
func loseAnswers(t *testing.T, address string, lose bool) http.Handler {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body, r.Host = io.NopCloser(bytes.NewReader(body)), target.Host
		if !lose || !bytes.Contains(body, []byte(`"metrics"`)) {
			proxy.ServeHTTP(w, r)
			return
		}
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
}

// TestMLflowRefusesAPassword opens a run at a real server with basic authentication, with the right password and with a
// wrong one.
func TestMLflowRefusesAPassword(t *testing.T) {
	address := startMLflow(t, "--app-name", "basic-auth")
	for password, refused := range map[string]bool{"a long password": false, "wrong": true} {
		key := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(key, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := learner.New(&tracking.Settings{MLflow: &tracking.MLflow{
			BaseURL: address, Experiment: "e", RunName: "r", Username: "admin", KeyFile: key,
		}}, learner.Run{UID: "u"}, nil)[0].Open(t.Context())
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "passwordSecretKeyRef") {
			t.Errorf("with the password %s, Open = %v", password, err)
		}
	}
}
