// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
)

// page is a part of a listing.
type page struct{ offset, limit int }

// pageOf decodes limit and offset from the query.
func pageOf(r *http.Request, limit int) (page, error) {
	p := page{limit: limit}
	for name, value := range map[string]*int{"limit": &p.limit, "offset": &p.offset} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return page{}, badRequest("%s must be an integer of at least 0", name)
		}
		*value = n
	}
	return p, nil
}

// slicePage returns the page of a list.
func slicePage[T any](list []T, p page) []T {
	start := min(p.offset, len(list))
	return list[start : start+min(p.limit, len(list)-start)]
}

func cursor(p page, total int) tinker.Cursor {
	return tinker.Cursor{Offset: p.offset, Limit: p.limit, TotalCount: total}
}

func getRuns(r *request) (response, error) {
	p, err := pageOf(r.Request, 20)
	if err != nil {
		return response{}, err
	}
	all := r.state.Checkpoints.Runs(r.URL.Query().Get("project_id"))
	return jsonResponse(http.StatusOK, tinker.TrainingRunList{TrainingRuns: slicePage(all, p),
		Cursor: cursor(p, len(all))})
}

func getRun(r *request) (response, error) {
	run, err := r.state.Checkpoints.Run(r.PathValue("run"))
	return jsonOrError(run, err)
}

func getRunCheckpoints(r *request) (response, error) {
	list, err := r.state.Checkpoints.List(r.PathValue("run"))
	return jsonOrError(tinker.CheckpointList{Checkpoints: list}, err)
}

func getCheckpoints(r *request) (response, error) {
	p, err := pageOf(r.Request, 100)
	if err != nil {
		return response{}, err
	}
	all, err := r.state.Checkpoints.List("")
	at := cursor(p, len(all))
	return jsonOrError(tinker.CheckpointList{Checkpoints: slicePage(all, p), Cursor: &at}, err)
}

func getSessions(r *request) (response, error) {
	p, err := pageOf(r.Request, 20)
	if err != nil {
		return response{}, err
	}
	return jsonResponse(http.StatusOK, tinker.SessionList{Sessions: slicePage(r.state.Sessions.List(), p)})
}

// target is the checkpoint in the path of a request, with the verb that follows it.
type target struct {
	path tinker.Path
	verb string // one of verbs or empty
}

var verbs = []string{"publish", "ttl", "archive", "external_weights_urls"}

// targetOf decodes KIND/NAME[/VERB]. A bare NAME is a training state.
func targetOf(r *http.Request) target {
	parts := strings.Split(r.PathValue("rest"), "/")
	var verb string
	if last := parts[len(parts)-1]; len(parts) > 1 && slices.Contains(verbs, last) {
		verb, parts = last, parts[:len(parts)-1]
	}
	if len(parts) == 1 {
		parts = []string{string(tinker.KindState), parts[0]}
	}
	path := tinker.Path{Run: r.PathValue("run"), Kind: tinker.Kind(parts[0]), Name: strings.Join(parts[1:], "/")}
	return target{path: path, verb: verb}
}

// edits are the requests that change a checkpoint, by method and verb.
var edits = map[string]struct {
	op   string
	edit func(*request) (state.Edit, error)
}{
	"DELETE ":        {"delete_checkpoint", always(state.Delete)},
	"POST publish":   {"publish", always(state.Publish)},
	"DELETE publish": {"unpublish", always(state.Unpublish)},
	"PUT ttl":        {"ttl", setTTL},
}

func always(edit state.Edit) func(*request) (state.Edit, error) {
	return func(*request) (state.Edit, error) { return edit, nil }
}

func setTTL(r *request) (state.Edit, error) {
	var req tinker.TTLRequest
	if err := decode(r.body, &req); err != nil {
		return nil, err
	}
	if req.TTLSeconds == nil {
		return state.SetTTL(0), nil
	}
	if *req.TTLSeconds <= 0 {
		return nil, badRequest("ttl_seconds must be positive")
	}
	return state.SetTTL(time.Duration(*req.TTLSeconds) * time.Second), nil
}

// readEdit is the read function of all endpoints below the path of a checkpoint.
func (s *Server) readEdit(r *request) (fault.Call, action, error) {
	t := targetOf(r.Request)
	call := fault.Call{Model: t.path.Run, Name: t.path.String()}
	if r.Method == http.MethodGet && t.verb == "archive" {
		call.Op = "archive"
		return call, func() (response, error) { return downloads{s}.redirectToArchive(r, t.path) }, nil
	}
	if r.Method == http.MethodGet && t.verb == "external_weights_urls" {
		call.Op = t.verb
		return call, func() (response, error) { return downloads{s}.externalURLs(r, t.path) }, nil
	}
	row, ok := edits[r.Method+" "+t.verb]
	if !ok {
		return call, nil, newHTTPError(http.StatusNotFound, "%s %s does not exist", r.Method, r.URL.Path)
	}
	call.Op = row.op
	edit, err := row.edit(r)
	return call, func() (response, error) { return response{}, r.state.Checkpoints.Edit(t.path, edit) }, err
}
