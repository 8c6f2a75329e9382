// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"fmt"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

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
