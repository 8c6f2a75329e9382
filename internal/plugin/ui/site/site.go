// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package site has the pages of kubectl tinker ui. A page is made on the server from the same sources as the output of
// the plugin's commands. A script fetches it again while it is open.
package site

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/assets"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/live"
)

// Config has the sources of the pages.
type Config struct {
	// Connection reads and changes objects with the permissions of the person.
	Connection *cli.Connection
	// Watcher lists and watches runs and environments.
	Watcher client.WithWatch
	// Namespace is the namespace of the runs, or "" for all.
	Namespace string
	// Read returns the transcript of a step of a run.
	Read ReadFunc
	// Pieces returns the function that returns the texts of a model's tokens.
	Pieces PiecesFunc
	Now    func() time.Time
}

// PiecesFunc returns the function that returns the texts of a model's tokens.
type PiecesFunc func(ctx context.Context, model string) (func(ids []int32) []string, error)

// Site serves the pages. Run has to be in progress while it serves.
type Site struct {
	Config

	runs          *live.Store[*v1alpha1.TrainingRun]
	environments  *live.Store[*v1alpha1.RewardEnvironment]
	histories     *histories
	conversations *library
	tokens        *tokenizers
	mux           *http.ServeMux
}

// New returns a site.
func New(c Config) *Site {
	s := &Site{Config: c, mux: http.NewServeMux(), histories: newHistories(c), conversations: newLibrary(c.Read),
		tokens: newTokenizers(c.Pieces)}
	s.runs = live.New[*v1alpha1.TrainingRun](c.Watcher, c.Namespace,
		func() client.ObjectList { return &v1alpha1.TrainingRunList{} })
	s.environments = live.New[*v1alpha1.RewardEnvironment](c.Watcher, c.Namespace,
		func() client.ObjectList { return &v1alpha1.RewardEnvironmentList{} })
	s.mux.HandleFunc("GET "+assets.Prefix, assets.Serve)
	showRun, changeRun := s.edit(editedRun)
	showEnvironment, changeEnvironment := s.edit(editedEnvironment)
	for pattern, handle := range map[string]handler{
		"GET /{$}":                                       s.serveRuns,
		"GET /compare":                                   s.serveCompare,
		"GET /environments":                              s.serveEnvironments,
		"GET /environments/{namespace}/{name}":           s.serveEnvironment,
		"GET /environments/{namespace}/{name}/spec":      showEnvironment,
		"POST /environments/{namespace}/{name}/spec":     changeEnvironment,
		"GET /runs/{namespace}/{name}/spec":              showRun,
		"POST /runs/{namespace}/{name}/spec":             changeRun,
		"GET /runs/{namespace}/{name}":                   s.serveRun,
		"GET /runs/{namespace}/{name}/conversations":     s.serveConversations,
		"GET /runs/{namespace}/{name}/actions/{action}":  s.confirmAction,
		"POST /runs/{namespace}/{name}/actions/{action}": s.doAction,
	} {
		s.mux.Handle(pattern, s.page(handle))
	}
	s.mux.HandleFunc("GET /runs/{namespace}/{name}/sparks", s.serveSparks)
	s.mux.HandleFunc("GET /runs/{namespace}/{name}/curve.json", s.serveCurve)
	s.mux.HandleFunc("GET /runs/{namespace}/{name}/text", s.serveText)
	s.mux.HandleFunc("GET /compare/curve.json", s.serveComparedCurves)
	s.mux.Handle("/", s.page(func(*http.Request) (view, error) { return view{}, errNoPage }))
	return s
}

// Run keeps runs and environments up to date until the context ends.
func (s *Site) Run(ctx context.Context) {
	s.conversations.begin(ctx)
	go s.environments.Run(ctx)
	s.runs.Run(ctx)
}

// Wait waits until no transcript is being read, so that each pod that reads one is deleted. The context of Run must
// have ended.
func (s *Site) Wait() { s.conversations.reads.Wait() }

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// view is a page: the template of its content, and its data.
type view struct {
	template, title string
	// section is the entry of the navigation.
	section string
	data    any
	// pending makes the script fetch the page again soon.
	pending bool
	// redirect is the page to go to in place of this one.
	redirect string
}

// handler makes a page.
type handler func(r *http.Request) (view, error)

// shell is the data of the template around each page.
type shell struct {
	Title, Section, Scope, Version string
	Pending                        bool
	Content                        template.HTML
}

//go:embed templates/*.html
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html"))

// errNoPage says that an address has no page.
var errNoPage = errors.New("there is no such page: begin with the list of runs")

// fragmentHeader asks for the content of a page without the template around it.
const fragmentHeader = "X-Fragment"

// page returns a handler that serves a page, or only the content if the script asks for it.
func (s *Site) page(handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.runs.Await(r.Context())
		s.environments.Await(r.Context())
		r.Body = http.MaxBytesReader(w, r.Body, mostSpec+mostSpec/2)
		made, err := handle(r)
		code := http.StatusOK
		if err != nil {
			code = codeOf(err)
			made = view{template: "problem.html", title: "Problem", data: output.Safe(err.Error())}
		}
		if made.redirect != "" {
			http.Redirect(w, r, made.redirect, http.StatusSeeOther)
			return
		}
		s.write(w, r, made, code)
	})
}

func (s *Site) write(w http.ResponseWriter, r *http.Request, made view, code int) {
	var content bytes.Buffer
	if err := templates.ExecuteTemplate(&content, made.template, made.data); err != nil {
		http.Error(w, "making the page: "+output.Safe(err.Error()), http.StatusInternalServerError)
		return
	}
	out := content.Bytes()
	if r.Header.Get(fragmentHeader) == "" {
		scope := s.Namespace
		if scope == "" {
			scope = "all namespaces"
		}
		var whole bytes.Buffer
		// The output of the page's template is already markup.
		around := shell{Title: made.title, Section: made.section, Scope: scope, Version: assets.Version,
			Pending: made.pending, Content: template.HTML(content.String())}
		if err := templates.ExecuteTemplate(&whole, "shell.html", around); err != nil {
			http.Error(w, "making the page: "+output.Safe(err.Error()), http.StatusInternalServerError)
			return
		}
		out = whole.Bytes()
	}
	out = visible(out)
	sum := sha256.Sum256(out)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("ETag", tag)
	h.Set("Vary", fragmentHeader)
	if made.pending {
		h.Set("X-Pending", "true")
	}
	if code == http.StatusOK && r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(code)
	_, _ = w.Write(out)
}

// notFoundError says that an object does not exist.
type notFoundError struct{ text string }

func (e *notFoundError) Error() string { return e.text }

// codeOf returns the status of an answer that reports an error.
func codeOf(err error) int {
	var missing *notFoundError
	var misuse *cli.UsageError
	switch {
	case errors.Is(err, errNoPage), errors.As(err, &missing), apierrors.IsNotFound(err):
		return http.StatusNotFound
	case errors.As(err, &misuse):
		return http.StatusBadRequest
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return http.StatusForbidden
	case apierrors.IsConflict(err):
		return http.StatusConflict
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return http.StatusUnprocessableEntity
	}
	return http.StatusBadGateway
}

// in returns the connection with another namespace.
func (s *Site) in(namespace string) *cli.Connection {
	c := *s.Connection
	c.Namespace, c.NamespaceGiven = namespace, true
	return &c
}

// run returns the run that an address names.
func (s *Site) run(r *http.Request) (*v1alpha1.TrainingRun, error) {
	s.runs.Await(r.Context())
	return s.runOf(r.PathValue("namespace"), r.PathValue("name"))
}

func (s *Site) runOf(namespace, name string) (*v1alpha1.TrainingRun, error) {
	run, ok := s.runs.Get(client.ObjectKey{Namespace: namespace, Name: name})
	if ok {
		return run, nil
	}
	if _, err := s.runs.All(); err != nil {
		return nil, fmt.Errorf("runs cannot be read: %w", err)
	}
	return nil, &notFoundError{fmt.Sprintf("TrainingRun %q does not exist in namespace %q", name, namespace)}
}

// address returns the address of a page of a run.
func address(namespace, name string, parts ...string) string {
	path := "/runs/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// with returns the query of a request with other values, given as name and value in turn. An empty value is left out.
func with(r *http.Request, pairs ...string) string {
	query := r.URL.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Del(pairs[i])
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	if len(query) == 0 {
		return r.URL.Path
	}
	return r.URL.Path + "?" + query.Encode()
}

// functions are the functions of the templates.
var functions = template.FuncMap{
	"lower":    strings.ToLower,
	"number":   func(v *float64) string { return output.Number(v) },
	"value":    func(v float64) string { return output.Number(&v) },
	"count":    func(v *int64) string { return countOf(v) },
	"bar":      bar,
	"excerpt":  func(text string) excerpt { return excerptOf(text, 0) },
	"join":     strings.Join,
	"slug":     slug,
	"stateful": stateClass,
}

func countOf(v *int64) string {
	if v == nil {
		return ""
	}
	return output.Count(*v)
}

// slug returns a text as a part of an id of an element.
func slug(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(text))
}

// stateClass returns the class of a state, by which its colour is chosen.
func stateClass(state string) string {
	switch state {
	case v1alpha1.StateFailed:
		return "bad"
	case v1alpha1.StateSucceeded, "Ready":
		return "good"
	case v1alpha1.StateTraining, v1alpha1.StateEvaluating:
		return "active"
	case v1alpha1.StateRecovering, "NotReady":
		return "warn"
	}
	return "calm"
}
