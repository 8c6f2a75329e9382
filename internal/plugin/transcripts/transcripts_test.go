// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcripts

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

func newRun() *v1alpha1.TrainingRun {
	return &v1alpha1.TrainingRun{
		ObjectMeta: metav1.ObjectMeta{Name: "arithmetic", Namespace: "default", UID: "uid-1"},
		Spec:       v1alpha1.TrainingRunSpec{Artifacts: &v1alpha1.Artifacts{ClaimName: "runs"}},
	}
}

func step() transcript.Step {
	return transcript.Step{Step: 3, Lineage: "abc",
		Groups: []transcript.Group{{Slot: 9, Environment: "sums", Outcome: "Usable", Episodes: []transcript.Episode{{
			Outcome: "Usable", Reward: 1, StopReason: "stop",
			Conversations: []transcript.Conversation{{Messages: []transcript.Message{
				{Role: "user", Text: "What is <script>1 + 1?"}, {Role: "assistant", Text: "2\x1b[31m", Reply: 1},
			}}},
		}}}}}
}

// TestPrintHasRewardsOfMessages prints what the environment gave for results of tools.
func TestPrintHasRewardsOfMessages(t *testing.T) {
	var out strings.Builder
	Print(&out, transcript.Step{Groups: []transcript.Group{
		{Episodes: []transcript.Episode{{Conversations: []transcript.Conversation{{
			Messages: []transcript.Message{
				{Role: "tool", Name: "look", Text: "1 and 2", Reward: new(0.25)}, {Role: "user", Text: "Go on."},
				{Role: "tool", Name: "submit", Text: "Thank you.", Reward: new(0.0), Finished: true},
				{Role: "tool", Name: "end", Text: "Bye.", Finished: true},
			},
		}}}}}}})
	_, got, _ := strings.Cut(out.String(), "    tool look")
	want := ": 1 and 2\n    (reward 0.25)\n    user: Go on.\n    tool submit: Thank you.\n    (reward 0; the " +
		"environment ended the episode)\n" +
		"    tool end: Bye.\n    (the environment ended the episode)\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// fixture is a cluster that has the run's file of an attempt and a learner's pod, and that runs pods as change says.
type fixture struct {
	reader  podReader
	created []corev1.Pod
	reports []string
}

func newFixture(t *testing.T, change func(*corev1.Pod), log string) *fixture {
	t.Helper()
	f := &fixture{}
	labels := map[string]string{v1alpha1.LabelRunUID: "uid-1", v1alpha1.LabelRole: v1alpha1.RoleLearner,
		v1alpha1.LabelAttempt: "2"}
	file := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "file", Namespace: "default", Labels: labels,
		Annotations: map[string]string{v1alpha1.AnnotationPods: `{"Image":"operator:2"}`}}}
	learner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "learner", Namespace: "default", Labels: labels},
		Spec: corev1.PodSpec{NodeName: "node-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	f.reader = podReader{
		kube: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(file,
			learner).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				pod := object.(*corev1.Pod)
				f.created = append(f.created, *pod.DeepCopy())
				if change != nil {
					change(pod)
				}
				return c.Create(ctx, pod, options...)
			},
		}).Build(),
		logs: func(context.Context, string, string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(log)), nil
		},
		report: func(format string, args ...any) { f.reports = append(f.reports, format) },
		period: time.Millisecond, patience: time.Minute,
	}
	return f
}

// expectNoPod fails if the pod that was created still exists.
func (f *fixture) expectNoPod(t *testing.T) {
	t.Helper()
	for _, pod := range f.created {
		err := f.reader.kube.Get(context.Background(), client.ObjectKeyFromObject(&pod), &corev1.Pod{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("pod %s is not deleted: %v", pod.Name, err)
		}
	}
}

func ended(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }

func delivered(t *testing.T, d delivery.Delivery) string {
	t.Helper()
	var log bytes.Buffer
	if err := delivery.Write(&log, d); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

func TestReadStartsAPodBesideTheLearnerAndDeletesIt(t *testing.T) {
	encoded, err := json.Marshal(step())
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, ended, delivered(t, delivery.Delivery{Steps: []int64{3}, Transcript: encoded}))
	found, err := f.reader.read(t.Context(), newRun(), question{step: 3})
	if err != nil {
		t.Fatal(err)
	}
	if decoded, err := chosen(newRun(), 3, found); err != nil || decoded.Lineage != "abc" {
		t.Errorf("the transcript is %+v, %v", decoded, err)
	}
	f.expectNoPod(t)
	spec := f.created[0].Spec
	want := []string{"transcripts", "--run-uid=uid-1", "--dir=/artifacts", "--step=3"}
	if diff := cmp.Diff(want, spec.Containers[0].Args); diff != "" || spec.Containers[0].Image != "operator:2" {
		t.Errorf("image %s, arguments (-want +got):\n%s", spec.Containers[0].Image, diff)
	}
	node := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
	if node != "node-1" {
		t.Errorf("the pod runs on %s, want the learner's node", node)
	}
}

func TestReadReportsWhatToDo(t *testing.T) {
	unschedulable := func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason:  corev1.PodReasonUnschedulable,
			Message: `persistentvolumeclaim "runs" not found`}}
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		log    string
		adjust func(*fixture)
		want   string
	}{
		"old image": {change: ended, log: `{"level":"ERROR","msg":"learner cannot start"}`,
			want: "operator:2 does not read transcripts: upgrade"},
		"problem": {change: ended, log: delivered(t, delivery.Delivery{Problem: "access denied"}), want: "access denied"},
		"no start": {change: unschedulable, adjust: func(f *fixture) { f.reader.patience = 5 * time.Millisecond },
			want: "artifacts.claimName"},
		"no run file": {adjust: func(f *fixture) {
			f.reader.kube = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
		}, want: "--image"},
		"no permission": {adjust: func(f *fixture) {
			f.reader.kube = interceptor.NewClient(f.reader.kube.(client.WithWatch), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "reader", nil)
				},
			})
		}, want: "role edit in namespace default"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, tc.change, tc.log)
			if tc.adjust != nil {
				tc.adjust(f)
			}
			_, err := f.reader.read(t.Context(), newRun(), question{step: newest})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want it to have %q", err, tc.want)
			}
			f.expectNoPod(t)
		})
	}
}

func TestReadDeletesThePodOfAnInterruptedCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := newFixture(t, func(*corev1.Pod) { cancel() }, "")
	if _, err := f.reader.read(ctx, newRun(), question{step: newest}); err == nil {
		t.Error("an interrupted command succeeds")
	}
	f.expectNoPod(t)
}

func TestShow(t *testing.T) {
	encoded, err := json.Marshal(step())
	if err != nil {
		t.Fatal(err)
	}
	show := func(f flags) string {
		var stdout bytes.Buffer
		if err := f.show(t.Context(), cli.IO{Stdout: &stdout}, "arithmetic", step(), encoded); err != nil {
			t.Fatal(err)
		}
		return stdout.String()
	}
	format := func(f output.Format) *output.Format { return &f }
	want := `step 3, sampled by version 0

slot 9  environment sums  Usable
  episode 0  reward 1  stop reason stop
    user: What is <script>1 + 1?
    assistant: 2�[31m
`
	if diff := cmp.Diff(want, show(flags{format: format(output.Table)})); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if got := show(flags{format: format(output.Plain)}); got != strings.Join(episodeHeader, "\t")+
		"\n3\t9\tsums\t0\t1\tUsable\tstop\n" {
		t.Errorf("plain lines are %q", got)
	}
	var decoded transcript.Step
	if err := json.Unmarshal([]byte(show(flags{format: format(output.JSON)})), &decoded); err != nil ||
		decoded.Groups[0].Slot != 9 {
		t.Errorf("JSON is %+v, %v", decoded, err)
	}
	dir := t.TempDir()
	for name, want := range map[string]string{"a.html": "&lt;script&gt;1", "a.json": `"lineage":"abc"`} {
		file := filepath.Join(dir, name)
		if got := show(flags{save: file}); got != file+"\n" {
			t.Errorf("it prints %q", got)
		}
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s lacks %q: %v", name, want, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	run := newRun()
	for want, f := range map[string]flags{"first step is 1": {step: 0}, "leave out --step": {step: 3, list: true},
		".html or .json": {step: newest, save: "x.txt"}} {
		if err := f.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want it to have %q", err, want)
		}
	}
	if _, err := chosen(run, 9, delivery.Delivery{Steps: []int64{1, 2, 3, 7, 10, 11}}); err == nil ||
		!strings.Contains(err.Error(), "choose one of 1-3, 7, 10-11") {
		t.Errorf("a step that has none gives %v", err)
	}
	if _, err := chosen(run, newest, delivery.Delivery{}); err == nil || !strings.Contains(err.Error(),
		"kubectl tinker why") {
		t.Errorf("a run that has none gives %v", err)
	}
	run.Spec.Artifacts.GroupsPerStep = new(int32(0))
	if err := written(run); err == nil || !strings.Contains(err.Error(), "groupsPerStep is 0") {
		t.Errorf("without groups the error is %v", err)
	}
	run.Spec.Artifacts = nil
	if err := written(run); err == nil || !strings.Contains(err.Error(), "set spec.artifacts") {
		t.Errorf("without artifacts the error is %v", err)
	}
}

// TestRefusalsOfARunThatIsOver gives no advice that a run which is over cannot follow.
func TestRefusalsOfARunThatIsOver(t *testing.T) {
	run := newRun()
	run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}}
	_, none := chosen(run, newest, delivery.Delivery{})
	run.Spec.Artifacts = nil
	for want, err := range map[string]error{"is over: none of its steps": none, "but in another run": written(run)} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "resume") ||
			strings.Contains(err.Error(), "waits for") {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// TestPrintCleansWhatEnvironmentsChoose prints a role that an environment server chose: no escape sequence reaches the
// terminal.
func TestPrintCleansWhatEnvironmentsChoose(t *testing.T) {
	hostile := step()
	conversation := &hostile.Groups[0].Episodes[0].Conversations[0]
	conversation.Messages[0].Role = "user\x1b]0;title\x07"
	var out strings.Builder
	Print(&out, hostile)
	if strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Errorf("the terminal gets %q", out.String())
	}
}
