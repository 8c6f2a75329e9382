// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package adapters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/ors"
	"github.com/tinker-operator/tinker-operator/internal/environment/tooluse"
)

const samples = "../../../config/samples/environments"

// interpreter returns the Python of a virtual environment with the packages of an adapter's requirements file.
func interpreter(t *testing.T, adapter string) string {
	t.Helper()
	requirements, err := filepath.Abs(filepath.Join(samples, adapter, "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	venv := exec.CommandContext(t.Context(), "../../conformance/venv", requirements)
	venv.Stderr = os.Stderr
	path, err := venv.Output()
	if err != nil {
		t.Fatalf("making the environment of %s: %v", requirements, err)
	}
	return filepath.Join(strings.TrimSpace(string(path)), "bin", "python")
}

// run runs a program until the test ends, and returns once url answers.
func run(t *testing.T, url string, variables []string, python string, arguments ...string) {
	t.Helper()
	program := exec.CommandContext(context.WithoutCancel(t.Context()), python, arguments...)
	var log bytes.Buffer
	program.Stdout, program.Stderr = &log, &log
	program.Env = append(os.Environ(), variables...)
	if err := program.Start(); err != nil {
		t.Fatalf("starting %v: %v", arguments, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = program.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = program.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the output of %v:\n%s", arguments, log.String())
		}
	})
	for !answers(t, url) {
		select {
		case <-ended:
			t.Fatalf("%v ended before it served", arguments)
		case <-t.Context().Done():
			t.Fatalf("%v does not serve", arguments)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func answers(t *testing.T, url string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func freePort(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// serveAdapter serves an adapter, and returns a backend for it.
func serveAdapter(t *testing.T, adapter, python string, answer *settings.AnswerTool, variables ...string) *ors.Backend {
	t.Helper()
	address := "127.0.0.1:" + freePort(t)
	_, port, _ := strings.Cut(address, ":")
	run(t, "http://"+address+"/health", append(variables, "PORT="+port), python,
		filepath.Join(samples, adapter, "environment.py"))
	backend, err := ors.New(ors.Options{BaseURL: "http://" + address, AnswerTool: answer})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return backend
}

func open(t *testing.T, backend *ors.Backend, task environment.Task) tooluse.Session {
	t.Helper()
	session, err := backend.Open(t.Context(), task)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { session.Close(context.Background()) })
	return session
}

func checkSplits(t *testing.T, backend *ors.Backend, want ...environment.Split) {
	t.Helper()
	splits, err := backend.Splits(t.Context())
	if diff := cmp.Diff(want, splits); err != nil || diff != "" {
		t.Errorf("Splits: %v (-want +got):\n%s", err, diff)
	}
}

func checkMessages(t *testing.T, session tooluse.Session, want string) {
	t.Helper()
	messages, err := session.Messages(t.Context())
	if diff := cmp.Diff([]chat.Message{{Role: "user", Content: want}}, messages); err != nil || diff != "" {
		t.Errorf("Messages: %v (-want +got):\n%s", err, diff)
	}
}

// reply opens a session as an episode does, and replies without a call.
func reply(t *testing.T, backend *ors.Backend, text string) (tooluse.Outcome, error) {
	t.Helper()
	session := open(t, backend, environment.Task{Split: "test"})
	checkMessages(t, session, "Be brief.\n\nWhat is word 0?")
	checkTools(t, session, "words_look", "number")
	return answer(t, session, text)
}

// checkTools checks that the policy sees one tool, with a parameter.
func checkTools(t *testing.T, session tooluse.Session, name, parameter string) {
	t.Helper()
	tools, err := session.Tools(t.Context())
	if err != nil || len(tools) != 1 || tools[0].Name != name || !strings.Contains(string(tools[0].Parameters),
		`"`+parameter+`"`) {
		t.Errorf("Tools = %+v, %v, want %s with the parameter %s", tools, err, name, parameter)
	}
}

func call(t *testing.T, session tooluse.Session, name, arguments string) tooluse.Result {
	t.Helper()
	result, err := session.Call(t.Context(), chat.ToolCall{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("Call(%s): %v", name, err)
	}
	return result
}

func isRetriable(err error) bool {
	var fault *environment.Fault
	return errors.As(err, &fault) && !fault.Permanent
}

func answer(t *testing.T, session tooluse.Session, text string) (tooluse.Outcome, error) {
	t.Helper()
	return session.Answer(t.Context(), environment.Reply{Message: chat.Message{Role: "assistant", Content: text}})
}

func TestVerifiers(t *testing.T) {
	t.Parallel()
	tasksets, err := filepath.Abs("tasksets")
	if err != nil {
		t.Fatal(err)
	}
	backend := serveAdapter(t, "verifiers", interpreter(t, "verifiers"),
		&settings.AnswerTool{Name: "reply", Argument: "text"},
		"TASKSET=word_tasks", "TEST_TASKS=5", "PYTHONPATH="+tasksets)
	checkSplits(t, backend, environment.Split{Name: "test", Tasks: 5}, environment.Split{Name: "train", Tasks: 2})

	t.Run("concurrent episodes", func(t *testing.T) {
		var group sync.WaitGroup
		for index := range int64(3) {
			group.Go(func() { playWords(t, backend, index) })
		}
		group.Wait()
	})
	t.Run("second split", func(t *testing.T) {
		checkMessages(t, open(t, backend, environment.Task{Split: "train", Index: 1}), "Be brief.\n\nWhat is word 6?")
	})
	t.Run("stop condition", func(t *testing.T) {
		outcome, err := reply(t, backend, "I give up.")
		if diff := cmp.Diff([]environment.Reward{{Value: 0}}, outcome.Rewards); err != nil || diff != "" ||
			outcome.Text != "" {
			t.Errorf("Answer = %+v, %v; rewards (-want +got):\n%s", outcome, err, diff)
		}
	})
	t.Run("a reward that raises", func(t *testing.T) {
		_, err := reply(t, backend, "crash")
		if !isRetriable(err) || !strings.Contains(err.Error(), "the reward is broken") {
			t.Errorf("Answer: %v, want a fault that is not permanent and quotes the environment", err)
		}
	})
}

// playWords plays an episode with an unknown tool, wrong arguments, a right call and the right answer.
func playWords(t *testing.T, backend *ors.Backend, index int64) {
	session := open(t, backend, environment.Task{Split: "test", Index: index})
	checkMessages(t, session, fmt.Sprintf("Be brief.\n\nWhat is word %d?", index))
	checkTools(t, session, "words_look", "number")
	if got := call(t, session, "look", "{}"); !got.Invalid || got.Done {
		t.Errorf("a call of an unknown tool: %+v", got)
	}
	if got := call(t, session, "words_look", `{"number": "x"}`); !strings.Contains(got.Text, "valid integer") || got.Done {
		t.Errorf("a call with wrong arguments: %+v", got)
	}
	word := fmt.Sprintf("word-%d", index)
	if got := call(t, session, "words_look", fmt.Sprintf(`{"number": %d}`, index)); got.Text != word ||
		len(got.Rewards) != 0 || got.Done {
		t.Errorf("the call: %+v", got)
	}
	outcome, err := answer(t, session, word)
	if diff := cmp.Diff([]environment.Reward{{Value: 2}}, outcome.Rewards); err != nil || diff != "" ||
		outcome.Text != "" {
		t.Errorf("Answer = %+v, %v; rewards (-want +got):\n%s", outcome, err, diff)
	}
}

func TestVerifiersRefusesAnUnknownTaskset(t *testing.T) {
	t.Parallel()
	program := exec.CommandContext(t.Context(), interpreter(t, "verifiers"),
		filepath.Join(samples, "verifiers", "environment.py"))
	output, err := program.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "TASKSET is not set") {
		t.Errorf("the adapter without TASKSET ended with %v and printed %s", err, output)
	}
}

func TestOpenEnv(t *testing.T) {
	t.Parallel()
	python, port := interpreter(t, "openenv"), freePort(t)
	run(t, "http://127.0.0.1:"+port+"/schema", nil, python, "openenv_server.py", port)
	backend := serveAdapter(t, "openenv", python, nil, "OPENENV_URL=http://127.0.0.1:"+port, "PROMPT=You play a game.",
		"TRAIN_TASKS=4", "TEST_TASKS=2")
	checkSplits(t, backend, environment.Split{Name: "test", Tasks: 2}, environment.Split{Name: "train", Tasks: 4})
	session := open(t, backend, environment.Task{Split: "test", Index: 1})
	checkMessages(t, session, "You play a game.\n\nGuess a number.")
	checkTools(t, session, "act", "number")
	if got := call(t, session, "act", `{"guess": 5}`); !strings.Contains(got.Text, "Error") || got.Done {
		t.Errorf("an action without its field: %+v", got)
	}
	got := call(t, session, "act", `{"number": 9}`)
	if diff := cmp.Diff([]environment.Reward{{Value: 0}}, got.Rewards); diff != "" || got.Text != "Lower." || got.Done {
		t.Errorf("the first action: %+v; rewards (-want +got):\n%s", got, diff)
	}
	got = call(t, session, "act", `{"number": 5}`)
	if diff := cmp.Diff([]environment.Reward{{Value: 0.5}}, got.Rewards); diff != "" || got.Text != "Right." || !got.Done {
		t.Errorf("the second action: %+v; rewards (-want +got):\n%s", got, diff)
	}
	_, err := open(t, backend, environment.Task{Split: "train"}).Call(t.Context(),
		chat.ToolCall{Name: "act", Arguments: `{"number": -1}`})
	if !isRetriable(err) || !strings.Contains(err.Error(), "the number is negative") {
		t.Errorf("Call: %v, want a fault that is not permanent and quotes the environment", err)
	}
}
