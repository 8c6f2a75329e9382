// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package orstest is a server of the Open Reward Standard for tests and benchmarks. It follows the server of the Python
// packages: sessions, streams of events, and results that are kept for calls whose connection broke.
package orstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Output is the output of a tool.
type Output struct {
	Text     string
	Reward   *float64
	Finished bool
}

// Tool runs a call. An error ends the call as an exception of a tool does.
type Tool func(session *Session, input json.RawMessage) (Output, error)

// Session is the state of an episode.
type Session struct {
	ID, Split string
	Index     int64
	// Calls counts the calls that ran.
	Calls int
	// Secrets are the secrets of the header or of the body.
	Secrets map[string]string
}

// Server has one environment.
type Server struct {
	// Name is the environment's name.
	Name string
	// Splits are the numbers of tasks of each split.
	Splits map[string]int64
	// Prompt returns the first message of a task.
	Prompt func(*Session) string
	Tools  map[string]Tool
	// Terminal is the tool that takes replies without a call, and TerminalArgument is the name of its argument. Both are
	// empty if the server has no such tool.
	Terminal, TerminalArgument string
	// Capacity bounds the sessions; one more is refused with HTTP status 429. 0 means no bound.
	Capacity int
	// Before sees each request first, and returns true if it has answered the request. It may be nil.
	Before func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	next     int
	sessions map[string]*Session
	results  map[string]*result
	log      []string
}

// result is a call that runs or has run.
type result struct {
	done chan struct{}
	text string
	err  error
}

// Sessions returns the number of open sessions.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// has reports whether a session is open.
func (s *Server) has(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[session] != nil
}

// Forget drops all sessions, as a restarted server does.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions, s.results = nil, nil
}

// Log returns the requests that arrived, each as METHOD PATH.
func (s *Server) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.log = append(s.log, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if s.Before != nil && s.Before(w, r) {
		return
	}
	handlers := map[string]http.HandlerFunc{
		"GET /health": s.health, "POST /ping": s.ping, "GET /list_environments": s.list,
		"POST /create_session": s.createSession,
		"POST /create":         s.create, "POST /delete": s.delete, "POST /delete_session": s.health,
		"GET /NAME/splits": s.splits, "POST /NAME/num_tasks": s.count, "GET /NAME/prompt": s.prompt,
		"GET /NAME/task_tools": s.tools, "POST /NAME/call": s.call,
	}
	path, named := strings.CutPrefix(strings.ToLower(r.URL.Path), "/"+strings.ToLower(s.Name)+"/")
	if named {
		path = "/NAME/" + path
	}
	handler, ok := handlers[r.Method+" "+path]
	switch {
	case ok:
		handler(w, r)
	case !named && handlers[r.Method+" /NAME"+path] != nil:
		http.Redirect(w, r, "/"+s.Name+r.URL.Path, http.StatusPermanentRedirect)
	default:
		fail(w, http.StatusNotFound, "Not Found")
	}
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	reply(w, map[string]string{"status": "ok"})
}

func (s *Server) ping(w http.ResponseWriter, r *http.Request) {
	if s.session(w, r) != nil {
		s.health(w, r)
	}
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) { reply(w, []string{s.Name}) }

func (s *Server) createSession(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	full := s.Capacity > 0 && len(s.sessions) >= s.Capacity
	s.next++
	id := "session-" + strconv.Itoa(s.next)
	s.mu.Unlock()
	if full {
		fail(w, http.StatusTooManyRequests, "the server is at its maximum capacity")
		return
	}
	startStream(w)
	event(w, "task_id", id)
	event(w, "end", "")
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Split   string            `json:"split"`
		Index   int64             `json:"index"`
		Secrets map[string]string `json:"secrets"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		fail(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	if tasks, ok := s.Splits[body.Split]; !ok || body.Index < 0 || body.Index >= tasks {
		fail(w, http.StatusBadRequest, "Invalid index")
		return
	}
	id := r.Header.Get("X-Session-ID")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[id] != nil {
		fail(w, http.StatusBadRequest, "Session already exists")
		return
	}
	if s.sessions == nil {
		s.sessions = map[string]*Session{}
	}
	s.sessions[id] = &Session{ID: id, Split: body.Split, Index: body.Index, Secrets: body.Secrets}
	reply(w, map[string]string{"sid": id})
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, r.Header.Get("X-Session-ID"))
	reply(w, map[string]string{"sid": r.Header.Get("X-Session-ID")})
}

func (s *Server) splits(w http.ResponseWriter, _ *http.Request) {
	var splits []map[string]string
	for name := range s.Splits {
		splits = append(splits, map[string]string{"name": name, "type": "validation"})
	}
	reply(w, splits)
}

func (s *Server) count(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Split string `json:"split"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		fail(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	reply(w, map[string]int64{"num_tasks": s.Splits[body.Split]})
}

func (s *Server) prompt(w http.ResponseWriter, r *http.Request) {
	if session := s.session(w, r); session != nil {
		reply(w, []map[string]any{{"type": "text", "text": s.Prompt(session), "detail": nil}})
	}
}

func (s *Server) tools(w http.ResponseWriter, r *http.Request) {
	if s.session(w, r) == nil {
		return
	}
	tools := []map[string]any{}
	for name := range s.Tools {
		if name != s.Terminal {
			tools = append(tools, map[string]any{"name": name, "description": "A tool.", "input_schema": nil})
		}
	}
	list := map[string]any{"tools": tools, "terminal_tool": nil}
	if s.Terminal != "" {
		list["terminal_tool"] = map[string]any{"name": s.Terminal, "arg": s.TerminalArgument, "description": ""}
	}
	reply(w, list)
}

// session returns the session of a request, or answers that it does not exist.
func (s *Server) session(w http.ResponseWriter, r *http.Request) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.sessions[r.Header.Get("X-Session-ID")]
	if session == nil {
		fail(w, http.StatusNotFound, "Active environment not found")
	}
	return session
}

// call runs a tool, or waits for one that was called before, and streams its result.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	session := s.session(w, r)
	if session == nil {
		return
	}
	var body struct {
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
		Task  string          `json:"task_id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		fail(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	task, found := s.find(session, body.Name, body.Input, body.Task)
	startStream(w)
	if found == nil {
		event(w, "error", "unknown task_id")
		return
	}
	event(w, "task_id", task)
	s.stream(w, r, found)
}

// find returns the result of a call, which it starts if the call is new, and its ID.
func (s *Server) find(session *Session, name string, input json.RawMessage, task string) (string, *result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if task != "" {
		return task, s.results[task]
	}
	s.next++
	task = "task-" + strconv.Itoa(s.next)
	if s.results == nil {
		s.results = map[string]*result{}
	}
	started := &result{done: make(chan struct{})}
	s.results[task] = started
	session.Calls++
	go func() {
		defer close(started.done)
		started.text, started.err = s.run(session, name, input)
	}()
	return task, started
}

func (s *Server) run(session *Session, name string, input json.RawMessage) (string, error) {
	tool, ok := s.Tools[name]
	if !ok {
		text, err := json.Marshal(map[string]any{"ok": false, "error": fmt.Sprintf("%q is not a valid tool", name)})
		return string(text), err
	}
	output, err := tool(session, input)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"ok": true, "output": map[string]any{
		"blocks":   []map[string]any{{"type": "text", "text": output.Text, "detail": nil}},
		"metadata": nil, "reward": output.Reward, "finished": output.Finished,
	}})
	return string(text), err
}
