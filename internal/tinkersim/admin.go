// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkersim

import (
	"bytes"
	"net/http"
	"regexp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/sampling"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/state"
)

// adminRoutes are the endpoints by which tests reach into the server:
//
//	GET    /admin/faults                the rules in force with their counts, {"faults": [...]}
//	POST   /admin/faults                adds rules as package fault describes them; answers {"ids": [...]}
//	DELETE /admin/faults                removes all rules and releases what they hold
//	POST   /admin/faults/{id}/release   lets go what a hold holds
//	POST   /admin/rehearse              puts rules of package rehearsal in force, {"rehearsals": [...]}, in place of those before
//	DELETE /admin/rehearse              removes them
//	POST   /admin/checkpoints           {"path": regular expression, "do": "expire" or "damage"}; answers {"paths": [...]}
//	DELETE /admin/sessions/{id}         makes a session die as if nothing had been heard of it
//	POST   /admin/restart               forgets what a restart of the process would
//	GET    /admin/busy                  what the server has done so far, see Busy
func (s *Server) adminRoutes() []endpoint {
	return []endpoint{
		simpleEndpoint("GET /admin/faults", "", func(*request) (response, error) {
			return jsonResponse(http.StatusOK, map[string]any{"faults": s.faults.List()})
		}),
		simpleEndpoint("POST /admin/faults", "", s.addFaults),
		simpleEndpoint("DELETE /admin/faults", "", func(*request) (response, error) {
			s.faults.Clear()
			return response{}, nil
		}),
		simpleEndpoint("POST /admin/faults/{id}/release", "", func(r *request) (response, error) {
			if err := s.faults.Release(r.PathValue("id")); err != nil {
				return response{}, notFound("fault", r.PathValue("id"))
			}
			return response{}, nil
		}),
		simpleEndpoint("POST /admin/rehearse", "", s.forceSamples),
		simpleEndpoint("DELETE /admin/rehearse", "", func(*request) (response, error) {
			return response{}, s.forced.Replace(nil)
		}),
		simpleEndpoint("POST /admin/checkpoints", "", editCheckpoints),
		simpleEndpoint("DELETE /admin/sessions/{id}", "", func(r *request) (response, error) {
			return response{}, r.state.ExpireSession(r.PathValue("id"))
		}),
		simpleEndpoint("POST /admin/restart", "", func(*request) (response, error) {
			return response{}, s.Restart()
		}),
		simpleEndpoint("GET /admin/busy", "", func(*request) (response, error) {
			return jsonResponse(http.StatusOK, s.Stats())
		}),
	}
}

func (s *Server) addFaults(r *request) (response, error) {
	rules, err := fault.Decode(bytes.NewReader(r.body))
	if err != nil {
		return response{}, badRequest("%s", err)
	}
	ids, err := s.faults.Add(rules)
	if err != nil {
		return response{}, badRequest("%s", err)
	}
	return jsonResponse(http.StatusOK, map[string]any{"ids": ids})
}

func (s *Server) forceSamples(r *request) (response, error) {
	rules, err := sampling.DecodeForcedRules(r.body)
	if err == nil {
		err = s.forced.Replace(rules)
	}
	if err != nil {
		return response{}, badRequest("%s", err)
	}
	return response{}, nil
}

// checkpointEdit is the body of POST /admin/checkpoints.
type checkpointEdit struct {
	Path string `json:"path"`
	Action   string `json:"do"`
}

func editCheckpoints(r *request) (response, error) {
	var req checkpointEdit
	if err := decode(r.body, &req); err != nil {
		return response{}, err
	}
	pattern, err := regexp.Compile(req.Path)
	if err != nil {
		return response{}, badRequest("%s", err)
	}
	edit, ok := map[string]state.Edit{"expire": state.Delete, "damage": state.Damage}[req.Action]
	if !ok {
		return response{}, badRequest("do must be expire or damage")
	}
	changed, err := r.state.EditMatching(pattern.MatchString, edit)
	if err != nil {
		return response{}, err
	}
	return jsonResponse(http.StatusOK, map[string]any{"paths": changed})
}
