// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoint writes messages for people about the answers of a run's endpoint, and decides which run's check of
// an endpoint another run may rely on.
package endpoint

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// Message returns the text of a condition about a problem whose evidence a learner reports.
func Message(found problem.Problem) string {
	found.Evidence = status.Trim(found.Evidence, MaxEvidence)
	return found.Message()
}

// Repair quotes what answered instead of the Tinker API, and says how that is repaired. tinker.baseURL can be changed
// until it is fixed.
func Repair(tinker v1alpha1.Tinker, fixed bool, request string) string {
	quoted := Evidence(request)
	repair := repairAddress(tinker, request)
	if fixed && strings.Contains(repair, "tinker.baseURL") {
		// The API server refuses a change of it.
		return fmt.Sprintf("%s%s To repair it, %s: in another run, since tinker.baseURL is fixed once a step is committed. "+
			"Should the server change, "+
			"this run continues by itself.", problem.Lookup(problem.EndpointNotTinker).Fact, quoted, repair)
	}
	return fmt.Sprintf("%s%s To repair it, %s; the run then continues by itself.",
		problem.Lookup(problem.EndpointNotTinker).Fact, quoted, repair)
}

// firstRequest matches the path of a learner's first request, and in it what tinker.baseURL has before /api/v1.
var firstRequest = regexp.MustCompile(` (/\S*?)/api/v1/client/config `)

// versionPath matches a path that ends as that of the API does.
var versionPath = regexp.MustCompile(`(/api)?/v1/?$`)

// repairAddress says what to do about an endpoint that is not a Tinker API, by the request that failed.
func repairAddress(tinker v1alpha1.Tinker, evidence string) string {
	has := func(words string) bool { return strings.Contains(evidence, words) }
	switch {
	case has("HTTP response to HTTPS client"):
		return "begin tinker.baseURL with http://, since the server does not speak TLS"
	case has("HTTPS port"), has("HTTP request to an HTTPS server"):
		return "begin tinker.baseURL with https://, since the server speaks TLS"
	case has("remote error: tls:"):
		return "give a client certificate by tinker.clientCertificateSecretRef that the server accepts"
	case has("x509: certificate has expired"):
		return "renew the certificate of the endpoint"
	case has("x509: certificate is"), has("x509: cannot validate certificate for"):
		return "name the host of the certificate in tinker.baseURL"
	case (has("x509:") || has("tls:")) && tinker.CABundleConfigMapKeyRef != nil:
		return fmt.Sprintf("correct the authorities in ConfigMap %q of tinker.caBundleConfigMapKeyRef",
			tinker.CABundleConfigMapKeyRef.Name)
	case has("x509:"), has("tls:"):
		return "give the authority that signed the certificate by tinker.caBundleConfigMapKeyRef"
	}
	found := firstRequest.FindStringSubmatch(evidence)
	if found == nil || found[1] == "" {
		return "correct tinker.baseURL, to which /api/v1 is appended"
	}
	if version := versionPath.FindString(found[1]); version != "" {
		return fmt.Sprintf("drop %s from tinker.baseURL, since /api/v1 is appended to it", version)
	}
	return fmt.Sprintf("check the path %s of tinker.baseURL, to which /api/v1 is appended", found[1])
}

// MaxEvidence bounds what a learner reports of a failed request, in bytes.
const MaxEvidence = 512

// Evidence names the request that the endpoint failed to answer, as a further sentence; empty for none.
func Evidence(request string) string {
	if request == "" {
		return ""
	}
	return " " + status.Trim(request, MaxEvidence) + "."
}
