// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard admits only one browser to a server on this machine: the address that is printed has a token that is
// valid once and is exchanged for a cookie. Names of other hosts and requests of other pages are refused, and each
// answer forbids a browser to load anything from elsewhere.
package guard

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// EntryPath is the path at which the token is exchanged for the cookie.
const EntryPath = "/enter"

// Lifetime is the time for which the token of an address is valid.
const Lifetime = 10 * time.Minute

// policy lets a browser load only files from the server itself, and run no inline script of a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Guard admits the browser that has exchanged the token. It is safe for concurrent use.
type Guard struct {
	scheme string
	// hosts are the names with a port by which a browser may ask, in lower case.
	hosts []string
	// cookie is the name of the cookie, which browsers share between the ports of a host, and session its value.
	cookie, session string
	now             func() time.Time

	mu      sync.Mutex
	token   string
	expires time.Time
}

// New returns a guard of a server at a port that answers to these names of hosts. secure says that it speaks TLS.
func New(hosts []string, port string, secure bool, now func() time.Time) *Guard {
	g := &Guard{scheme: "http", cookie: "kubectl-tinker-" + port, session: rand.Text(), now: now}
	if secure {
		g.scheme = "https"
	}
	for _, host := range hosts {
		g.hosts = append(g.hosts, strings.ToLower(net.JoinHostPort(host, port)))
	}
	return g
}

// Address returns an address with a new token, which replaces the previous token.
func (g *Guard) Address() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token, g.expires = rand.Text(), g.now().Add(Lifetime)
	return g.scheme + "://" + g.hosts[0] + EntryPath + "?" + url.Values{"token": {g.token}}.Encode()
}

// Wrap returns a handler that passes the requests that the guard admits to next.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.setHeaders(w.Header())
		switch {
		case !slices.Contains(g.hosts, strings.ToLower(r.Host)):
			refuse(w, http.StatusMisdirectedRequest, "This server does not answer to the name "+quoted(r.Host)+
				". Open the address that kubectl tinker ui prints.")
		case !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost}, r.Method):
			w.Header().Set("Allow", "GET, HEAD, POST")
			refuse(w, http.StatusMethodNotAllowed, "The method "+quoted(r.Method)+" is not allowed.")
		case !g.isOwn(r):
			refuse(w, http.StatusForbidden, "The request comes from another page. Act on the pages of kubectl tinker ui.")
		case r.URL.Path == EntryPath:
			g.enter(w, r)
		case !g.isAdmitted(r):
			refuse(w, http.StatusUnauthorized, "This browser has not been admitted, or kubectl tinker ui was started anew. "+
				"Open the address that it prints.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func (g *Guard) setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "no-store")
}

// isOwn reports whether a request does not come from a page of another origin. A POST request must name its origin.
func (g *Guard) isOwn(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if r.Method == http.MethodPost || origin != "" {
		return strings.EqualFold(origin, g.scheme+"://"+r.Host)
	}
	return true
}

// enter exchanges the token for the cookie.
func (g *Guard) enter(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "The address is opened with GET.")
		return
	}
	if !g.redeem(r.URL.Query().Get("token")) && !g.isAdmitted(r) {
		refuse(w, http.StatusUnauthorized, "This address has been used or has expired: each one admits one browser, for "+
			Lifetime.String()+". Press Enter where kubectl tinker ui runs to have another.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.session, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: g.scheme == "https"})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// redeem reports whether a token is valid, and makes it invalid.
func (g *Guard) redeem(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token == "" || !g.now().Before(g.expires) || !equal(token, g.token) {
		return false
	}
	g.token = ""
	return true
}

func (g *Guard) isAdmitted(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(g.cookie), func(c *http.Cookie) bool { return equal(c.Value, g.session) })
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// quoted returns a text of a request in a form that is safe in a message.
func quoted(text string) string {
	const most = 64
	if len(text) > most {
		text = text[:most]
	}
	return `"` + strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text) + `"`
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(message + "\n"))
}
