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

// Trimmed returns a problem with the evidence bounded, as a condition shows it.
func Trimmed(found problem.Problem) problem.Problem {
	found.Evidence = status.Trim(found.Evidence, MaxEvidence)
	return found
}

// NotTinker returns the problem of a server that is not the Tinker API, with the repair that its answer shows. Once a
// step is committed, the API server refuses a change of tinker.baseURL.
func NotTinker(tinker v1alpha1.Tinker, fixed bool, request string) problem.Problem {
	repair := repairAddress(tinker, request)
	if fixed && strings.Contains(repair, "tinker.baseURL") {
		repair = "repair the server: tinker.baseURL is fixed once a step is committed. In another run, " + repair
	}
	repair = strings.ToUpper(repair[:1]) + repair[1:]
	return Trimmed(problem.Problem{Code: problem.EndpointNotTinker, Evidence: request, Repair: repair + "."})
}

// notTinker is tinker.CategoryNotTinker, by which a broker's words tell that a server is not the Tinker API.
const notTinker = "not_tinker"

// RepairServer returns the repair of the server of a TinkerEndpoint that is not the Tinker API, by the words of the
// broker; it is empty for other words.
func RepairServer(spec v1alpha1.TinkerEndpointSpec, words string) string {
	if !strings.Contains(words, notTinker) {
		return ""
	}
	repair := repairAddress(v1alpha1.Tinker{CABundleConfigMapKeyRef: spec.CABundleConfigMapKeyRef}, words)
	for _, field := range []string{"baseURL", "caBundleConfigMapKeyRef", "clientCertificateSecretRef"} {
		repair = strings.ReplaceAll(repair, "tinker."+field, "spec."+field)
	}
	return strings.ToUpper(repair[:1]) + repair[1:] + "."
}

// firstRequest matches the path of a learner's first request, and in it the path of tinker.baseURL before /api/v1.
var firstRequest = regexp.MustCompile(` (/\S*?)/api/v1/client/config[ )]`)

// versionPath matches a path that ends like the API's path.
var versionPath = regexp.MustCompile(`(/api)?/v1/?$`)

// repairAddress returns the repair of the address of an endpoint that is not a Tinker API, by the failed request.
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

// TrustAuthority returns the repair of a certificate whose authority a pod does not trust, of a server other than the
// endpoint; it is empty for other evidence.
func TrustAuthority(evidence string) string {
	if !strings.Contains(evidence, "x509: certificate signed by unknown authority") {
		return ""
	}
	return "Mount the authority of the server (volumes, volumeMounts) and name its file in the variable SSL_CERT_FILE " +
		"(env), in pod of the RewardEnvironment and in podOverrides of its runs, or in the chart's value pods."
}

// MaxEvidence bounds a learner's evidence of a failed request, in bytes.
const MaxEvidence = 512
