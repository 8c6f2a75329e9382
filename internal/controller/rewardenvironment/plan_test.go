// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package rewardenvironment

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/controller/refusal"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/test/admit"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newEnvironment(changes ...func(*v1alpha1.RewardEnvironment)) *v1alpha1.RewardEnvironment {
	env := &v1alpha1.RewardEnvironment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "env", UID: "0123456789", Generation: 2},
		Spec: v1alpha1.RewardEnvironmentSpec{
			Dataset: &environment.Dataset{Arithmetic: &environment.ArithmeticData{}},
			Reward:  &environment.Reward{RewardRule: environment.RewardRule{ExactMatch: &environment.ExactMatch{}}},
		},
	}
	for _, change := range changes {
		change(env)
	}
	admit.Default(env)
	return env
}

// ready sets the condition Ready of a generation.
func ready(status metav1.ConditionStatus, reason string, generation int64) func(*v1alpha1.RewardEnvironment) {
	return func(env *v1alpha1.RewardEnvironment) {
		env.Status.ObservedGeneration = &generation
		env.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: status, Reason: reason, Message: "as before", ObservedGeneration: generation,
			LastTransitionTime: metav1.NewTime(now),
		}}
	}
}

// seen returns an observation of the probe of a try, and of its pod.
func seen(try int32, pod *corev1.Pod, changes ...func(*observed)) observed {
	o := observed{definition: desired.Definition(newEnvironment().Spec), digest: strings.Repeat("ab", 32), try: try,
		pod: pod}
	if try > 0 {
		o.job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
	}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func probePod(state corev1.ContainerState) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "probe",
		State: state}}}}
}

// terminatedPod is a pod whose probe left a message, a while ago.
func terminatedPod(message string, since time.Duration) *corev1.Pod {
	return probePod(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, Message: message, FinishedAt: metav1.NewTime(now.Add(-since)),
	}})
}

// hasCode sets the digest of the code of reward.python in the status, and readsCode sets the digest of the current
// code.
func hasCode(digest string) func(*v1alpha1.RewardEnvironment) {
	return func(env *v1alpha1.RewardEnvironment) {
		env.Status.Code = []v1alpha1.CodeStatus{{Function: "reward.python", SHA256: digest}}
	}
}

func readsCode(digest string) func(*observed) {
	return func(o *observed) { o.code = []v1alpha1.CodeStatus{{Function: "reward.python", SHA256: digest}} }
}

const good = `{"ok":true,"splits":[{"name":"test","tasks":1},{"name":"train","tasks":9}],"canaryReward":1,` +
	`"declaresTools":true}`

func TestPlan(t *testing.T) {
	running := probePod(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	startedBefore := func(age time.Duration) func(*observed) {
		return func(o *observed) { o.started = now.Add(-age) }
	}
	noImage := func(age time.Duration) *corev1.Pod {
		pod := probePod(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}})
		pod.CreationTimestamp = metav1.NewTime(now.Add(-age))
		return pod
	}
	ran := func(pod *corev1.Pod, lasted time.Duration) *corev1.Pod {
		ended := pod.Status.ContainerStatuses[0].State.Terminated
		ended.StartedAt = metav1.NewTime(ended.FinishedAt.Add(-lasted))
		return pod
	}
	failed := func(o *observed) {
		o.job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(now.Add(-10 * time.Second))}}
	}
	templated := func(o *observed) {
		o.job.Annotations = map[string]string{v1alpha1.AnnotationTemplate: desired.ProbeTemplateDigest(newEnvironment())}
	}
	podRefused := func(o *observed) {
		o.podRefused = problem.Problem{Code: "CreateRefused", Evidence: "exceeded quota"}
	}
	jobRefused := func(code problem.Code, generation int64, since time.Duration) func(*observed) {
		return func(o *observed) {
			o.refused = refusal.Try{Problem: problem.Problem{Code: code, Evidence: "w"}, Generation: generation,
				At: now.Add(-since)}
		}
	}
	type reported struct {
		Ready   string
		Found   bool
		Probe   int32
		Deletes int
		Requeue time.Duration
	}
	initFailed := probePod(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}})
	initFailed.Status.Phase = corev1.PodFailed
	initFailed.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "fetch",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
	cases := map[string]struct {
		env  *v1alpha1.RewardEnvironment
		seen observed
		want reported
	}{
		"a new environment is probed": {newEnvironment(), seen(0, nil),
			reported{Ready: "Unknown Probing", Probe: 1}},
		"a running probe continues": {newEnvironment(), seen(1, running), reported{Ready: "Unknown Probing"}},
		"a probe without a pod continues": {newEnvironment(), seen(1, nil),
			reported{Ready: "Unknown Probing", Requeue: lookInterval}},
		"a pod whose spec has changed": {newEnvironment(
			func(e *v1alpha1.RewardEnvironment) { e.Spec.Pod.Image = "x" }), seen(1, noImage(0), templated),
			reported{Ready: "Unknown Probing", Probe: 2, Deletes: 1}},
		"a refused pod": {newEnvironment(), seen(1, nil, podRefused),
			reported{Ready: "False ProbeNotStarting", Requeue: lookInterval}},
		"a refused pod until the deadline": {newEnvironment(), seen(1, nil, podRefused, failed),
			reported{Ready: "False ProbeNotStarting", Probe: 2, Deletes: 1}},
		"a refused Job": {newEnvironment(),
			seen(0, nil, jobRefused("CreateRefused", 2, 15*time.Second)), reported{Ready: "False ProbeNotStarting",
				Requeue: 30 * time.Second}},
		"a refused Job after a while": {newEnvironment(),
			seen(0, nil, jobRefused("CreateRefused", 2, 45*time.Second)), reported{Ready: "False ProbeNotStarting", Probe: 1}},
		"a Job that is not valid": {newEnvironment(), seen(0, nil, jobRefused("SpecRefused", 2, time.Hour)),
			reported{Ready: "False ProbeNotStarting"}},
		"a Job that was not valid": {newEnvironment(), seen(0, nil, jobRefused("SpecRefused", 1, time.Hour)),
			reported{Ready: "Unknown Probing", Probe: 1}},
		"a probe that cannot start": {newEnvironment(), seen(1, noImage(15*time.Second)),
			reported{Ready: "False ProbeNotStarting", Requeue: 30 * time.Second}},
		"a missing image is pulled for another pod": {newEnvironment(), seen(1, noImage(45*time.Second)),
			reported{Ready: "False ProbeNotStarting", Probe: 2, Deletes: 1}},
		"a good result": {newEnvironment(), seen(1, terminatedPod(good, 0)),
			reported{Ready: "True Probed", Found: true}},
		"a result that stays bad": {newEnvironment(),
			seen(1, terminatedPod(`{"ok":false,"reason":"Invalid","message":"m"}`, 0)), reported{Ready: "False SpecInvalid"}},
		"a result that may get better": {newEnvironment(),
			seen(1, terminatedPod(`{"ok":false,"reason":"EnvironmentFault","message":"m"}`, 20*time.Second)),
			reported{Ready: "False Unavailable", Requeue: 25 * time.Second}},
		"an unavailable judge is tried again": {newEnvironment(),
			seen(1, terminatedPod(`{"ok":false,"reason":"JudgeFault","message":"m"}`, time.Minute)),
			reported{Ready: "False Unavailable", Probe: 2, Deletes: 1}},
		"the time between pods counts": {newEnvironment(),
			seen(2, ran(terminatedPod(`{"ok":false,"reason":"JudgeFault","message":"m"}`, 0), 20*time.Second)),
			reported{Ready: "False Unavailable", Requeue: 25 * time.Second}},
		"a long probe is followed by a pause": {newEnvironment(),
			seen(2, ran(terminatedPod(`{"ok":false,"reason":"JudgeFault","message":"m"}`, 0), time.Hour)),
			reported{Ready: "False Unavailable", Requeue: 10 * time.Second}},
		"a node's clock is behind": {newEnvironment(),
			seen(2, terminatedPod(`{"ok":false,"reason":"JudgeFault","message":"m"}`, time.Hour), startedBefore(20*time.Second)),
			reported{Ready: "False Unavailable", Requeue: 25 * time.Second}},
		"a reason of another build": {newEnvironment(),
			seen(20, terminatedPod(`{"ok":false,"reason":"NoMoon","message":"m"}`, 0)),
			reported{Ready: "False UnknownProblem", Requeue: 45 * time.Second}},
		"many tries are as far apart": {newEnvironment(), seen(20, terminatedPod(`{"ok":false,"reason":"NoTasks"}`, 0)),
			reported{Ready: "False Unavailable", Requeue: 45 * time.Second}},
		"bad data that are read quickly": {newEnvironment(),
			seen(20, ran(terminatedPod(`{"ok":false,"reason":"DataInvalid","message":"m"}`, 0), 5*time.Second)),
			reported{Ready: "False DataInvalid", Requeue: 40 * time.Second}},
		"bad data that take long to read": {newEnvironment(),
			seen(20, ran(terminatedPod(`{"ok":false,"reason":"DataInvalid","message":"m"}`, 0), 5*time.Minute)),
			reported{Ready: "False DataInvalid", Requeue: 5 * time.Minute}},
		"no result": {newEnvironment(), seen(1, terminatedPod("panic: oh", 0)),
			reported{Ready: "False ProbeFailed", Requeue: 45 * time.Second}},
		"a Job that failed without a pod": {newEnvironment(), seen(1, nil, failed),
			reported{Ready: "False ProbeFailed", Requeue: 35 * time.Second}},
		"an init container that failed": {newEnvironment(), seen(1, initFailed, failed),
			reported{Ready: "False ProbeNotStarting", Requeue: 35 * time.Second}},
		"an answer stays": {newEnvironment(ready("True", "Probed", 2)), seen(1, terminatedPod(good, 0)),
			reported{}},
		"an answer stays without the Job": {newEnvironment(ready("True", "Probed", 2)), seen(0, nil), reported{}},
		"a bad answer stays":              {newEnvironment(ready("False", "SpecInvalid", 2)), seen(0, nil), reported{}},
		"code that is missing": {newEnvironment(), seen(0, nil, func(o *observed) {
			o.unreadable = &problem.Problem{Code: problem.CodeUnavailable, Evidence: "w"}
		}), reported{Ready: "False Unavailable"}},
		"code that was probed stays": {newEnvironment(ready("True", "Probed", 2), hasCode("1")), seen(0, nil, readsCode("1")),
			reported{}},
		"code that has changed is probed": {newEnvironment(ready("True", "Probed", 2), hasCode("1")),
			seen(0, nil, readsCode("2")), reported{Ready: "Unknown Probing", Probe: 1}},
		"code that was deleted is told": {newEnvironment(ready("True", "Probed", 2), hasCode("1")),
			seen(0, nil, func(o *observed) {
				o.unreadable = &problem.Problem{Code: problem.CodeUnavailable, Evidence: "w"}
			}), reported{Ready: "False Unavailable"}},
		"code that is there again": {newEnvironment(ready("False", "Unavailable", 2), hasCode("1")),
			seen(0, nil, readsCode("1")), reported{Ready: "Unknown Probing", Probe: 1}},
		"another generation is probed": {newEnvironment(ready("True", "Probed", 1)), seen(0, nil),
			reported{Ready: "Unknown Probing", Probe: 1}},
		"an empty spec is not probed": {newEnvironment(),
			seen(0, nil, func(o *observed) { o.definition = contract.Definition{} }), reported{Ready: "False SpecInvalid"}},
		"probes of earlier definitions are deleted": {newEnvironment(), seen(1, running, func(o *observed) {
			o.others = []*batchv1.Job{{}, {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}}
		}), reported{Ready: "Unknown Probing", Deletes: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := makePlan(tc.env, tc.seen, now)
			got := reported{Found: p.found != nil, Probe: p.probe, Deletes: len(p.deletes), Requeue: p.requeue}
			if p.ready.Type != "" {
				got.Ready = string(p.ready.Status) + " " + p.ready.Reason
				if p.ready.Message == "" && tc.seen.try < 20 {
					t.Errorf("the condition has no message: got %+v at try %d", p.ready, tc.seen.try)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestComputeStatus(t *testing.T) {
	env := newEnvironment()
	got := computeStatus(env, makePlan(env, seen(1, terminatedPod(good, time.Second)), now), now)
	at := metav1.NewTime(now.Add(-time.Second))
	want := v1alpha1.RewardEnvironmentStatus{
		ObservedGeneration: new(int64(2)), ProbedGeneration: new(int64(2)), Digest: got.Digest, Tasks: new(int64(10)),
		CanaryReward: new(1.0), ProbeTime: &at, DeclaresTools: new(true),
		Splits: []v1alpha1.SplitStatus{{Name: "test", Tasks: new(int64(1))}, {Name: "train", Tasks: new(int64(9))}},
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: "True", Reason: "Probed", Message: "The probe found tasks and graded a reply.",
			ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(now),
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if len(got.Digest) != 64 {
		t.Errorf("digest = %q", got.Digest)
	}
	warned := strings.Replace(good, `{`, `{"message":"2 rows are odd.",`, 1)
	again := computeStatus(env, makePlan(env, seen(1, terminatedPod(warned, 0)), now), now)
	if again.Digest != got.Digest ||
		again.Conditions[0].Message != "The probe found tasks and graded a reply. Warning: 2 rows are odd." {
		t.Errorf("with a warning the status is %+v", again)
	}
	other := strings.Replace(good, `"tasks":9`, `"tasks":8`, 1)
	if again := computeStatus(env, makePlan(env, seen(1, terminatedPod(other, 0)), now), now); again.Digest == got.Digest {
		t.Errorf("other tasks have the same digest: got %v for both", again.Digest)
	}
	env.Status = got
	if diff := cmp.Diff(got, computeStatus(env, makePlan(env, seen(1, terminatedPod(good, 0)), now),
		now.Add(time.Hour))); diff != "" {
		t.Errorf("a second look changes the status:\n%s", diff)
	}
}

func TestFailureStaysWhileProbeIsRetried(t *testing.T) {
	running := probePod(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	for reason, want := range map[string]string{"Unavailable": "False Unavailable", "ProbeFailed": "False ProbeFailed",
		"ProbeNotStarting": "Unknown Probing"} {
		env := newEnvironment(ready("False", reason, 2))
		got := computeStatus(env, makePlan(env, seen(2, running), now), now).Conditions[0]
		if have := string(got.Status) + " " + got.Reason; have != want {
			t.Errorf("after %s: %s, want %s", reason, have, want)
		}
	}
}

func TestTooManySplits(t *testing.T) {
	result := contract.ProbeResult{OK: true, Splits: make([]contract.ProbeSplit, 33)}
	if _, err := environmentDigest(contract.Definition{}, result, "", nil); err == nil {
		t.Error("more splits were taken than a status has room for")
	}
}

// TestPackagesArePinned checks that the wheels of a probe become part of the status and the digest, and that a message
// that names no wheel is refused.
func TestPackagesArePinned(t *testing.T) {
	wheel := func(digit string) string { return "one==1.0 " + strings.Repeat(digit, 43) + "=" }
	digests := map[string]bool{}
	for name, tc := range map[string]struct {
		message, want string
	}{
		"a wheel":         {wheel("A"), "True Probed"},
		"another wheel":   {wheel("B"), "True Probed"},
		"no wheel at all": {"--index-url=https://evil.example", "False PodInvalid"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := terminatedPod(good, time.Second)
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: desired.PackagesContainer,
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: tc.message}}}}
			env := newEnvironment()
			next := computeStatus(env, makePlan(env, seen(1, pod, func(o *observed) {
				o.definition.Execution = &contract.Execution{FunctionImage: environment.FunctionImage{
					Requirements: []environment.Requirement{"one==1.0"}}}
			}), now), now)
			c := next.Conditions[0]
			if have := string(c.Status) + " " + c.Reason; have != tc.want {
				t.Errorf("the condition is %s (%s), want %s", have, c.Message, tc.want)
			}
			if c.Status != metav1.ConditionTrue {
				return
			}
			if diff := cmp.Diff([]string{tc.message}, next.Packages); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
			if digests[next.Digest] {
				t.Error("other wheels give the same digest")
			}
			digests[next.Digest] = true
		})
	}
}

func TestNewEvent(t *testing.T) {
	before, after := newEnvironment().Status, newEnvironment(ready("True", "Probed", 2)).Status
	if all := newEvents(&before, &after); len(all) != 1 || all[0].Type != corev1.EventTypeNormal ||
		all[0].Reason != "Probed" {
		t.Errorf("newEvents = %+v, want Probed", all)
	}
	if all := newEvents(&after, &after); len(all) != 0 {
		t.Errorf("newEvents without a change = %+v", all)
	}
	bad := newEnvironment(ready("False", "Unavailable", 2)).Status
	if all := newEvents(&after, &bad); len(all) != 1 || all[0].Type != corev1.EventTypeWarning {
		t.Errorf("newEvents = %+v, want a warning", all)
	}
}

// TestRefusalStaysAfterManagerRestart checks that a new manager, which has not tried to create the probe yet, keeps
// the refusal that an earlier manager reported.
func TestRefusalStaysAfterManagerRestart(t *testing.T) {
	env := newEnvironment(ready("False", "ProbeNotStarting", 2))
	for name, o := range map[string]observed{"no Job": seen(0, nil), "a Job without a pod": seen(1, nil)} {
		next := computeStatus(env, makePlan(env, o, now), now)
		if c := next.Conditions[0]; c.Reason != "ProbeNotStarting" || c.Message != "as before" {
			t.Errorf("%s: Ready says %s %s %q, want it as before", name, c.Status, c.Reason, c.Message)
		}
	}
	running := probePod(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	if c := computeStatus(env, makePlan(env, seen(1, running), now), now).Conditions[0]; c.Reason != "Probing" {
		t.Errorf("a probe that runs: Ready says %s, want Probing", c.Reason)
	}
}

// TestImageOfModules checks that the status and the digest follow the image of the probe's pod.
func TestImageOfModules(t *testing.T) {
	env := newEnvironment(func(env *v1alpha1.RewardEnvironment) {
		env.Spec.Reward.ExactMatch = nil
		env.Spec.Reward.Python = &environment.Python{Source: environment.Source{Module: "rewards"}}
	})
	digests := map[string]bool{}
	for _, image := range []string{"own@sha256:aa", "own@sha256:bb", "sha256:cc"} {
		pod := terminatedPod(good, 0)
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "install-runner", ImageID: "operator@sha256:dd"},
			{Name: desired.FunctionContainer("env"), ImageID: image}}
		got := computeStatus(env, makePlan(env, seen(1, pod, func(o *observed) {
			o.definition = desired.Definition(env.Spec)
		}), now), now)
		if got.Image != image {
			t.Errorf("image %q, want %q", got.Image, image)
		}
		digests[got.Digest] = true
	}
	if len(digests) != 3 {
		t.Errorf("three images have %d digests", len(digests))
	}
}

// TestAuthorityOfAServer checks that the message says how to trust the authority of a server that the environment
// uses.
func TestAuthorityOfAServer(t *testing.T) {
	message := func(code problem.Code, words string) string {
		pod := terminatedPod(`{"ok":false,"reason":"`+string(code)+`","message":"`+words+`"}`, 0)
		return makePlan(newEnvironment(), seen(1, pod), now).ready.Message
	}
	got := message(problem.EnvironmentAuthorityUnknown, "requesting data.internal/a.jsonl: x509")
	for _, words := range []string{"data.internal", "volumeMounts", "SSL_CERT_FILE", "podOverrides", "probed again"} {
		if !strings.Contains(got, words) {
			t.Errorf("the message is %q, want %q", got, words)
		}
	}
	if got := message(problem.EnvironmentFault, "connection refused"); strings.Contains(got, "SSL_CERT_FILE") {
		t.Errorf("the message is %q", got)
	}
}
