// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// SettingsFixed reports whether the settings that decide the weights can no longer be changed. If a former version of
// the operator started the run, the status does not say so until this version has written it.
func SettingsFixed(run *v1alpha1.TrainingRun) bool {
	return run.Status.StartTime != nil && ptr.Deref(run.Status.SettingsFixed, true)
}

// IsNotTinker reports whether a code says that the endpoint's server is not the Tinker API, or that client and server
// do not agree on TLS.
func IsNotTinker(code problem.Code) bool {
	return problem.Lookup(code).Reason == v1alpha1.ReasonEndpointNotTinker
}

// Advice returns the repair of a problem of a run for people who do not see the message of the condition; empty if
// there is nothing to do, or the code is not known.
func Advice(run *v1alpha1.TrainingRun, code problem.Code) string {
	if repair := AtEndpoint(run, run.Status.PendingChanges, problem.Problem{Code: code}).Repair; repair != "" {
		return repair
	}
	return strings.ReplaceAll(problem.AdviceOf(code), "$(run)", run.Name)
}

// AtEndpoint returns a problem with the repair for the endpoint that the spec of the run names. The learner that found
// the problem does not know the pending changes of the spec. Problems of other kinds stay as they are.
func AtEndpoint(run *v1alpha1.TrainingRun, pending []string, found problem.Problem) problem.Problem {
	pending = slices.DeleteFunc(slices.Clone(pending), func(field string) bool {
		return !strings.HasPrefix(field, "tinker.")
	})
	switch tinker := run.Spec.Tinker; {
	case found.Code != problem.EndpointUnreachable && !IsNotTinker(found.Code):
	case IsNotTinker(found.Code) && len(pending) > 0:
		found.Repair = fmt.Sprintf("The learner began before the change of %s. The next attempt uses the change.",
			strings.Join(pending, ", "))
	case tinker.EndpointRef != nil:
		found.Repair = "Have the platform look at the endpoint: kubectl describe tinkerendpoints " +
			tinker.EndpointRef.Name + "."
	case IsNotTinker(found.Code):
		s := server{fields: "tinker.", baseURL: tinker.BaseURL, authorities: tinker.CABundleConfigMapKeyRef}
		found.Repair = s.repair(found.Code)
		if SettingsFixed(run) && strings.Contains(found.Repair, "tinker.baseURL") {
			found.Repair = "Repair the server: tinker.baseURL is fixed once a step is committed. In another run, " +
				strings.ToLower(found.Repair[:1]) + found.Repair[1:]
		}
	}
	return found
}

// AtServer returns a problem with the repair for the server that the spec of a TinkerEndpoint names. Problems of other
// kinds stay as they are.
func AtServer(spec v1alpha1.TinkerEndpointSpec, found problem.Problem) problem.Problem {
	if IsNotTinker(found.Code) {
		s := server{fields: "spec.", baseURL: spec.BaseURL, authorities: spec.CABundleConfigMapKeyRef}
		found.Repair = s.repair(found.Code)
	}
	return found
}

// server is the server of an endpoint, as a spec names it.
type server struct {
	// fields is the path of the fields of the server in the spec.
	fields      string
	baseURL     string
	authorities *ref.ConfigMapKey
}

// repair returns the repair of a server that is not the Tinker API, or with which the client does not agree on TLS.
func (s server) repair(code problem.Code) string {
	switch row := problem.Lookup(code); {
	case code == problem.EndpointNotTinker:
		return s.repairAddress()
	case code == problem.EndpointAuthorityUnknown && s.authorities != nil:
		return fmt.Sprintf("Correct the authorities in ConfigMap %q of %scaBundleConfigMapKeyRef.", s.authorities.Name,
			s.fields)
	default:
		return strings.ReplaceAll(row.Repair, "$(field)", s.fields+strings.TrimPrefix(row.Field, "tinker."))
	}
}

// versionPath matches a path that ends like the API's path.
var versionPath = regexp.MustCompile(`(/api)?/v1$`)

// repairAddress returns the repair of the address of a server that is not the Tinker API.
func (s server) repairAddress() string {
	address, err := url.Parse(strings.TrimRight(s.baseURL, "/"))
	if err != nil {
		address = &url.URL{}
	}
	repair := fmt.Sprintf("Correct %sbaseURL, to which /api/v1 is appended.", s.fields)
	switch version := versionPath.FindString(address.Path); {
	case version != "":
		return fmt.Sprintf("Drop %s from %sbaseURL, since /api/v1 is appended to it.", version, s.fields)
	case address.Path != "":
		repair = fmt.Sprintf("Check the path %s of %sbaseURL, to which /api/v1 is appended.", address.Path, s.fields)
	}
	if address.Scheme == "http" {
		repair += " If the server speaks TLS, begin the address with https://."
	}
	return repair
}
