// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tinkerendpoint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	rules "github.com/tinker-operator/tinker-operator/internal/controller/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/endpoint"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Bounds of the capabilities, as the CRD has them.
const (
	maxNames     = 64
	maxModelName = 256
	maxVersion   = 64
)

// checksOf returns the server's features by the report, and the condition about them; without a report, the features in
// the status. A refusal does not make an endpoint unready: it may concern a single model that a run has named wrongly.
func checksOf(of *v1alpha1.TinkerEndpoint,
	report *endpoint.Report) ([]v1alpha1.EndpointCapabilities, status.Condition) {
	const is = v1alpha1.ConditionChecked
	if report == nil {
		return of.Status.Capabilities, status.Unknown(is, v1alpha1.ReasonNotAsked, "The broker has not reported yet.")
	}
	var all []v1alpha1.EndpointCapabilities
	var checking, refused []string
	for _, found := range report.Checks[:min(len(report.Checks), endpoint.MaxChecks)] {
		made := capabilitiesOf(found)
		if made.Refused != "" {
			refused = append(refused, made.Model+": "+made.Refused)
		}
		if found.Checking {
			checking = append(checking, made.Model)
		}
		if made.CheckedAt != nil || made.Refused != "" {
			all = append(all, made)
		}
	}
	switch {
	case len(refused) > 0:
		return all, show(is, metav1.ConditionFalse, problem.Problem{Code: problem.ServerCheckRefused,
			Evidence: strings.TrimSuffix(strings.Join(refused, "; "), ".")})
	case len(checking) > 0:
		slices.Sort(checking)
		return all, status.Unknown(is, v1alpha1.ReasonChecking, status.Trim(fmt.Sprintf("The broker checks what the server "+
			"supports with %s.", strings.Join(slices.Compact(checking), ", ")), rules.MaxEvidence))
	case len(all) == 0:
		return nil, status.Unknown(is, v1alpha1.ReasonNotAsked, "No run has asked what the server supports.")
	}
	return all, status.True(is, v1alpha1.ReasonChecked, "The broker has checked what runs have asked for.")
}

// capabilitiesOf returns a check as the status has it, within the bounds of the CRD.
func capabilitiesOf(found endpoint.Check) v1alpha1.EndpointCapabilities {
	made := v1alpha1.EndpointCapabilities{
		Model: status.Trim(found.Model, maxModelName), Supported: names(found.Supported), Ignored: names(found.Ignored),
		Unsupported: names(found.Unsupported), Undecided: names(found.Undecided),
		ClientVersion: status.Trim(found.ClientVersion, maxVersion), Connection: status.Trim(found.Connection, maxVersion),
		Refused: status.Trim(found.Refused, rules.MaxEvidence),
	}
	for _, module := range found.TrainModules {
		made.TrainModules = append(made.TrainModules, v1alpha1.TrainModule(module))
	}
	if !found.CheckedAt.IsZero() {
		made.CheckedAt = ptr.To(metav1.NewTime(found.CheckedAt.Truncate(time.Second)))
	}
	return made
}

func names(all []string) []string { return all[:min(len(all), maxNames)] }
