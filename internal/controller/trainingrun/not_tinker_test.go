// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/observe"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/status"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport/transporttest"
)

func TestEndpointThatIsNotTinkerAPI(t *testing.T) {
	authority := func(run *v1alpha1.TrainingRun) {
		run.Spec.Tinker.CABundleConfigMapKeyRef = &ref.ConfigMapKey{Name: "ca", Key: "ca.crt"}
	}
	none := func(*v1alpha1.TrainingRun) {}
	at := func(baseURL string) func(*v1alpha1.TrainingRun) {
		return func(run *v1alpha1.TrainingRun) { run.Spec.Tinker.BaseURL = baseURL }
	}
	const refused = "POST /api/v1/client/config got no answer: tls: failed to verify certificate: x509: "
	cases := map[string]struct {
		code     problem.Code
		evidence string
		change   func(*v1alpha1.TrainingRun)
		repair   string
	}{
		"a version in the path": {problem.EndpointNotTinker,
			"POST /v1/api/v1/client/config was answered with 404: Not Found", at("https://tinker.example/v1"),
			"drop /v1 from tinker.baseURL, since /api/v1 is appended to it"},
		"the API in the path": {problem.EndpointNotTinker, "POST /api/v1/api/v1/client/config was answered with 404",
			at("https://tinker.example/api/v1/"), "drop /api/v1 from tinker.baseURL"},
		"a version behind a prefix": {problem.EndpointNotTinker,
			"POST /gateway/v1/api/v1/client/config was answered with 404", at("https://tinker.example/gateway/v1"),
			"drop /v1 from tinker.baseURL"},
		"another path": {problem.EndpointNotTinker, "POST /tinker/api/v1/client/config was answered with 404",
			at("https://tinker.example/tinker"), "check the path /tinker of tinker.baseURL, to which /api/v1 is appended"},
		"a page": {problem.EndpointNotTinker, "POST /api/v1/client/config was answered with 200: <!doctype html>", none,
			"correct tinker.baseURL, to which /api/v1 is appended"},
		"TLS": {problem.EndpointNotTinker, "POST /api/v1/client/config was answered with 400: <html>The plain HTTP " +
			"request was sent to HTTPS port", at("http://tinker.example"),
			"correct tinker.baseURL, to which /api/v1 is appended. If the server speaks TLS, begin the address with https://."},
		"no TLS": {problem.EndpointWithoutTLS,
			"POST /api/v1/client/config got no answer: http: server gave HTTP response to HTTPS client", none,
			"begin tinker.baseURL with http://"},
		"a private authority": {problem.EndpointAuthorityUnknown, refused + "certificate signed by unknown authority", none,
			"name the ConfigMap in tinker.caBundleConfigMapKeyRef"},
		"another authority": {problem.EndpointAuthorityUnknown, refused + "certificate signed by unknown authority",
			authority, `correct the authorities in ConfigMap "ca" of tinker.caBundleConfigMapKeyRef`},
		"another host": {problem.EndpointHostMismatch, refused + "certificate is valid for a, not b", none,
			"name a host of the certificate in tinker.baseURL"},
		"an expired certificate": {problem.EndpointCertificateExpired,
			refused + "certificate has expired or is not yet valid: now", none, "renew the certificate of the server"},
		"a certificate that is not valid": {problem.EndpointCertificateInvalid,
			refused + "certificate specifies an incompatible key usage", none, "give the server a valid certificate"},
		"a client certificate": {problem.EndpointRefusesTLS,
			"POST /api/v1/client/config got no answer: remote error: tls: certificate required", none,
			"give a client certificate that the server accepts by tinker.clientCertificateSecretRef"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := newRun(attempts(inProgress(1)), tc.change)
			opening := contract.HeartbeatReply{Attempt: 1,
				Problems: []problem.Problem{{Code: tc.code, Evidence: tc.evidence}},
				Progress: contract.Progress{Phase: contract.PhaseOpening}}
			seen := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()}, replying(opening))
			next := computeStatus(run, seen, makePlan(run, seen, now), now)
			for kind, want := range map[string]string{
				v1alpha1.ConditionProgressing: "False EndpointNotTinker", v1alpha1.ConditionReady: "False EndpointNotTinker",
				v1alpha1.ConditionStalled: "False AsExpected",
			} {
				if got := conditionOf(next, kind); got != want {
					t.Errorf("%s = %s, want %s", kind, got, want)
				}
			}
			message := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady).Message
			if !strings.Contains(message, tc.evidence) || !containsFold(message, tc.repair) {
				t.Errorf("Ready says %q, want %q", message, tc.repair)
			}
			if fixed := strings.Contains(tc.repair, "tinker.baseURL"); containsFold(message, "in another run") != fixed {
				t.Errorf("Ready says %q; a field that is fixed is to be changed in another run: %v", message, fixed)
			}
			run.Status.SettingsFixed = new(false)
			next = computeStatus(run, seen, makePlan(run, seen, now), now)
			message = meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady).Message
			if !containsFold(message, tc.repair) || !strings.Contains(message, " The run then continues by itself.") ||
				strings.Contains(message, "another run") {
				t.Errorf("before a first step Ready says %q, want that %q repairs this run", message, tc.repair)
			}
		})
	}
}

// TestRequestFromBeforeAChangeOfTheEndpoint checks that the message does not blame the authority if the learner began
// before the authority was given: it says that the next attempt uses the change.
func TestRequestFromBeforeAChangeOfTheEndpoint(t *testing.T) {
	const evidence = "POST /api/v1/client/config got no answer: tls: failed to verify certificate: x509: certificate " +
		"signed by unknown authority"
	run := newRun(attempts(inProgress(1)), notFixed)
	job := learnerOf(run, 1)
	run.Spec.Tinker.CABundleConfigMapKeyRef = &ref.ConfigMapKey{Name: "ca", Key: "ca.crt"}
	progress := contract.Progress{Phase: contract.PhaseOpening}
	running := observing(1, observe.Learner{Job: job, Pod: newPod()}, replying(contract.HeartbeatReply{Attempt: 1,
		Problems: []problem.Problem{{Code: problem.EndpointAuthorityUnknown, Evidence: evidence}}, Progress: progress}))
	ended := observing(1, observe.Learner{Job: job, Pod: newPod(exited(75, "Error", verdictText(t, contract.Verdict{
		Cause: contract.CauseUpstream, Reason: problem.EndpointAuthorityUnknown, Message: evidence, Attempt: 1,
		Progress: progress})))})
	for name, seen := range map[string]observe.State{"while the learner runs": running, "after its end": ended} {
		next := computeStatus(run, seen, makePlan(run, seen, now), now)
		message := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionReady).Message
		const words = "The learner began before the change of tinker.caBundleConfigMapKeyRef. The next attempt uses the " +
			"change."
		if !strings.Contains(message, evidence) || !strings.Contains(message, words) || strings.Contains(message, "Correct") {
			t.Errorf("%s: Ready says %q, want %q", name, message, words)
		}
	}
}

// TestRepairOfATinkerEndpoint checks that the author of a run is told to let the platform repair the server of a
// TinkerEndpoint: the fields of tinker do not apply to the run.
func TestRepairOfATinkerEndpoint(t *testing.T) {
	for _, code := range []problem.Code{problem.EndpointUnreachable, problem.EndpointNotTinker,
		problem.EndpointAuthorityUnknown, problem.EndpointHostMismatch} {
		run := newRun(attempts(inProgress(1)), func(run *v1alpha1.TrainingRun) {
			run.Spec.Tinker = v1alpha1.Tinker{EndpointRef: &ref.Endpoint{Name: "shared"}}
		})
		seen := observing(1, observe.Learner{Job: learnerOf(run, 1), Pod: newPod()}, replying(contract.HeartbeatReply{
			Attempt: 1, Problems: []problem.Problem{{Code: code, Evidence: "x509"}}}))
		next := computeStatus(run, seen, makePlan(run, seen, now), now)
		message := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionProgressing).Message
		if !strings.Contains(message, "x509. Have the platform look at the endpoint: kubectl describe tinkerendpoints "+
			"shared. The run") {
			t.Errorf("%s: Progressing says %q", code, message)
		}
	}
}

// TestAuthorityOfAnEnvironmentServer checks that the message says how to trust the authority of a server that the
// probe trusts and the workers do not, and that kubectl tinker why, which reads the code, gives the same advice.
func TestAuthorityOfAnEnvironmentServer(t *testing.T) {
	run := newRun(attempts(inProgress(1)))
	reply := unavailable(false)
	reply.Unavailable[0].Code = problem.ServersAuthorityUnknown
	reply.Problems[0].Code = problem.ServersAuthorityUnknown
	seen := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()}, replying(reply))
	next := computeStatus(run, seen, planned(run, seen), now)
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionProgressing} {
		c := status.Find(next.Conditions, next.Codes, kind)
		if c.Code != problem.ServersAuthorityUnknown || c.Reason != v1alpha1.ReasonEnvironmentNotUsable ||
			!strings.Contains(c.Message, `"env"`) || !strings.Contains(c.Message, "SSL_CERT_FILE") {
			t.Errorf("%s is %s %s and says %q", kind, c.Reason, c.Code, c.Message)
		}
		if got := status.Advice(run, c.Code); !strings.Contains(got, "podOverrides of the run") {
			t.Errorf("%s: the advice is %q, want the pods of the run", kind, got)
		}
	}
}

// TestWalkFromAPrivateAuthority walks the failure of a client at a server with a private authority to the conditions
// and the advice of kubectl tinker why, while the learner runs and after its end.
func TestWalkFromAPrivateAuthority(t *testing.T) {
	server := transporttest.PrivateServer(t)
	c, err := client.New(client.Config{BaseURL: server.URL, APIKey: "tml-key"})
	if err != nil {
		t.Fatal(err)
	}
	failed := c.Connect(t.Context())
	found := problem.Problem{Code: client.FailsOf(failed), Evidence: client.EvidenceOf(failed)}
	run := newRun(attempts(inProgress(1)))
	running := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod()}, replying(contract.HeartbeatReply{
		Attempt: 1, Problems: []problem.Problem{found}, Progress: contract.Progress{Phase: contract.PhaseOpening}}))
	ended := observing(1, observe.Learner{Job: newJob("one"), Pod: newPod(exited(75, "Error", verdictText(t,
		contract.Verdict{Cause: contract.CauseUpstream, Reason: found.Code, Message: found.Evidence, Attempt: 1})))})
	for name, seen := range map[string]observe.State{"while the learner runs": running, "after its end": ended} {
		next := computeStatus(run, seen, planned(run, seen), now)
		c := status.Find(next.Conditions, next.Codes, v1alpha1.ConditionReady)
		const words = "name the ConfigMap in tinker.caBundleConfigMapKeyRef."
		if c.Code != problem.EndpointAuthorityUnknown || !strings.Contains(c.Message, "x509: certificate signed by "+
			"unknown authority") || !strings.Contains(c.Message, words) || !strings.Contains(status.Advice(run, c.Code), words) {
			t.Errorf("%s: Ready has the code %s and says %q, and the advice is %q", name, c.Code, c.Message,
				status.Advice(run, c.Code))
		}
	}
}

// containsFold reports whether a text contains words. It ignores case, since the first word may begin a sentence.
func containsFold(text, words string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(words))
}

// TestEndpointThatIsNotTinkerAPIIsTriedAgain runs attempts that end because the endpoint is not a Tinker API: they do
// not count against the restart budget, and the run is stalled after the grace period.
func TestEndpointThatIsNotTinkerAPIIsTriedAgain(t *testing.T) {
	const evidence = "POST /v1/api/v1/client/config was answered with 404"
	run := newRun(func(run *v1alpha1.TrainingRun) { run.Spec.Tinker.BaseURL = "https://tinker.example/v1" })
	at := now
	for attempt := int32(1); attempt <= 4; attempt++ {
		seen := observing(0, observe.Learner{})
		p := makePlan(run, seen, at)
		if p.start != attempt {
			t.Fatalf("attempt %d follows, want %d", p.start, attempt)
		}
		p.file = &contract.RunFile{}
		run.Status = computeStatus(run, seen, p, at)
		at = at.Add(45 * time.Second)
		seen = observing(attempt, observe.Learner{Job: newJob("job"),
			Pod: newPod(exited(75, "Error", verdictText(t, contract.Verdict{
				Cause: contract.CauseUpstream, Reason: "EndpointNotTinker", Message: evidence, Attempt: attempt,
				Progress: contract.Progress{Phase: contract.PhaseOpening},
			})))})
		run.Status = computeStatus(run, seen, makePlan(run, seen, at), at)
		c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady)
		if c.Reason != "EndpointNotTinker" || !strings.Contains(c.Message, evidence) || !strings.Contains(c.Message,
			"Drop /v1 from tinker.baseURL") {
			t.Errorf("after attempt %d: Ready says %s %q", attempt, c.Reason, c.Message)
		}
		if got, want := meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionStalled),
			at.Sub(now) >= 2*time.Minute; got != want {
			t.Errorf("after %v: Stalled = %v, want %v", at.Sub(now), got, want)
		}
		at = at.Add(46 * time.Second)
	}
	if n := run.Status.FailuresSinceCheckpoint; n != nil && *n != 0 {
		t.Errorf("the attempts cost %d of the restart budget", *n)
	}
	if len(run.Status.Attempts) != 1 || run.Status.Attempts[0].Count != 4 {
		t.Errorf("attempts = %+v", run.Status.Attempts)
	}
}

// TestModelThatTheEndpointDoesNotOffer runs attempts whose learner finds that the endpoint does not offer the run's
// model. They do not count against the restart budget, begin 45 seconds apart, and share one entry; the run is stalled
// after the grace period, and continues with the learner that finds the model.
func TestModelThatTheEndpointDoesNotOffer(t *testing.T) {
	for code, reason := range map[problem.Code]string{
		problem.ModelUnknown: "ModelUnknown", problem.ContextTooShort: "UnsupportedByEndpoint",
		problem.SettingsRefused: "UnsupportedByEndpoint",
		problem.DataRefused:     "UnsupportedByEndpoint", problem.CheckpointMissing: "NoUsableCheckpoint",
	} {
		const found = "The endpoint does not know the model m: serve it there"
		run := newRun()
		at, created := now, now
		reconcile := func(seen observe.State) plan {
			p := makePlan(run, seen, at)
			p.file = &contract.RunFile{}
			run.Status = computeStatus(run, seen, p, at)
			stalled := meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionStalled)
			if want := at.Sub(now) >= 2*time.Minute; stalled != want {
				t.Errorf("after %v: Stalled = %v, want %v", at.Sub(now), stalled, want)
			}
			return p
		}
		opening := contract.Progress{Phase: contract.PhaseOpening}
		for attempt := int32(1); attempt <= 5; attempt++ {
			if p := reconcile(observing(attempt-1, observe.Learner{})); p.start != attempt {
				t.Fatalf("attempt %d follows, want %d", p.start, attempt)
			}
			if age := at.Sub(created); attempt > 1 && age < 45*time.Second {
				t.Errorf("attempt %d follows after %v, want at least 45 s", attempt, age)
			}
			created = at
			at = at.Add(3 * time.Second)
			learner := observe.Learner{Job: newJob("job"), Pod: newPod()}
			fresh := func(r contract.HeartbeatReply) func(*observe.State) {
				return func(o *observe.State) { replying(r)(o); o.Heartbeat.At = at }
			}
			reconcile(observing(attempt, learner, fresh(contract.HeartbeatReply{Attempt: attempt, Progress: opening})))
			if got := conditionOf(run.Status, v1alpha1.ConditionReady); attempt > 1 && got != "False "+reason {
				t.Errorf("while attempt %d opens, Ready = %s", attempt, got)
			}
			reconcile(observing(attempt, learner, fresh(contract.HeartbeatReply{Attempt: attempt,
				Problems: []problem.Problem{{Code: code, Evidence: found}}, Progress: opening})))
			if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady); c.Reason != reason ||
				!strings.Contains(c.Message, found) {
				t.Errorf("in attempt %d Ready has the reason %s and says %q", attempt, c.Reason, c.Message)
			}
			at = at.Add(45 * time.Second)
			ended := newPod(exited(75, "Error", verdictText(t, contract.Verdict{Cause: contract.CauseUpstream,
				Reason:  problem.Code(reason),
				Message: found, Attempt: attempt, Progress: opening})))
			if p := reconcile(observing(attempt, observe.Learner{Job: newJob("job"), Pod: ended})); p.final != nil {
				t.Fatalf("attempt %d ends the run: %+v", attempt, p.final)
			}
			if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionReady); c.Reason != reason ||
				!strings.Contains(c.Message, found) {
				t.Errorf("after attempt %d Ready has the reason %s and says %q", attempt, c.Reason, c.Message)
			}
			at = at.Add(45 * time.Second)
		}
		if n := run.Status.FailuresSinceCheckpoint; n != nil && *n != 0 || len(run.Status.Attempts) != 1 ||
			run.Status.Attempts[0].Count != 5 {
			t.Errorf("%v failures, attempts = %+v", n, run.Status.Attempts)
		}
		if p := reconcile(observing(5, observe.Learner{})); p.start != 6 {
			t.Fatalf("attempt %d follows, want 6", p.start)
		}
		loaded := contract.HeartbeatReply{Attempt: 6, Progress: contract.Progress{Phase: contract.PhaseTraining, Steps: 60,
			Lineage: "a", WorkersSeen: 2}}
		seen := observing(6, observe.Learner{Job: newJob("job"), Pod: newPod()}, replying(loaded))
		seen.Heartbeat.At = at
		run.Status = computeStatus(run, seen, makePlan(run, seen, at), at)
		if got := conditionOf(run.Status, v1alpha1.ConditionReady); got != "True Progressing" {
			t.Errorf("once a learner trains, Ready = %s", got)
		}
	}
}
