// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// TestErrorsNameTheFailedRequest checks that events and errors name the request and the response.
func TestErrorsNameTheFailedRequest(t *testing.T) {
	cases := map[string]struct {
		reply scriptedReply
		want  string
	}{
		"an error of the server": {
			scriptedReply{status: 500, body: "Internal Server Error\nmore"},
			"POST /prefix/api/v1/create_session was answered with 500: Internal Server Error",
		},
		"a detail": {
			scriptedReply{status: 503, body: `{"detail":"no engine is running"}`},
			"POST /prefix/api/v1/create_session was answered with 503: no engine is running",
		},
		"a page of a proxy": {
			scriptedReply{status: 502, body: "\n<html><h1>Bad Gateway</h1>\n</html>"},
			"POST /prefix/api/v1/create_session was answered with 502: <html><h1>Bad Gateway</h1>",
		},
		"no body":   {scriptedReply{status: 504}, "POST /prefix/api/v1/create_session was answered with 504"},
		"no answer": {scriptedReply{lost: true}, "POST /prefix/api/v1/create_session got no answer: connection reset"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newScriptedServer(map[string][]scriptedReply{"create_session": {tc.reply}})
				var events []Event
				c, err := New(Config{
					BaseURL: "http://server/prefix", APIKey: testKey, HTTP: &http.Client{Transport: withoutPrefix(server, "/prefix")},
					Observe: func(e Event) { events = append(events, e) },
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second/4)
				defer cancel()
				_, err = c.CreateSession(ctx, SessionRequest{})
				if len(events) == 0 || events[0].Evidence() != tc.want {
					t.Fatalf("events are %+v, want the evidence %q", events, tc.want)
				}
				if text := err.Error(); !strings.Contains(text, "POST /prefix/api/v1/create_session") {
					t.Errorf("error does not name the request: %s", text)
				}
			})
		})
	}
}

// withoutPrefix removes a prefix from the paths of requests, as a proxy does.
func withoutPrefix(server *scriptedServer, prefix string) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Path = strings.TrimPrefix(r.URL.Path, prefix)
		return server.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestErrorsHaveNoSecrets uses a server whose errors repeat the key, tokens and texts of the request.
func TestErrorsHaveNoSecrets(t *testing.T) {
	const prompt = "the secret plan is to sell the ducks before the pond freezes over in winter"
	cases := map[string]struct{ body, secret, keep string }{
		"the key":           {`{"detail":"key ` + testKey + ` is unknown"}`, testKey, "is unknown"},
		"tokens":            {`cannot parse [72, 113, 49, 97, 59] of the prompt`, "113", "of the prompt"},
		"log-probabilities": {`bad floats -0.25 -1.5 -3.75 -4.125 here`, "3.75", "here"},
		"an encoded body":   {`bad body ` + strings.Repeat("QUJD", 40), "QUJDQUJD", "bad body"},
		"the input of a validation error": {
			`1 validation error input_value={'tokens': [72, 113]}, input_type=dict`, "72", "1 validation error",
		},
		"the input of a validation issue": {
			`{"detail":[{"loc":["body","prompt"],"msg":"Field required","input":{"tokens":[72,113]}}]}`, "113", "Field required",
		},
		"a prompt":      {`prompt '` + prompt + `' is too long`, "ducks", "is too long"},
		"a binary body": {"bad bytes \x00\x01\xff\xfe end", "\x00", "end"},
		"a JSON message": {`{"error":"out of memory: 20.00 MiB are missing on the device with number 0 of this host"}`,
			testKey, "out of memory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTestClient(t, map[string][]scriptedReply{"create_session": {{status: 400, body: tc.body}}})
			_, err := c.CreateSession(t.Context(), SessionRequest{})
			for _, text := range []string{err.Error(), EvidenceOf(err)} {
				if strings.Contains(text, tc.secret) || !strings.Contains(text, tc.keep) {
					t.Errorf("text is %q, want %q and not %q", text, tc.keep, tc.secret)
				}
			}
		})
	}
}

// TestErrorsHaveNoToken uses a server that repeats the token that the key was exchanged for: in a refusal, in a page,
// in a failed result, and in the reason of a pause.
func TestErrorsHaveNoToken(t *testing.T) {
	const secret = "signature-of-the-token"
	text := jwt(`{"exp":1785589200,"sub":"u"}`, secret) + " may not create models"
	for name, replies := range map[string]map[string][]scriptedReply{
		"refusal": {"create_model": {{status: 400, body: `{"detail":"` + text + `"}`}}},
		"page":    {"create_model": {ok("<p>" + text + "</p>")}},
		"failed result": {"create_model": {ok(`{"request_id":"r"}`)},
			"retrieve_future": {ok(`{"error":"` + text + `","category":"user"}`)}},
		"pause": {"create_model": {ok(`{"request_id":"r"}`)}, "retrieve_future": {
			ok(`{"type":"try_again","queue_state":"paused_capacity","queue_state_reason":"` + text + `"}`),
			ok(`{"error":"` + text + `","category":"user"}`),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				c := newTestClient(t, replies)
				c.replies["client/config"], c.replies["auth/token"] = []scriptedReply{ok(jwtConfig)},
					[]scriptedReply{tokenReply(secret)}
				_, err := c.CreateModel(ctx, tinker.CreateModelRequest{Session: "s"})
				texts := []string{err.Error(), EvidenceOf(err)}
				for _, e := range c.events {
					if !e.Over {
						texts = append(texts, e.Evidence())
					}
				}
				for _, text := range texts {
					if strings.Contains(text, secret) || !strings.Contains(text, "may not create models") {
						t.Errorf("text is %q, which should not have the token", text)
					}
				}
				if wantPause := name == "pause"; wantPause != (len(texts) == 3) {
					t.Errorf("texts are %q", texts)
				}
			})
		})
	}
}

func TestEvidenceIsShort(t *testing.T) {
	e := Event{Category: tinker.CategoryServer, Method: "POST", Path: "/" + strings.Repeat("p", 2000), Status: 500,
		Reason: strings.Repeat("é ", 2000)}
	if got := e.Evidence(); len(got) > maxEvidence || !strings.HasSuffix(got, "...") || !strings.Contains(got, "500: é") {
		t.Errorf("evidence has %d bytes: %s", len(got), got)
	}
}
