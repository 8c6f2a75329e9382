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

// jwt makes a token with the given claims and signature.
func jwt(claims, signature string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + signature
}

// issued answers auth/token with a token that is good for an hour by the server's clock.
func issued(signature string) answer {
	return answer{
		status: 200, header: map[string]string{"Date": "Sat, 01 Aug 2026 12:00:00 GMT"},
		body: fmt.Sprintf(`{"jwt":%q}`, jwt(`{"exp":1785589200,"sub":"u"}`, signature)),
	}
}

const jwtConfig = `{"pjwt_auth_enabled":true}`

// signatures are those of the tokens that a path's requests carried.
func (w *watched) signatures(path string) []string {
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
		tokens, answers []answer
		// waits are before each of the calls.
		waits []time.Duration
		used  []string
		asked int
	}{
		"The key is exchanged once": {
			tokens: []answer{issued("one")}, answers: []answer{good}, waits: []time.Duration{0, 0, 54 * time.Minute},
			used: []string{"one", "one", "one"}, asked: 1,
		},
		"A token is renewed five minutes before it expires": {
			tokens: []answer{issued("one"), issued("two")}, answers: []answer{good}, waits: []time.Duration{0, 56 * time.Minute},
			used: []string{"one", "two"}, asked: 2,
		},
		"A renewal that fails is put off for a minute": {
			tokens: []answer{issued("one"), status(500), {status: 200, body: "{}"}, issued("two")}, answers: []answer{good},
			waits: []time.Duration{0, 56 * time.Minute, 30 * time.Second, 31 * time.Second, 61 * time.Second},
			used:  []string{"one", "one", "one", "one", "two"}, asked: 4,
		},
		"A token that is refused is renewed at once": {
			tokens: []answer{issued("one"), status(503), issued("two")}, answers: []answer{good, status(401), good},
			waits: []time.Duration{0, 0}, used: []string{"one", "one", "two"}, asked: 3,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := watch(t, map[string][]answer{"client/config": {ok(jwtConfig)}, "auth/token": tc.tokens, "weights_info": tc.answers})
				for _, wait := range tc.waits {
					time.Sleep(wait)
					if _, err := w.WeightsInfo(ctx, "p"); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(tc.used, w.signatures("weights_info")); diff != "" {
					t.Errorf("tokens (-want +got):\n%s", diff)
				}
				asked := w.requests("auth/token")
				if len(asked) != tc.asked {
					t.Errorf("%d renewals, want %d", len(asked), tc.asked)
				}
				for _, e := range append(asked, w.requests("client/config")...) {
					if e.header.Get(tinker.HeaderAPIKey) != testKey {
						t.Errorf("%s was asked for with %q", e.path, e.header.Get(tinker.HeaderAPIKey))
					}
				}
			})
		})
	}
}

func TestRefusedCredentialIsFinal(t *testing.T) {
	cases := map[string]struct {
		tokens, answers []answer
		requests        int
	}{
		"A token that is refused anew": {tokens: []answer{issued("one"), issued("two")}, answers: []answer{status(401)}, requests: 2},
		"A key that gets no token":     {tokens: []answer{status(401)}, answers: []answer{ok("{}")}},
		"A key that loses its token":   {tokens: []answer{issued("one"), status(403)}, answers: []answer{status(401)}, requests: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := watch(t, map[string][]answer{"client/config": {ok(jwtConfig)}, "auth/token": tc.tokens, "weights_info": tc.answers})
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

// TestManyCallsRenewOnce lets a hundred calls meet a refused token at the same time.
func TestManyCallsRenewOnce(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context) {
		refused := make([]answer, 100)
		for i := range refused {
			refused[i] = answer{status: 401, body: "{}", hold: time.Second}
		}
		w := watch(t, map[string][]answer{
			"client/config": {ok(jwtConfig)}, "auth/token": {issued("one"), issued("two")}, "weights_info": append(refused, ok("{}")),
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
		config answer
		want   tinker.Category
	}{
		"without client/config nothing works":  {config: status(404), want: tinker.CategoryNotFound},
		"a refused key is final":               {config: status(401), want: tinker.CategoryUnauthorized},
		"an answer of no JSON is final":        {config: ok("["), want: tinker.CategoryProtocol},
		"a context that ends ends the waiting": {config: answer{hold: time.Hour}, want: tinker.CategoryCanceled},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context) {
				w := watch(t, map[string][]answer{"client/config": {tc.config}})
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
		"counts from the answer's date":        {jwt: jwt(`{"exp":1785585660}`, "s"), date: date, want: time.Minute},
		"counts from the issue without a date": {jwt: jwt(`{"exp":1000.5,"iat":1000}`, "s"), want: 500 * time.Millisecond},
		"is assumed where nothing says":        {jwt: jwt(`{"exp":1000}`, "s"), want: defaultLifetime},
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
