// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package orstest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Hosted simulates a service that hosts environment servers, with two hosts: API is its REST interface, and Hosted
// itself is its proxy for sessions. It checks keys, finds the server of a request by the deployment and the session in
// its headers, and redirects paths that do not begin with an environment to the first environment of the deployment.
type Hosted struct {
	// Keys are the keys of the service, and the deployments that each of them may use.
	Keys map[string][]string
	// Deployments are the environments of OWNER/NAME. The first one is the default.
	Deployments map[string][]*Server
	// Capacity bounds the sessions; one more is refused with HTTP status 429, RetryAfter and Date. 0 means no bound.
	Capacity int
	// RetryAfter and Date are headers of a refusal, unless they are empty.
	RetryAfter, Date string
	// Refused is called after each session that was refused for lack of capacity. It may be nil.
	Refused func()

	mu sync.Mutex
	// next numbers sessions, and places holds the deployments of the sessions that take a place, by ID.
	next   int
	places map[string]string
	// secrets are the secrets of X-Secrets, by session.
	secrets map[string]map[string]HostedSecret
	log     []HostedRequest
}

// HostedSecret is a secret as X-Secrets carries it.
type HostedSecret struct {
	Value          string   `json:"value"`
	AllowedDomains []string `json:"allowed_domains"`
}

// HostedRequest is a request as it arrived.
type HostedRequest struct {
	Host, Method, Path string
	Header             http.Header
	Body               string
	// Status is the status of the answer.
	Status int
}

// Places returns the number of sessions that take a place.
func (h *Hosted) Places() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.places)
}

// Secrets returns the secrets that a session got.
func (h *Hosted) Secrets(session string) map[string]HostedSecret {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.secrets[session]
}

// Requests returns the requests that arrived at either host.
func (h *Hosted) Requests() []HostedRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.log)
}

// API returns the REST interface, which knows deployments and has no sessions.
func (h *Hosted) API() http.Handler {
	return h.logged(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, "/v1/environments/")
		if !ok || h.Deployments[name] == nil {
			fail(w, http.StatusNotFound, "Not Found")
			return
		}
		reply(w, map[string]string{"id": name})
	})
}

// ServeHTTP implements http.Handler for the host of sessions.
func (h *Hosted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.logged(h.proxy).ServeHTTP(w, r)
}

// proxy checks the headers of a request and passes it to its server.
func (h *Hosted) proxy(w http.ResponseWriter, r *http.Request) {
	key, deployment, id := r.Header.Get("X-API-Key"), r.Header.Get("X-Deployment"), r.Header.Get("X-Session-ID")
	usable, known := h.Keys[key]
	servers := h.Deployments[deployment]
	switch {
	case !known:
		fail(w, http.StatusUnauthorized, "Invalid API key")
	case servers == nil:
		fail(w, http.StatusNotFound, "Deployment not found")
	case !slices.Contains(usable, deployment):
		fail(w, http.StatusForbidden, "The key may not use this deployment")
	case r.URL.Path == "/create_session":
		h.createSession(w, r, deployment)
	case id == "":
		fail(w, http.StatusBadRequest, "X-Session-ID header is required")
	case h.deploymentOf(id) != deployment:
		fail(w, http.StatusNotFound, "Active environment not found")
	default:
		h.pass(w, r, servers, id)
	}
}

func (h *Hosted) deploymentOf(session string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.places[session]
}

func (h *Hosted) createSession(w http.ResponseWriter, r *http.Request, deployment string) {
	secrets, err := decodeSecrets(r.Header.Get("X-Secrets"))
	if err != nil {
		fail(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	id := h.take(deployment, secrets)
	if id == "" {
		for name, value := range map[string]string{"Retry-After": h.RetryAfter, "Date": h.Date} {
			if value != "" {
				w.Header().Set(name, value)
			}
		}
		fail(w, http.StatusTooManyRequests, "the deployment is at its maximum capacity")
		if h.Refused != nil {
			h.Refused()
		}
		return
	}
	startStream(w)
	event(w, "task_id", id)
	event(w, "end", `{"sid":"`+id+`"}`)
}

// take takes the place of a new session and returns its ID, which is empty if no place is free.
func (h *Hosted) take(deployment string, secrets map[string]HostedSecret) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Capacity > 0 && len(h.places) >= h.Capacity {
		return ""
	}
	h.next++
	id := "hosted-" + strconv.Itoa(h.next)
	if h.places == nil {
		h.places, h.secrets = map[string]string{}, map[string]map[string]HostedSecret{}
	}
	h.places[id], h.secrets[id] = deployment, secrets
	return id
}

// decodeSecrets reads the header X-Secrets.
func decodeSecrets(header string) (map[string]HostedSecret, error) {
	if header == "" {
		return nil, nil
	}
	text, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return nil, err
	}
	var secrets map[string]HostedSecret
	err = json.Unmarshal(text, &secrets)
	return secrets, err
}

// pass passes a request to the server of its session.
func (h *Hosted) pass(w http.ResponseWriter, r *http.Request, servers []*Server, id string) {
	switch r.URL.Path {
	case "/delete_session":
		h.mu.Lock()
		delete(h.places, id)
		h.mu.Unlock()
		reply(w, map[string]string{"sid": id})
	case "/create":
		h.create(w, r, servers)
	case "/list_environments":
		var names []string
		for _, server := range servers {
			names = append(names, server.Name)
		}
		reply(w, names)
	case "/ping", "/delete":
		for _, server := range servers {
			if server.has(id) {
				server.ServeHTTP(w, r)
				return
			}
		}
		fail(w, http.StatusNotFound, "Active environment not found")
	default:
		named, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		server := find(servers, named)
		if server == nil && !strings.HasPrefix(r.URL.Path, "/"+servers[0].Name+"/") {
			http.Redirect(w, r, "/"+servers[0].Name+r.URL.Path, http.StatusPermanentRedirect)
			return
		}
		server.ServeHTTP(w, r)
	}
}

// create begins a task with the server of the environment that the body names.
func (h *Hosted) create(w http.ResponseWriter, r *http.Request, servers []*Server) {
	text, err := io.ReadAll(r.Body)
	var body struct {
		Environment string          `json:"env_name"`
		Secrets     json.RawMessage `json:"secrets"`
	}
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	server := servers[0]
	if body.Environment != "" {
		server = find(servers, body.Environment)
	}
	switch {
	case err != nil:
		fail(w, http.StatusUnprocessableEntity, err.Error())
	case body.Secrets != nil:
		fail(w, http.StatusUnprocessableEntity, "secrets: Extra inputs are not permitted")
	case server == nil:
		fail(w, http.StatusNotFound, "Environment not found")
	default:
		r.Body = io.NopCloser(bytes.NewReader(text))
		server.ServeHTTP(w, r)
	}
}

// find returns the server of an environment, or nil.
func find(servers []*Server, name string) *Server {
	i := slices.IndexFunc(servers, func(s *Server) bool { return strings.EqualFold(s.Name, name) })
	if i < 0 {
		return nil
	}
	return servers[i]
}

// logged records the requests of a handler.
func (h *Hosted) logged(handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		h.mu.Lock()
		i := len(h.log)
		h.log = append(h.log, HostedRequest{Host: r.Host, Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(),
			Body: string(text)})
		h.mu.Unlock()
		status := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.log[i].Status = status.status
		}()
		handler(status, r)
	})
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController flush the writer.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
