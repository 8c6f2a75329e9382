// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// jwt returns a token with the given claims and signature.
func jwt(claims, signature string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + signature
}

// tokenReply replies to auth/token with a token that is valid for an hour by the server's clock.
func tokenReply(signature string) scriptedReply {
	return scriptedReply{
		status: 200, header: map[string]string{"Date": "Sat, 01 Aug 2026 12:00:00 GMT"},
		body: fmt.Sprintf(`{"jwt":%q}`, jwt(`{"exp":1785589200,"sub":"u"}`, signature)),
	}
}

const jwtConfig = `{"pjwt_auth_enabled":true}`

// signatures returns the signatures of the tokens in a path's requests.
func (w *testClient) signatures(path string) []string {
	var out []string
	for _, e := range w.requests(path) {
		credential := e.header.Get(tinker.HeaderAPIKey)
		out = append(out, credential[strings.LastIndex(credential, ".")+1:])
	}
	return out
}

func TestJWT(t *testing.T) {
	good := ok(`{"base_model":"b"}`)
	cases := map[string]struct {
		tokens, replies []scriptedReply
		// waits are the pauses before each call.
		waits    []time.Duration
		used     []string
		renewals int
	}{
		"The key is exchanged once": {
			tokens: []scriptedReply{tokenReply("one")}, replies: []scriptedReply{good},
			waits: []time.Duration{0, 0, 54 * time.Minute},
			used:  []string{"one", "one", "one"}, renewals: 1,
		},
		"A token is renewed five minutes before it expires": {
			tokens: []scriptedReply{tokenReply("one"), tokenReply("two")}, replies: []scriptedReply{good},
			waits: []time.Duration{0, 56 * time.Minute},
			used:  []string{"one", "two"}, renewals: 2,
		},
		"A renewal that fails is put off for a minute": {
			tokens:  []scriptedReply{tokenReply("one"), status(500), {status: 200, body: "{}"}, tokenReply("two")},
			replies: []scriptedReply{good},
			waits:   []time.Duration{0, 56 * time.Minute, 30 * time.Second, 31 * time.Second, 61 * time.Second},
			used:    []string{"one", "one", "one", "one", "two"}, renewals: 4,
		},
		"A rejected token is renewed at once": {
			tokens:  []scriptedReply{tokenReply("one"), status(503), tokenReply("two")},
			replies: []scriptedReply{good, status(401), good},
			waits:   []time.Duration{0, 0}, used: []string{"one", "one", "two"}, renewals: 3,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"client/config": {ok(jwtConfig)}, "auth/token": tc.tokens,
					"weights_info": tc.replies})
				for _, wait := range tc.waits {
					time.Sleep(wait)
					if _, err := w.WeightsInfo(ctx, "p"); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(tc.used, w.signatures("weights_info")); diff != "" {
					t.Errorf("tokens (-want +got):\n%s", diff)
				}
				renewals := w.requests("auth/token")
				if len(renewals) != tc.renewals {
					t.Errorf("%d renewals, want %d", len(renewals), tc.renewals)
				}
				for _, e := range append(renewals, w.requests("client/config")...) {
					if e.header.Get(tinker.HeaderAPIKey) != testKey {
						t.Errorf("%s was requested with %q", e.path, e.header.Get(tinker.HeaderAPIKey))
					}
				}
			})
		})
	}
}

func TestRejectedCredential(t *testing.T) {
	cases := map[string]struct {
		tokens, replies []scriptedReply
		requests        int
	}{
		"A renewed token is rejected": {tokens: []scriptedReply{tokenReply("one"), tokenReply("two")},
			replies: []scriptedReply{status(401)}, requests: 2},
		"A key that gets no token": {tokens: []scriptedReply{status(401)}, replies: []scriptedReply{ok("{}")}},
		"A key that loses its token": {tokens: []scriptedReply{tokenReply("one"), status(403)},
			replies: []scriptedReply{status(401)}, requests: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"client/config": {ok(jwtConfig)}, "auth/token": tc.tokens,
					"weights_info": tc.replies})
				_, err := w.WeightsInfo(ctx, "p")
				if CategoryFrom(err) != tinker.CategoryUnauthorized || MayHaveRun(err) {
					t.Errorf("WeightsInfo = %v", err)
				}
				if n := len(w.requests("weights_info")); n != tc.requests {
					t.Errorf("%d requests, want %d", n, tc.requests)
				}
			})
		})
	}
}

// TestManyCallsRenewOnce makes a hundred concurrent calls with a rejected token.
func TestManyCallsRenewOnce(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		rejected := make([]scriptedReply, 100)
		for i := range rejected {
			rejected[i] = scriptedReply{status: 401, body: "{}", hold: time.Second}
		}
		w := newTestClient(t, map[string][]scriptedReply{
			"client/config": {ok(jwtConfig)}, "auth/token": {tokenReply("one"), tokenReply("two")},
			"weights_info": append(rejected, ok("{}")),
		})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := w.WeightsInfo(ctx, "p"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(w.requests("auth/token")); n != 2 {
			t.Errorf("%d exchanges of the key", n)
		}
		if n := len(w.requests("client/config")); n != 1 {
			t.Errorf("%d fetches of the configuration", n)
		}
	})
}

func TestConnectEnds(t *testing.T) {
	cases := map[string]struct {
		config scriptedReply
		want   tinker.Category
	}{
		"without client/config nothing works":  {config: status(404), want: tinker.CategoryNotTinker},
		"a rejected key is final":              {config: status(401), want: tinker.CategoryUnauthorized},
		"a response that is not JSON is final": {config: ok("["), want: tinker.CategoryNotTinker},
		"a canceled context ends the wait":     {config: scriptedReply{hold: time.Hour}, want: tinker.CategoryCanceled},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := newTestClient(t, map[string][]scriptedReply{"client/config": {tc.config}})
				short, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						if err := w.Connect(short); CategoryFrom(err) != tc.want {
							t.Errorf("Connect = %v", err)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

func TestLifetime(t *testing.T) {
	const date = "Sat, 01 Aug 2026 12:00:00 GMT"
	cases := map[string]struct {
		jwt, date string
		want      time.Duration
		fails     bool
	}{
		"counts from the date of the response": {jwt: jwt(`{"exp":1785585660}`, "s"), date: date, want: time.Minute},
		"counts from the issue without a date": {jwt: jwt(`{"exp":1000.5,"iat":1000}`, "s"), want: 500 * time.Millisecond},
		"has a default":                        {jwt: jwt(`{"exp":1000}`, "s"), want: defaultLifetime},
		"is never negative":                    {jwt: jwt(`{"exp":1}`, "s"), date: date},
		"is a year at most":                    {jwt: jwt(`{"exp":1e300}`, "s"), date: date, want: 365 * 24 * time.Hour},
		"needs three parts":                    {jwt: "a.b", fails: true},
		"needs a payload in base64":            {jwt: "a.%.c", fails: true},
		"needs a payload in JSON":              {jwt: jwt("x", "s"), fails: true},
		"needs an expiry":                      {jwt: jwt("{}", "s"), fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := lifetimeOf(tc.jwt, tc.date)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("lifetime = %v, %v", got, err)
			}
		})
	}
}
