// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/resolve"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// unusableEnvironments is Accepted while an environment of the run cannot be used; nil if all can.
func (v view) unusableEnvironments() *status.Condition {
	const kind = v1alpha1.ConditionAccepted
	if v.next.StartTime == nil {
		if _, p := resolve.Environments(v.run, nil, v.seen.Environments); p != nil {
			return new(not(kind, *p))
		}
		return nil
	}
	before := v.codeBefore(kind)
	if v.stands(kind) && (before == problem.ServersUnavailable || before == problem.ServersAuthorityUnknown) {
		return new(v.asBefore(kind))
	}
	if reply := v.reply(); reply != nil && len(reply.Unavailable) > 0 && !v.finished() {
		return new(not(kind, serversUnavailable(reply.Unavailable)))
	}
	return nil
}

// maxUnavailable bounds how many unavailable environments a condition describes.
const maxUnavailable = 4

// serversUnavailable returns the problem of servers that take no sessions, with the run's reaction.
func serversUnavailable(list []contract.UnavailableEnvironment) problem.Problem {
	code, text := problem.ServersUnavailable, []string(nil)
	for i, e := range list {
		if e.Code == problem.ServersAuthorityUnknown {
			code = e.Code
		}
		if i == maxUnavailable {
			text = append(text, fmt.Sprintf("%d more environments are unavailable", len(list)-i))
			break
		}
		meanwhile := "the run waits for it"
		if e.Skipped {
			meanwhile = "the run trains on its other environments meanwhile"
		}
		text = append(text, fmt.Sprintf("%q: %s; %s", e.Name, status.Trim(e.Problem, endpoint.MaxEvidence), meanwhile))
	}
	return problem.Problem{Code: code, Evidence: strings.Join(text, ". ")}
}
