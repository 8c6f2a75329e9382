// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// clock is the time that a test sets.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

type fixture struct {
	guard   *Guard
	clock   *clock
	handler http.Handler
	served  int
}

func newFixture(secure bool) *fixture {
	f := &fixture{clock: &clock{time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)}}
	f.guard = New([]string{"127.0.0.1", "localhost"}, "4000", secure, f.clock.Now)
	f.handler = f.guard.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { f.served++ }))
	return f
}

// answer is an answer of the guard.
type answer struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// do sends a request with headers, given as name and value in turn.
func (f *fixture) do(method, target string, headers ...string) answer {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "127.0.0.1:4000"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return answer{StatusCode: w.Code, Status: http.StatusText(w.Code), Header: w.Header()}
}

// enter exchanges a token for the cookie, and returns the cookie that a browser sends back.
func (f *fixture) enter(t *testing.T) string {
	t.Helper()
	entered := f.do(http.MethodGet, path(t, f.guard.Address()))
	if entered.StatusCode != http.StatusSeeOther || entered.Header.Get("Location") != "/" {
		t.Fatalf("the entry answers %s to %q", entered.Status, entered.Header.Get("Location"))
	}
	name, _, _ := strings.Cut(entered.Header.Get("Set-Cookie"), ";")
	return name
}

func path(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.RequestURI()
}

func TestTokenIsExchangedOnce(t *testing.T) {
	f := newFixture(false)
	address := f.guard.Address()
	if !strings.HasPrefix(address, "http://127.0.0.1:4000/enter?token=") {
		t.Fatalf("the address is %s", address)
	}
	if got := f.do(http.MethodGet, "/"); got.StatusCode != http.StatusUnauthorized || f.served != 0 {
		t.Fatalf("without a cookie the answer is %s", got.Status)
	}
	if got := f.do(http.MethodGet, "/enter?token=guessed"); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("a guessed token is answered with %s", got.Status)
	}
	if got := f.do(http.MethodGet, "/enter?token="); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("an empty token is answered with %s", got.Status)
	}
	first := f.do(http.MethodGet, path(t, address))
	cookie := first.Header.Get("Set-Cookie")
	for _, want := range []string{"kubectl-tinker-4000=", "HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie %q lacks %s", cookie, want)
		}
	}
	if strings.Contains(cookie, "Secure") {
		t.Errorf("the cookie %q is of TLS alone", cookie)
	}
	if got := f.do(http.MethodGet, path(t, address)); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token counts twice: %s", got.Status)
	}
	value, _, _ := strings.Cut(cookie, ";")
	if got := f.do(http.MethodGet, "/", "Cookie", value); got.StatusCode != http.StatusOK || f.served != 1 {
		t.Errorf("with the cookie the answer is %s", got.Status)
	}
	if got := f.do(http.MethodGet, path(t, address), "Cookie", value); got.StatusCode != http.StatusSeeOther {
		t.Errorf("the browser that was admitted opens the address again: %s", got.Status)
	}
	if got := f.do(http.MethodGet, "/", "Cookie", value+"x"); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("with another cookie the answer is %s", got.Status)
	}
}

func TestTokenExpires(t *testing.T) {
	f := newFixture(false)
	address := path(t, f.guard.Address())
	f.clock.now = f.clock.now.Add(Lifetime)
	if got := f.do(http.MethodGet, address); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("an expired token is answered with %s", got.Status)
	}
	if f.enter(t) == "" {
		t.Error("a new address admits nobody")
	}
	old := path(t, f.guard.Address())
	_ = f.guard.Address()
	if got := f.do(http.MethodGet, old); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("the token of an address before the newest is answered with %s", got.Status)
	}
}

func TestRequestsOfOthersAreRefused(t *testing.T) {
	f := newFixture(false)
	cookie := f.enter(t)
	for name, tc := range map[string]struct {
		method, target string
		headers        []string
		want           int
	}{
		"own page":               {http.MethodGet, "/", nil, http.StatusOK},
		"other name of the host": {http.MethodGet, "/", []string{"Host", "LOCALHOST:4000"}, http.StatusOK},
		"name that was rebound": {http.MethodGet, "/", []string{"Host", "evil.example:4000"},
			http.StatusMisdirectedRequest},
		"other port":             {http.MethodGet, "/", []string{"Host", "127.0.0.1:4001"}, http.StatusMisdirectedRequest},
		"no port":                {http.MethodGet, "/", []string{"Host", "127.0.0.1"}, http.StatusMisdirectedRequest},
		"page of another origin": {http.MethodGet, "/", []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		"own action": {http.MethodPost, "/suspend", []string{"Origin", "http://127.0.0.1:4000"},
			http.StatusOK},
		"action without an origin": {http.MethodPost, "/suspend", nil, http.StatusForbidden},
		"action of another origin": {http.MethodPost, "/suspend", []string{"Origin", "http://evil.example"},
			http.StatusForbidden},
		"action of another port": {http.MethodPost, "/suspend", []string{"Origin", "http://127.0.0.1:4001"},
			http.StatusForbidden},
		"action of another scheme": {http.MethodPost, "/suspend", []string{"Origin", "https://127.0.0.1:4000"},
			http.StatusForbidden},
		"action of a sandbox": {http.MethodPost, "/suspend", []string{"Origin", "null"}, http.StatusForbidden},
		"other method":        {http.MethodDelete, "/", nil, http.StatusMethodNotAllowed},
		"entry by POST": {http.MethodPost, EntryPath, []string{"Origin", "http://127.0.0.1:4000"},
			http.StatusMethodNotAllowed},
	} {
		before := f.served
		got := f.do(tc.method, tc.target, append([]string{"Cookie", cookie}, tc.headers...)...)
		if got.StatusCode != tc.want {
			t.Errorf("%s: the answer is %s, want %d", name, got.Status, tc.want)
		}
		if served := f.served > before; served != (tc.want == http.StatusOK) {
			t.Errorf("%s: served is %t", name, served)
		}
	}
}

// TestEachAnswerHasThePolicy checks all answers, including refusals, because a browser shows these as well.
func TestEachAnswerHasThePolicy(t *testing.T) {
	f := newFixture(true)
	for _, each := range []answer{f.do(http.MethodGet, "/"), f.do(http.MethodGet, "/", "Host", "evil.example"),
		f.do(http.MethodGet, "/", "Cookie", f.enter(t))} {
		got := each.Header
		csp := got.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self';") || strings.Contains(csp, "unsafe") ||
			!strings.Contains(csp, "form-action 'self'") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s has the policy %q", each.Status, csp)
		}
		if got.Get("X-Content-Type-Options") != "nosniff" || got.Get("Referrer-Policy") != "same-origin" ||
			got.Get("Cache-Control") != "no-store" || got.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s has the headers %v", each.Status, got)
		}
	}
}

func TestCookieOfTLS(t *testing.T) {
	f := newFixture(true)
	address := f.guard.Address()
	cookie := f.do(http.MethodGet, path(t, address)).Header.Get("Set-Cookie")
	if !strings.HasPrefix(address, "https://") || !strings.Contains(cookie, "Secure") {
		t.Errorf("the address %s sets the cookie %q", address, cookie)
	}
}

// TestRefusalsShowNoControls checks that refusals quote no control characters of a request.
func TestRefusalsShowNoControls(t *testing.T) {
	if got := quoted("a\x1b[31m\u202e<" + strings.Repeat("x", 100)); strings.ContainsAny(got, "\x1b\u202e") ||
		len(got) > 70 {
		t.Errorf("the text is %q", got)
	}
}
