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

// adminRoutes are the endpoints by which tests control the server:
//
//	GET    /admin/faults                returns the active rules with their counts, {"faults": [...]}
//	POST   /admin/faults                adds rules in the format of package fault; responds with {"ids": [...]}
//	DELETE /admin/faults                removes all rules and releases the operations that they hold
//	POST   /admin/faults/{id}/release   releases the operations that a hold holds
//	POST   /admin/forced-samples        replaces the rules of forced samples by {"rules": [...]}, a list of sampling.ForcedRule
//	DELETE /admin/forced-samples        removes the rules of forced samples
//	POST   /admin/checkpoints           {"path": regular expression, "do": "expire" or "damage"}; responds with {"paths": [...]}
//	DELETE /admin/sessions/{id}         ends a session as if it had timed out
//	POST   /admin/restart               has the effect of a restart of the process
//	GET    /admin/busy                  returns Stats: the server's counters
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
		simpleEndpoint("POST /admin/forced-samples", "", s.forceSamples),
		simpleEndpoint("DELETE /admin/forced-samples", "", func(*request) (response, error) {
			return response{}, s.forced.Replace(nil)
		}),
		simpleEndpoint("POST /admin/checkpoints", "", editCheckpoints),
		simpleEndpoint("DELETE /admin/sessions/{id}", "", func(r *request) (response, error) {
			return response{}, r.state.Sessions.Expire(r.PathValue("id"))
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
	Path   string `json:"path"`
	Action string `json:"do"`
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
	changed, err := r.state.Checkpoints.EditMatching(pattern.MatchString, edit)
	if err != nil {
		return response{}, err
	}
	return jsonResponse(http.StatusOK, map[string]any{"paths": changed})
}
