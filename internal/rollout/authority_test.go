// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/download"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset/source"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric"
	"github.com/tinker-operator/tinker-operator/internal/environment/rubric/openaijudge"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport/transporttest"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// TestDataOfAPrivateAuthority checks which problem is reported if the server of the data or the tokenizer has a
// certificate of an authority that is not trusted.
func TestDataOfAPrivateAuthority(t *testing.T) {
	server := transporttest.PrivateServer(t)
	rows, err := source.New(source.Config{Dir: t.TempDir(), Space: 1 << 20, Client: &download.Client{Tries: 1}}).Open(
		t.Context(), contract.Dataset{Dataset: settings.Dataset{JSONL: &settings.JSONL{URL: server.URL},
			Splits: []settings.DataSplit{{Name: "train", Source: "a.jsonl", SHA256: strings.Repeat("a", 64)}}}})
	if err != nil {
		t.Fatal(err)
	}
	_, ofData := rows.Splits(t.Context())
	hub := &fetch.Fetcher{}
	_, _, ofTokenizer := hub.Load(t.Context(), fetch.Source{URL: server.URL + "/tokenizer.json",
		SHA256: strings.Repeat("a", 64)})
	for name, err := range map[string]error{"data": ofData, "tokenizer": &tokenizerError{ofTokenizer}} {
		var d Data
		d.setProblem(err)
		var state exchange.WorkerState
		d.report(&state)
		if got := problem.Code(state.Problems[0].Code); got != problem.DataAuthorityUnknown {
			t.Errorf("%s: the worker reports %s (%v), want %s", name, got, err, problem.DataAuthorityUnknown)
		}
	}
}

// TestJudgeOfAPrivateAuthority checks which problem is reported if the judge's server has a certificate of an
// authority that is not trusted. A judge at the endpoint has no such problem: other fields give the endpoint's
// authority.
func TestJudgeOfAPrivateAuthority(t *testing.T) {
	server := transporttest.PrivateServer(t)
	judge := openaijudge.New(openaijudge.Config{BaseURL: server.URL, Model: "m"})
	_, _, ofJudge := judge.Complete(t.Context(), rubric.Request{Messages: []chat.Message{{Role: "user", Content: "a"}}})
	endpoint, err := client.New(client.Config{BaseURL: server.URL, APIKey: "tml-key"})
	if err != nil {
		t.Fatal(err)
	}
	ofEndpoint := endpoint.Connect(t.Context())
	for want, err := range map[problem.Code]error{problem.JudgeAuthorityUnknown: ofJudge,
		problem.JudgeBlocked: ofEndpoint, "": nil} {
		var judges Judges
		judges.Report(err)
		if got := judges.reported(); got.Code != want {
			t.Errorf("the worker reports %+v for %v, want %s", got, err, want)
		}
	}
}
