// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoint writes messages for people about the answers of a run's endpoint, and decides which run's check of
// an endpoint another run may rely on.
package endpoint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

// NeedsAction says that a person has to repair what a learner reports of its endpoint.
func NeedsAction(upstream string) bool {
	return slices.Contains([]string{
		contract.UpstreamNotTinker, contract.UpstreamUnknownModel, contract.UpstreamShortContext,
		contract.UpstreamCredentials, contract.UpstreamPayment,
		contract.UpstreamSettingsRefused, contract.UpstreamDataRefused,
		contract.UpstreamMissingCheckpoint, "too_large", "refused", "unreachable",
	}, upstream)
}

// Missing says that the run waits for what the endpoint does not offer, by the reason and the message of an attempt
// that ended for it.
func Missing(reason, found string) string {
	message := "The run waits until the endpoint supports what it needs, or the spec no longer asks for it, and then " +
		"continues by itself."
	switch reason {
	case v1alpha1.ReasonModelUnknown:
		message = Upstreams[contract.UpstreamUnknownModel].Message
	case v1alpha1.ReasonNoUsableCheckpoint:
		message = Upstreams[contract.UpstreamMissingCheckpoint].Message
	case v1alpha1.ReasonOptimizerNotRestored:
		message = "The run waits until the endpoint restores the optimizer, or failurePolicy.requireOptimizer is false, " +
			"and then continues by itself."
	}
	return message + Evidence(found)
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
			"this run continues by itself.", Upstreams[contract.UpstreamNotTinker].Message, quoted, repair)
	}
	return fmt.Sprintf("%s%s To repair it, %s; the run then continues by itself.",
		Upstreams[contract.UpstreamNotTinker].Message, quoted, repair)
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
	case (has("x509:") || has("tls:")) && tinker.CABundleConfigMapRef != nil:
		return fmt.Sprintf("correct the authorities in ConfigMap %q of tinker.caBundleConfigMapRef",
			tinker.CABundleConfigMapRef.Name)
	case has("x509:"), has("tls:"):
		return "give the authority that signed the certificate by tinker.caBundleConfigMapRef"
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

// Upstream is what a condition says of an endpoint.
type Upstream struct {
	Reason, Message string
	// Continues says that the run makes progress all the same.
	Continues bool
}

// Upstreams are by what a learner reports of its endpoint (contract.HeartbeatReply.Upstream).
var Upstreams = map[string]Upstream{
	"throttled": {v1alpha1.ReasonThrottled,
		"The endpoint answers 429: its rate limit is reached, and the run continues as fast as that allows.", true},
	contract.UpstreamPayment: {v1alpha1.ReasonPaymentRequired,
		"The endpoint answers 402: check the account's billing; the run then continues by itself.", false},
	"paused_capacity": {v1alpha1.ReasonPausedCapacity, "The endpoint has paused the model because it lacks capacity.",
		false},
	"paused_rate_limit": {v1alpha1.ReasonPausedRateLimit, "The endpoint has paused the model at a rate limit.", false},
	"unreachable": {v1alpha1.ReasonEndpointUnreachable,
		"The endpoint cannot be reached: check tinker.baseURL and the network.", false},
	contract.UpstreamCredentials: {v1alpha1.ReasonKeyRefused,
		"The endpoint refuses the API key: put a valid one into the Secret of tinker.apiKeySecretRef; " +
			"the run then continues by itself.", false},
	"too_large": {v1alpha1.ReasonRequestTooLarge,
		"The endpoint, or a proxy before it, rejects a request with one training sequence as too large: " +
			"raise its limit of request bodies; the run then continues by itself.", false},
	"refused": {v1alpha1.ReasonEndpointFailing, "The endpoint refuses to sample: correct what its answer names, at the " +
		"server or in the run; " +
		"the run then continues by itself.", false},
	contract.UpstreamNotTinker: {v1alpha1.ReasonEndpointNotTinker,
		"What answers at tinker.baseURL is not the Tinker API.", false},
	contract.UpstreamUnknownModel: {v1alpha1.ReasonModelUnknown,
		"The run waits for a model that the endpoint does not offer, and continues by itself once it has one.", false},
	contract.UpstreamShortContext: {v1alpha1.ReasonUnsupportedByEndpoint,
		"The run waits until its samples fit into the model's context, and then continues by itself.", false},
	contract.UpstreamSettingsRefused: {v1alpha1.ReasonUnsupportedByEndpoint,
		"The endpoint refuses a setting of the run: correct it there or in the spec, which may be " +
			"changed until a first step is committed; the run then continues by itself.", false},
	contract.UpstreamDataRefused: {v1alpha1.ReasonUnsupportedByEndpoint,
		"The endpoint refuses all training data: correct it there, or the loss or the model in the spec, " +
			"which may be changed until a first step is committed; the run then continues by itself.", false},
	contract.UpstreamMissingCheckpoint: {v1alpha1.ReasonNoUsableCheckpoint,
		"The endpoint cannot read a checkpoint that the spec names: make it readable, or name another, " +
			"which is possible until a first step is committed; the run then continues by itself.", false},
	"server_error": {v1alpha1.ReasonEndpointFailing, "The endpoint answers with errors of its own.", false},
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
