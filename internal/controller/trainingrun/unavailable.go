// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/controller/resolve"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// unusableEnvironments is Accepted while an environment of the run cannot be used; nil where all can.
func (v view) unusableEnvironments() *status.Condition {
	const kind = v1alpha1.ConditionAccepted
	if v.next.StartTime == nil {
		if _, p := resolve.Environments(v.run, nil, v.seen.Environments); p != nil {
			return new(status.False(kind, p.Reason, p.Message))
		}
		return nil
	}
	if c := meta.FindStatusCondition(v.run.Status.Conditions, kind); v.stands(kind) &&
		c.Reason == v1alpha1.ReasonEnvironmentUnavailable {
		return c
	}
	if reply := v.reply(); reply != nil && len(reply.Unavailable) > 0 && !v.finished() {
		return new(status.False(kind, v1alpha1.ReasonEnvironmentUnavailable, unavailableMessage(reply.Unavailable)))
	}
	return nil
}

// maxUnavailable bounds how many unavailable environments a condition describes.
const maxUnavailable = 4

// unavailableMessage says which environments no worker can play, why, what the run does meanwhile, and how that is
// repaired.
func unavailableMessage(list []contract.UnavailableEnvironment) string {
	var text strings.Builder
	for i, e := range list {
		if i == maxUnavailable {
			fmt.Fprintf(&text, "%d more environments are unavailable, too. ", len(list)-i)
			break
		}
		meanwhile := "the run waits for it"
		if e.Skipped {
			meanwhile = "the run trains on its other environments meanwhile"
		}
		fmt.Fprintf(&text, "The server of environment %q takes no sessions (%s); %s. ", e.Name,
			status.Trim(e.Problem, endpoint.MaxEvidence), meanwhile)
	}
	text.WriteString("Repair the server (for ors.server see the log of the pods' container environment-NAME); the run " +
		"then continues by itself.")
	return text.String()
}
