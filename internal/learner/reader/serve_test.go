// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// recorded returns a request for a run whose step 3 has a transcript.
func recorded(t *testing.T) Request {
	t.Helper()
	dir := t.TempDir()
	name := filepath.Join(dir, "uid", "episodes", "000000003-abc.jsonl.gz")
	data, err := transcript.EncodeLines(transcript.Line{Step: 3}, []transcript.TaskGroup{{Recorded: true}},
		transcript.Trained{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return Request{Dir: dir, RunUID: "uid"}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func TestServeAnswersQuestions(t *testing.T) {
	listener := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, recorded(t), listener) }()
	ask := func(query string) (int, delivery.Delivery) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/?"+query,
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		d, _ := delivery.Read(answer.Body)
		return answer.StatusCode, d
	}
	for range 2 {
		if _, d := ask("step=-1"); !strings.HasPrefix(string(d.Transcript), `{"step":3,`) || len(d.Steps) != 1 {
			t.Errorf("the newest step is answered with %+v", d)
		}
	}
	if _, d := ask("step=9"); len(d.Transcript) != 0 || len(d.Steps) != 1 {
		t.Errorf("a step without a transcript is answered with %+v", d)
	}
	for _, query := range []string{"", "step=x", "step=-9"} {
		if code, _ := ask(query); code != http.StatusBadRequest {
			t.Errorf("%q is answered with %d", query, code)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the server ends with %v", err)
	}
}

// TestServeEndsWhereNobodyAsks checks that the server ends without requests, so that its pod ends after the person who
// asked has left.
func TestServeEndsWhereNobodyAsks(t *testing.T) {
	if err := serve(t.Context(), recorded(t), listen(t), 10*time.Millisecond); err != nil {
		t.Errorf("the server ends with %v", err)
	}
}
