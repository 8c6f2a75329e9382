// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

const prefix = "/api/v1/"

// reply is the kind of a reply, which decides what the broker does before the reply passes.
type reply int

const (
	// replyPlain passes as it is.
	replyPlain reply = iota
	// replySession and replySampler name an object that the server made for the run.
	replySession
	replySampler
	// replyFuture names the future of a result.
	replyFuture
	// replyResult may be the result of a future.
	replyResult
	// The following replies pass with changes.
	replyConfig
	replyDynamicConfig
	replyCapabilities
)

// route is a request that the broker passes on.
type route struct {
	// op names the operation of the request. A future has the op of the request that made it.
	op    string
	reply reply
	// data says that the body may be protobuf, and large that it may pass while it is parsed.
	data, large bool
	// makes says that the request makes a session or model whose metadata the broker writes.
	makes bool
}

// posts are the POST requests whose path names no object. Everything that the body of a request names is checked.
var posts = map[string]route{
	"create_session":          {reply: replySession, makes: true},
	"session_heartbeat":       {},
	"create_sampling_session": {reply: replySampler},
	"asample":                 {reply: replyFuture, large: true},
	"create_model":            {reply: replyFuture, makes: true},
	"unload_model":            {reply: replyFuture},
	"get_info":                {},
	"forward_backward":        {reply: replyFuture, data: true, large: true},
	"forward":                 {reply: replyFuture, data: true, large: true},
	"optim_step":              {reply: replyFuture},
	"save_weights":            {reply: replyFuture},
	"load_weights":            {reply: replyFuture, makes: true},
	tinker.TypeSaveSampler:    {reply: replyFuture},
	tinker.TypeSaveExternal:   {reply: replyFuture},
	"weights_info":            {},
	retrieve:                  {reply: replyResult},
	cancel:                    {},
	"client/config":           {reply: replyConfig},
	"client/dynamic_config":   {reply: replyDynamicConfig},
}

const (
	retrieve = "retrieve_future"
	cancel   = "cancel_future"
	// opPublish lets every user of the server read a checkpoint. The endpoint has to permit it.
	opPublish = "publish"
	opArchive = "archive"
)

// ruled are parts of the paths of the API that no rule permits yet.
var ruled = []string{"copy_weights", "audit", "billing", "project", "trace_export"}

// refuseRoute answers for a route that does not pass.
func refuseRoute(method, path string) error {
	for _, name := range ruled {
		if slices.Contains(strings.Split(path, "/"), name) {
			return refuse(http.StatusForbidden, problem.RouteRefused,
				"%s %s%s is not permitted to runs of a TinkerEndpoint", method, prefix, path)
		}
	}
	return refuse(http.StatusNotFound, problem.RouteRefused, "the broker does not pass %s %s%s", method, prefix, path)
}

// pathRoute is a request whose path names an object.
type pathRoute struct {
	method string
	// path has * in the place of the object's id, and ? in the place of any other name.
	path string
	op   string
	// of is the kind of the object that the run has to own, or checkpointKind for a checkpoint that it may read.
	of kind
}

var paths = []pathRoute{
	{http.MethodGet, "samplers/*", "get_sampler", sampler},
	{http.MethodGet, "sessions/*", "get_session", session},
	{http.MethodPost, "sessions/*/finish", "finish_session", session},
	{http.MethodGet, "training_runs/*", "get_training_run", model},
	{http.MethodGet, "training_runs/*/checkpoints", "list_run_checkpoints", model},
	{http.MethodGet, "training_runs/*/checkpoints/?/?/archive", opArchive, checkpointKind},
	{http.MethodGet, "training_runs/*/checkpoints/?/?/external_weights_urls", "external_weights_urls", model},
	{http.MethodPut, "training_runs/*/checkpoints/?/?/ttl", "ttl", model},
	{http.MethodDelete, "training_runs/*/checkpoints/?/?", "delete_checkpoint", model},
	{http.MethodPost, "training_runs/*/checkpoints/?/?/publish", opPublish, model},
	{http.MethodDelete, "training_runs/*/checkpoints/?/?/publish", "unpublish", model},
}

// match returns the object's id if the request has this route.
func (p pathRoute) match(method string, parts []string) (id string, ok bool) {
	pattern := strings.Split(p.path, "/")
	if p.method != method || len(pattern) != len(parts) {
		return "", false
	}
	for i, want := range pattern {
		switch want {
		case "*":
			id = parts[i]
		case "?":
		case parts[i]:
		default:
			return "", false
		}
	}
	return id, true
}

// find returns the route of a request below the prefix, after it checked the objects that the path names.
func (b *Broker) find(run Run, method, path string) (route, error) {
	if found, ok := posts[path]; ok && method == http.MethodPost {
		found.op = path
		return found, nil
	}
	if method == http.MethodGet && path == "get_server_capabilities" {
		return route{op: path, reply: replyCapabilities}, nil
	}
	parts := strings.Split(path, "/")
	if slices.ContainsFunc(parts, isStrange) {
		return route{}, refuseRoute(method, path)
	}
	for _, known := range paths {
		id, ok := known.match(method, parts)
		switch {
		case !ok:
			continue
		case known.op == opPublish && !b.inForce.Load().Publication:
			return route{}, refuse(http.StatusForbidden, problem.RouteRefused, "TinkerEndpoint %s does not permit the "+
				"publication of checkpoints: its owner permits it with spec.allowed.publication", b.config.Endpoint)
		case known.of != checkpointKind:
			return route{op: known.op}, b.own(run, known.of, id)
		}
		checkpoint := tinker.Path{Run: id, Kind: tinker.Kind(parts[3]), Name: parts[4]}.String()
		if !b.mayRead(run, checkpoint) {
			return route{}, notFound(checkpointKind, checkpoint)
		}
		return route{op: known.op}, nil
	}
	return route{}, refuseRoute(method, path)
}

// checkpointKind is the kind of checkpoints in messages. They have no records: they belong to the owner of their model.
const checkpointKind kind = "checkpoint"

// isStrange reports whether part of a path could mean something else to the server than to the broker.
func isStrange(part string) bool {
	return part == "" || part == "." || part == ".." || strings.ContainsFunc(part, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("?#%\\;", r)
	})
}

// named are the fields of bodies that name an object. The run has to own the object.
var named = map[string]kind{
	"session_id": session, "model_id": model, "sampling_session_id": sampler, "request_id": future,
}

// check returns nil if the run may use everything that the body of a request names.
func (b *Broker) check(run Run, of body) error {
	for _, name := range of.names {
		text, err := of.text(name)
		if kind, ok := named[name]; ok {
			if err != nil {
				return invalid(err)
			}
			if text == "" {
				continue
			}
			if err := b.own(run, kind, text); err != nil {
				return err
			}
			continue
		}
		if err := b.checkField(run, name, text, err); err != nil {
			return err
		}
	}
	return nil
}

// texts are the fields that have to be strings, so that the broker can read them.
var texts = []string{"base_model", "model_path", "path", "tinker_path", "weights_access_token"}

// checkField checks a field that names no object of the run. Checkpoints may be named by any field.
func (b *Broker) checkField(run Run, name, text string, err error) error {
	if err != nil && slices.Contains(texts, name) {
		return invalid(err)
	}
	if text == "" {
		return nil
	}
	if isCheckpoint(text) || name == "model_path" {
		if !b.mayRead(run, text) {
			return notFound(checkpointKind, text)
		}
		return nil
	}
	switch name {
	case "base_model":
		if !b.mayUseModel(text) {
			return b.modelRefused(text)
		}
	case "weights_access_token":
		return refuse(http.StatusForbidden, problem.RouteRefused,
			"weights_access_token is not permitted to runs of a TinkerEndpoint")
	case "path":
		if strings.ContainsAny(text, "/\\") {
			return invalid(errors.New("path is neither a name nor a checkpoint's path"))
		}
	}
	return nil
}

// modelRefused answers for a model that the endpoint does not permit.
func (b *Broker) modelRefused(name string) error {
	return refuse(http.StatusBadRequest, problem.ModelRefused, "TinkerEndpoint %s does not permit the model %s",
		b.config.Endpoint, name)
}

// isCheckpoint reports whether a server may take a text for the path of a checkpoint.
func isCheckpoint(text string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "tinker:")
}

// claim writes the run as the owner into the body of a request that makes a session or model.
func (b *Broker) claim(run Run, op string, of *body) error {
	if _, loads := of.values["session_id"]; op == tinker.TypeLoadWeights && !loads {
		return nil // it loads into an existing model
	}
	var metadata map[string]json.RawMessage
	if given := of.values["user_metadata"]; len(given) > 0 {
		if err := json.Unmarshal(given, &metadata); err != nil {
			return invalid(errors.New("user_metadata is not a JSON object"))
		}
	}
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	for name, value := range map[string]string{MetadataRun: run.UID, MetadataNamespace: run.Namespace} {
		encoded, err := json.Marshal(value)
		if err != nil {
			return err
		}
		metadata[name] = encoded
	}
	if err := of.set("user_metadata", metadata); err != nil {
		return err
	}
	if op != tinker.TypeCreateSession {
		return nil
	}
	if project := b.inForce.Load().Project; project != "" {
		return of.set("project_id", project)
	}
	of.remove("project_id")
	return nil
}
