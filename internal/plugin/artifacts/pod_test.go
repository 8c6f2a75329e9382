// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"context"
	"io"
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
	"github.com/tinker-operator/tinker-operator/internal/plugin/runpod"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

func newRun() *v1alpha1.TrainingRun {
	return &v1alpha1.TrainingRun{
		ObjectMeta: metav1.ObjectMeta{Name: "arithmetic", Namespace: "default", UID: "uid-1"},
		Spec:       v1alpha1.TrainingRunSpec{Artifacts: &v1alpha1.Artifacts{ClaimName: "runs"}},
	}
}

// fixture is a cluster with the run file of an attempt and a learner's pod. Pods are edited by newFixture's change
// before they are created.
type fixture struct {
	reader  Reader
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
	f.reader = Reader{Pods: runpod.Pods{
		Kube: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(file,
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
		Logs: func(context.Context, string, string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(log)), nil
		},
		Report: func(format string, args ...any) { f.reports = append(f.reports, format) },
		Period: time.Millisecond, Patience: time.Minute, Task: "reads the artifacts",
	}}
	return f
}

// expectNoPod fails if the pod that was created still exists.
func (f *fixture) expectNoPod(t *testing.T) {
	t.Helper()
	for _, pod := range f.created {
		err := f.reader.Kube.Get(context.Background(), client.ObjectKeyFromObject(&pod), &corev1.Pod{})
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
	f := newFixture(t, ended, delivered(t, delivery.Delivery{Steps: []int64{3}}))
	found, err := f.reader.Ask(t.Context(), newRun(), []string{"--step=3"})
	if err != nil || len(found.Steps) != 1 {
		t.Errorf("the answer is %+v, %v", found, err)
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
			want: "operator:2 does not read these artifacts: upgrade"},
		"problem": {change: ended, log: delivered(t, delivery.Delivery{Problem: "access denied"}), want: "access denied"},
		"no start": {change: unschedulable, adjust: func(f *fixture) { f.reader.Patience = 5 * time.Millisecond },
			want: "artifacts.claimName"},
		"no run file": {adjust: func(f *fixture) {
			f.reader.Kube = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
		}, want: "--image"},
		"no permission": {adjust: func(f *fixture) {
			f.reader.Kube = interceptor.NewClient(f.reader.Kube.(client.WithWatch), interceptor.Funcs{
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
			_, err := f.reader.Ask(t.Context(), newRun(), []string{"--step=-1"})
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
	if _, err := f.reader.Ask(ctx, newRun(), []string{"--step=-1"}); err == nil {
		t.Error("an interrupted command succeeds")
	}
	f.expectNoPod(t)
}
