// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
)

func settingsOf(f *fixture, runs ...broker.Run) endpoint.Settings {
	settings := endpoint.Settings{Endpoint: "shared", Generation: 3, BaseURL: f.config.BaseURL}
	for _, run := range runs {
		settings.Runs = append(settings.Runs, endpoint.Run{UID: run.UID, Namespace: run.Namespace, Former: run.Former})
	}
	return settings
}

func TestSettingsChangeWhileTheBrokerServes(t *testing.T) {
	f := newFixture(t, nil)
	mine := f.make(first)
	apply := func(settings endpoint.Settings, key string) {
		t.Helper()
		if err := f.broker.Apply(settings, key, tokenKey, nil); err != nil {
			t.Fatal(err)
		}
	}
	check := func(run broker.Run, method, path, body string, want int) {
		t.Helper()
		if got := f.callAs(run, method, path, body); got.status != want {
			t.Errorf("%s %s by %s = %+v, want %d", method, path, run.UID, got, want)
		}
	}
	path := "/api/v1/training_runs/" + mine.model + "/checkpoints/weights/state/archive"
	create := `{"session_id":"` + mine.session + `","model_seq_id":9,"base_model":"` + tinkersim.ModelName + `"}`
	settings := settingsOf(f, first, other)
	apply(settings, apiKey)
	check(second, http.MethodGet, "/api/v1/sessions", "", http.StatusUnauthorized)
	check(other, http.MethodGet, path, "", http.StatusNotFound)

	settings.Readable = []endpoint.Readable{{Namespaces: []string{"elsewhere"}, Checkpoints: []string{mine.state}}}
	settings.Models = []string{"another/model"}
	apply(settings, apiKey)
	check(other, http.MethodGet, path, "", http.StatusFound)
	check(first, http.MethodPost, "/api/v1/create_model", create, http.StatusBadRequest)

	apply(settingsOf(f, first), "tml-revoked")
	got := f.callAs(first, http.MethodGet, "/api/v1/get_server_capabilities", "")
	checkRefusal(t, got, http.StatusServiceUnavailable, problem.EndpointKeyRefused, false)
	if report := f.broker.Report(); report.KeyRefused == "" {
		t.Errorf("report = %+v, want the refused key", report)
	}
	apply(settingsOf(f, first), apiKey)
	if err := f.broker.Check(t.Context()); err != nil {
		t.Errorf("Check with the repaired key: %v", err)
	}
	if report := f.broker.Report(); report.KeyRefused != "" {
		t.Errorf("report = %+v after the repair, want no refusal", report)
	}
	check(first, http.MethodGet, "/api/v1/get_server_capabilities", "", http.StatusOK)
}

func TestSettingsThatCannotBeUsedLeaveTheEarlierInForce(t *testing.T) {
	f := newFixture(t, nil)
	settings := settingsOf(f, first)
	for name, change := range map[string]func(*endpoint.Settings) (key string, tokens []byte){
		"no address": func(s *endpoint.Settings) (string, []byte) { s.BaseURL = ""; return apiKey, tokenKey },
		"no key":     func(*endpoint.Settings) (string, []byte) { return "", tokenKey },
		"short key":  func(*endpoint.Settings) (string, []byte) { return apiKey, tokenKey[:31] },
	} {
		broken := settings
		key, tokens := change(&broken)
		if err := f.broker.Apply(broken, key, tokens, nil); err == nil {
			t.Errorf("%s: the settings are in force, want an error", name)
		}
		if got := f.callAs(first, http.MethodGet, "/api/v1/get_server_capabilities", ""); got.status != http.StatusOK {
			t.Errorf("%s: answer = %+v, want the server's", name, got)
		}
	}
}

func TestTokensFollowTheirKey(t *testing.T) {
	f := newFixture(t, nil)
	next := bytes.Repeat([]byte{8}, 32)
	if err := f.broker.Apply(settingsOf(f, first), apiKey, next, nil); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{
		contract.RunToken(tokenKey, first.UID): http.StatusUnauthorized,
		contract.RunToken(next, first.UID):     http.StatusOK,
	} {
		if got := f.call(token, http.MethodGet, "/api/v1/sessions", ""); got.status != want {
			t.Errorf("status = %d, want %d", got.status, want)
		}
	}
}

func TestAServerThatDoesNotAnswerIsReported(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	f := newFixture(t, nil)
	settings := settingsOf(f, first)
	closed.Close()
	settings.BaseURL = closed.URL
	if err := f.broker.Apply(settings, apiKey, tokenKey, &http.Client{Transport: switchTo(closed.URL)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := contextOf(t, 300)
	defer cancel()
	if err := f.broker.Check(ctx); err == nil {
		t.Error("Check succeeds without a server")
	}
	if report := f.broker.Report(); report.Unreachable == "" {
		t.Errorf("report = %+v, want that the server does not answer", report)
	}
	if err := f.broker.Apply(settingsOf(f, first), apiKey, tokenKey, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.broker.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	if report := f.broker.Report(); report.Unreachable != "" {
		t.Errorf("report = %+v with the server, want nothing", report)
	}
}

func TestABrokerWithoutItsLeaseAdmitsAndRecordsNothing(t *testing.T) {
	var ended atomic.Bool
	f, s := scripted(t)
	f.broker.Close()
	f.config.Lease = func() error {
		if ended.Load() {
			return errors.New("its lease has ended")
		}
		return nil
	}
	f.open()
	s.set("optim_step", func(w http.ResponseWriter, _ *http.Request) {
		ended.Store(true) // while the server answers
		_, _ = w.Write([]byte(`{"request_id":"late"}`))
	})
	checkRefusal(t, f.callAs(first, http.MethodPost, "/api/v1/optim_step", step), http.StatusServiceUnavailable,
		problem.RecordsBlocked, true)
	before := len(s.requests())
	got := f.callAs(first, http.MethodPost, "/api/v1/optim_step", step)
	checkRefusal(t, got, http.StatusServiceUnavailable, problem.BrokerDraining, false)
	if !strings.Contains(got.body, "its lease has ended") || len(s.requests()) != before {
		t.Errorf("answer = %+v after %v, want a refusal before the server", got, s.requests())
	}
	ended.Store(false)
	if got := f.callAs(first, http.MethodPost, "/api/v1/retrieve_future", `{"request_id":"late"}`); got.status != 404 {
		t.Errorf("the future that was not recorded: %+v, want 404", got)
	}
}

func contextOf(t *testing.T, milliseconds int) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), time.Duration(milliseconds)*time.Millisecond)
}
