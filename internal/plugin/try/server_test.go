// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/environment/ors/orstest"
)

func TestTryPlaysTheServerOfAnImage(t *testing.T) {
	secrets := make(chan string, 64)
	server := httptest.NewServer(&orstest.Server{
		Name: "sums", Splits: map[string]int64{"train": 3}, Prompt: func(*orstest.Session) string { return "What is 1 + 2?" },
		Tools: map[string]orstest.Tool{"submit": func(s *orstest.Session, _ json.RawMessage) (orstest.Output, error) {
			secrets <- s.Secrets["token"]
			return orstest.Output{Text: "Thank you.", Finished: true, Reward: new(0.75)}, nil
		}},
		Terminal: "submit", TerminalArgument: "answer",
	})
	t.Cleanup(server.Close)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	object := `apiVersion: rl.tinker-operator.dev/v1alpha1
kind: RewardEnvironment
metadata: {name: sums}
spec:
  ors:
    server: {image: sums:dev}
    secretDelivery: Body
    answerTool: {name: submit, argument: answer}
    secrets: [{name: token, secretKeyRef: {name: vault, key: key}}]
`
	stdout, stderr, err := call(t, nil, object, "-f", "-", "--episodes", "1", "--max-tokens", "16", "--ors",
		"sums="+server.URL, "--secret", "vault="+dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if !strings.Contains(stdout, "What is 1 + 2?") || !strings.Contains(stdout, "reward 0.75") {
		t.Errorf("the output lacks the prompt or the reward of the server:\n%s", stdout)
	}
	close(secrets)
	for secret := range secrets {
		if secret != "sesame" {
			t.Errorf("a session has the secret %q, want the value of --secret", secret)
		}
	}
}

// TestTryEndsAtAServerThatDoesNotAnswer checks that an interrupt ends the command while a server accepts requests and
// does not answer.
func TestTryEndsAtAServerThatDoesNotAnswer(t *testing.T) {
	release, hangs := make(chan struct{}), make(chan struct{}, 64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]string{
			"/list_environments": `["e"]`, "/e/splits": `["train"]`, "/e/num_tasks": `{"num_tasks": 10}`,
			"/create_session": `{"sid": "s"}`,
		}[r.URL.Path]
		if answer == "" {
			hangs <- struct{}{}
			<-release
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	object := `apiVersion: rl.tinker-operator.dev/v1alpha1
kind: RewardEnvironment
metadata: {name: sums}
spec:
  ors: {url: "` + server.URL + `", timeouts: {createSeconds: 3600}}
`
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, _, err := callWith(ctx, nil, object, "-f", "-", "--episodes", "1")
		ended <- err
	}()
	<-hangs
	interrupt()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the command ended with %v, want the interrupt", err)
		}
	case <-time.After(10 * time.Minute):
		t.Error("the command has not ended ten minutes after the interrupt")
	}
}
