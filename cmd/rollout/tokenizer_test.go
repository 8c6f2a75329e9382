// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// reportingLearner is an idle learner that passes on the workers' problems with their data, and their requests for
// leases.
type reportingLearner struct {
	idleLearner
	problems chan problem.Problem
	asked    chan struct{}
}

func (g *reportingLearner) Renew(_ string, renewal exchange.Renewal) exchange.Directive {
	for _, found := range renewal.State.GetProblems() {
		select {
		case g.problems <- problem.Problem{Code: problem.Code(found.GetCode()), Evidence: found.GetEvidence()}:
		default:
		}
	}
	return g.Directive("")
}

func (g *reportingLearner) Directive(string) exchange.Directive {
	return exchange.Directive{Credits: 4}
}

func (g *reportingLearner) Acquire(ctx context.Context, _ string, _ int) ([]exchange.Lease, error) {
	select {
	case g.asked <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestWorkerWaitsForItsTokenizer starts a worker whose tokenizer is missing. The worker reports this to the learner,
// reads the tokenizer once it exists, and only then asks for leases, all in one process.
func TestWorkerWaitsForItsTokenizer(t *testing.T) {
	var repaired atomic.Bool
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !repaired.Load() {
			http.Error(w, "not here", http.StatusNotFound)
			return
		}
		_, _ = w.Write(model.TokenizerJSON())
	}))
	defer hub.Close()
	secrets, err := contract.DeriveCredentials(make([]byte, 32), "uid-1")
	if err != nil {
		t.Fatal(err)
	}
	own := contract.Model{Name: "own/model", Renderer: "role_colon", LoraRank: 8, TrainMLP: true,
		Tokenizer: &contract.Tokenizer{Repository: "own/model"}}
	g := &reportingLearner{
		idleLearner: idleLearner{play: contract.Play{Model: own}, hellos: make(chan string, 1)},
		problems:    make(chan problem.Problem, 1), asked: make(chan struct{}, 1),
	}
	file := runFile(t, "learner:1")
	file.Fixed.Model = own
	if file.SpecDigest, err = contract.SpecDigest(file.Fixed); err != nil {
		t.Fatal(err)
	}
	file.LearnerAddress = serveEpoch(t, g, &exchange.Epoch{RunUid: "uid-1", SpecDigest: file.SpecDigest, Attempt: 1},
		secrets)
	encoded, err := contract.EncodeRunFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := newPod(t, "127.0.0.1:1", secrets)
	write(t, p.runFile, string(encoded))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code := make(chan int, 1)
	go func() {
		getenv := func(name string) string {
			return map[string]string{"TINKER_API_KEY": "tml-test", "POD_NAME": "worker-7", "HF_ENDPOINT": hub.URL}[name]
		}
		var output bytes.Buffer
		code <- run(ctx, environ{getenv: getenv, stdout: &output, stderr: &output, args: []string{
			"--run-file", p.runFile, "--credentials-dir", p.credentialsDir, "--spill-dir", filepath.Join(p.dir, "spill"),
			"--health-listen", "127.0.0.1:0"}})
	}()
	select {
	case found := <-g.problems:
		if found.Code != problem.TokenizerBlocked || !strings.Contains(found.Evidence, "404") {
			t.Errorf("the worker reports %+v, want the answer about its tokenizer", found)
		}
	case got := <-code:
		t.Fatalf("the worker exited with code %d while its tokenizer was missing", got)
	}
	select {
	case <-g.asked:
		t.Error("the worker asked for leases before it had a tokenizer")
	default:
	}
	repaired.Store(true)
	select {
	case <-g.asked:
	case got := <-code:
		t.Fatalf("the worker exited with code %d once its tokenizer existed", got)
	}
	cancel()
	if got := <-code; got != exitUnavailable {
		t.Errorf("exit code %d, want %d", got, exitUnavailable)
	}
}
