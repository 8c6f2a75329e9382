// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	stdout, stderr, err := call(t, nil, object, "-f", "-", "--episodes", "1", "--max-tokens", "16", "--ors", "sums="+server.URL, "--secret", "vault="+dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if !strings.Contains(stdout, "What is 1 + 2?") || !strings.Contains(stdout, "reward 0.75") {
		t.Errorf("the output lacks the prompt or the reward of the server:\n%s", stdout)
	}
	close(secrets)
	for secret := range secrets {
		if secret != "sesame" {
			t.Errorf("a session has the secret %q, want that of --secret", secret)
		}
	}
}
