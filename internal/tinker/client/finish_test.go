// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestSessionsHaveWhatEverySessionOfTheClientHas(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{"create_session": {ok(`{"session_id":"s"}`)}})
		w.session = SessionRequest{ProjectID: "p", DisplayName: "team/run",
			UserMetadata: map[string]string{"run": "r", "uid": "u"}}
		_, err := w.CreateSession(ctx,
			SessionRequest{Tags: []string{"probe"}, UserMetadata: map[string]string{"uid": "other"}})
		if err != nil {
			t.Fatal(err)
		}
		want := `{"tags":["probe"],"user_metadata":{"run":"r","uid":"other"},"sdk_version":"` + tinker.SDKVersion +
			`","project_id":"p","display_name":"team/run","type":"create_session"}`
		if diff := cmp.Diff([]string{want}, slices.Compact(w.bodies("create_session"))); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
		if got := w.session.UserMetadata["uid"]; got != "u" {
			t.Errorf("a request changes what every session has to %q", got)
		}
	})
}

func TestFinishSession(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{"sessions/s/finish": {{status: http.StatusNoContent}}})
		if err := w.FinishSession(ctx, "s"); err != nil {
			t.Fatal(err)
		}
		want := []string{`{"reason":{"type":"success"}}`}
		if diff := cmp.Diff(want, w.bodies("sessions/s/finish")); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	})
}

func TestFinishSessionIsTriedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		w := newTestClient(t, map[string][]scriptedReply{"sessions/s/finish": {{status: http.StatusNotFound}}})
		if err := w.FinishSession(ctx, "s"); CategoryFrom(err) != tinker.CategoryNotFound {
			t.Errorf("got %v, want a 404", err)
		}
		if n := len(w.bodies("sessions/s/finish")); n != 1 {
			t.Errorf("%d requests were sent, want 1", n)
		}
	})
}

func TestConsole(t *testing.T) {
	for baseURL, want := range map[string]string{
		"https://tinker.thinkingmachines.dev/services/tinker-prod": "https://tinker.thinkingmachines.ai/sessions/s",
		"https://eu.thinkingmachines.ai":                           "https://tinker.thinkingmachines.ai/sessions/s",
		"https://notthinkingmachines.dev":                          "",
		"http://tinkersim":                                         "",
		"://":                                                      "",
	} {
		if got := Console(baseURL, "s"); got != want {
			t.Errorf("Console(%q) = %q, want %q", baseURL, got, want)
		}
	}
	if got := Console("https://tinker.thinkingmachines.dev", ""); got != "" {
		t.Errorf("without a session: got %q", got)
	}
}
