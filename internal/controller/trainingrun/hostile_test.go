// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package trainingrun

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller/poller"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/history"
	"github.com/tinker-operator/tinker-operator/internal/plugin/manifest"
	"github.com/tinker-operator/tinker-operator/internal/status"
)

const (
	// beat is the time between two heartbeats to a learner. With the usual 2 s the test would take seven times as long.
	beat = 14 * time.Second
	// kubeletEvery is the interval at which the test changes the phases of pods.
	kubeletEvery = time.Minute
	// hangLimit is the time that a reconcile has by the machine's own clock before the test gives up.
	hangLimit = time.Minute
)

// hostileWorld is a namespace with an honest run and a run whose owner has a hostile image: the learner may answer
// anything, and its pod may end with anything. The manager's client, its poller and its Reconciler are the real ones;
// the API server is a fake one with the schema of a TrainingRun.
type hostileWorld struct {
	t      *testing.T
	random *rand.Rand
	kube   client.WithWatch
	poller *poller.Poller
	r      *Reconciler
	// reasons are the reasons that the API declares.
	reasons map[string]bool
	// runs counts the hostile runs: the owner deletes a run that has ended, and creates the next one.
	runs int
	// due is the time at which each run is to be reconciled.
	due map[types.NamespacedName]time.Time
	// step is the step of the honest learner.
	step atomic.Int64
	// These count the manager's calls.
	heartbeats, reconciles, statusWrites, historyWrites, events atomic.Int64
}

// TestHostileLearners simulates twenty minutes, or HOSTILE_HOURS hours; `make chaos` sets 24. HOSTILE_SEED sets
// another seed.
func TestHostileLearners(t *testing.T) {
	hours, seed := number(t, "HOSTILE_HOURS", 0), number(t, "HOSTILE_SEED", 1)
	length := max(20*time.Minute, time.Duration(hours)*time.Hour)
	var reconciles atomic.Int64
	done := make(chan struct{})
	defer close(done)
	go failHanging(&reconciles, done)
	synctest.Test(t, func(t *testing.T) {
		w := newHostileWorld(t, uint64(seed))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = w.poller.Start(ctx) }()
		begin := time.Now()
		for time.Since(begin) < length {
			w.kubelet(ctx)
			w.reconcileUntil(ctx, time.Now().Add(kubeletEvery), &reconciles)
			w.checkHonest(ctx, time.Since(begin))
		}
		w.checkCounts(hours)
		cancel()
		synctest.Wait()
	})
}

// number returns the number in an environment variable, or usual if the variable is not set.
func number(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// failHanging ends the test program if no reconcile returns within hangLimit. It runs outside of the simulated time.
func failHanging(reconciles *atomic.Int64, done chan struct{}) {
	for before := int64(-1); ; {
		select {
		case <-done:
			return
		case <-time.After(hangLimit):
		}
		now := reconciles.Load()
		if now == before {
			panic(fmt.Sprintf("no reconcile has returned for %s, after %d", hangLimit, now))
		}
		before = now
	}
}

func newHostileWorld(t *testing.T, seed uint64) *hostileWorld {
	w := &hostileWorld{t: t, random: rand.New(&locked{source: rand.NewPCG(seed, 0)}), reasons: closedReasons(t),
		due: map[types.NamespacedName]time.Time{}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	env := readyEnvironment()
	env.Namespace, env.Status.Digest = "n", strings.Repeat("ab", 32)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	// The usual tracker of the fake client also tracks managed fields, which takes most of the time.
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	w.kube = fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).
		WithObjects(env, namespace, w.newRun("honest")).
		WithStatusSubresource(&v1alpha1.TrainingRun{}).WithInterceptorFuncs(w.apiServer()).Build()
	w.poller = poller.New(poller.Config{Every: beat, Timeout: 5 * time.Second, Now: time.Now, Post: w.post})
	w.r = New(Reconciler{Client: w.kube, Live: w.kube, Poller: w.poller, Recorder: w, Now: time.Now,
		ManagerKey: bytes.Repeat([]byte{1}, 32),
		Settings:   desired.Settings{DefaultBaseURL: "http://tinkersim", Image: "image"}})
	w.due[types.NamespacedName{Namespace: "n", Name: "honest"}] = time.Now()
	return w
}

// locked is a source of random numbers for learners that answer at the same time.
type locked struct {
	mu     sync.Mutex
	source rand.Source
}

func (l *locked) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Uint64()
}

// newRun returns a run as the API server would have it.
func (w *hostileWorld) newRun(name string) *v1alpha1.TrainingRun {
	return newRun(func(run *v1alpha1.TrainingRun) {
		run.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "TrainingRun"}
		run.Name, run.UID, run.CreationTimestamp = name, types.UID(name+"-0123456789"), metav1.Now()
		run.Spec.Model.Renderer = &v1alpha1.Renderer{Name: "role_colon"}
		run.Spec.Model.Tokenizer = &v1alpha1.Tokenizer{Repository: "own/model"}
		run.Spec.Algorithm.Steps = 1_000_000
	})
}

// apiServer counts writes, and refuses objects that the API server would refuse.
func (w *hostileWorld) apiServer() interceptor.Funcs {
	return interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			w.statusWrites.Add(1)
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
			if err == nil {
				content["apiVersion"], content["kind"] = v1alpha1.SchemeGroupVersion.String(), "TrainingRun"
				err = manifest.Check(ctx, &unstructured.Unstructured{Object: content})
			}
			if err != nil {
				w.t.Errorf("the API server refuses the status of %s: %v", object.GetName(), err)
				return apierrors.NewBadRequest(err.Error())
			}
			return c.SubResource(name).Patch(ctx, object, patch, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			object.SetUID(types.UID(fmt.Sprintf("uid-%d", w.random.Uint64())))
			object.SetCreationTimestamp(metav1.Now())
			w.countHistory(object)
			return c.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			w.countHistory(object)
			return c.Update(ctx, object, options...)
		},
	}
}

func (w *hostileWorld) countHistory(object client.Object) {
	content, ok := object.(*corev1.ConfigMap)
	if !ok || content.Data[history.DataKey] == "" {
		return
	}
	w.historyWrites.Add(1)
	if n := len(content.Data[history.DataKey]); n > 256<<10 {
		w.t.Errorf("the history of %s has %d bytes, want at most 256 KiB", content.Name, n)
	}
}

// Eventf records an event of the manager.
func (w *hostileWorld) Eventf(_, _ runtime.Object, _, reason, action, note string, arguments ...any) {
	w.events.Add(1)
	if text := fmt.Sprintf(note, arguments...); len(text) > 1024 || reason == "" || action == "" {
		w.t.Errorf("an event has %d bytes, reason %q and action %q", len(text), reason, action)
	}
}

// reconcileUntil reconciles the runs that are due, and the runs whose learners replied, until a time.
func (w *hostileWorld) reconcileUntil(ctx context.Context, end time.Time, reconciles *atomic.Int64) {
	for {
		next := end
		for run, at := range w.due {
			if !at.After(time.Now()) {
				w.reconcile(ctx, run)
				reconciles.Add(1)
				at = w.due[run]
			}
			if at.Before(next) && !at.IsZero() {
				next = at
			}
		}
		if !time.Now().Before(end) {
			return
		}
		select {
		case changed := <-w.poller.Events():
			w.due[client.ObjectKeyFromObject(changed.Object)] = time.Now()
		case <-time.After(max(time.Until(next), time.Millisecond)):
		}
	}
}

func (w *hostileWorld) reconcile(ctx context.Context, run types.NamespacedName) {
	result, err := w.r.Reconcile(ctx, ctrl.Request{NamespacedName: run})
	if err != nil {
		w.t.Errorf("reconciling %s: %v", run.Name, err)
	}
	w.reconciles.Add(1)
	w.due[run] = time.Now().Add(24 * time.Hour)
	if result.RequeueAfter > 0 {
		w.due[run] = time.Now().Add(result.RequeueAfter)
	}
	found := &v1alpha1.TrainingRun{}
	if err := w.kube.Get(ctx, run, found); err != nil {
		if !apierrors.IsNotFound(err) {
			w.t.Fatal(err)
		}
		delete(w.due, run)
		return
	}
	encoded, err := json.Marshal(found)
	if err != nil || len(encoded) > 256<<10 {
		w.t.Errorf("%s has %d bytes (%v), want at most 256 KiB", run.Name, len(encoded), err)
	}
	if len(found.Status.Conditions) > 0 {
		if err := check(found.Status, w.reasons, found.Generation); err != nil {
			w.t.Errorf("the status of %s: %v", run.Name, err)
		}
	}
}

// kubelet makes the pods of Jobs, reports workers as ready, and plays the owner of the hostile runs.
func (w *hostileWorld) kubelet(ctx context.Context) {
	w.replaceHostileRun(ctx)
	var jobs batchv1.JobList
	if err := w.kube.List(ctx, &jobs); err != nil {
		w.t.Fatal(err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if job.Labels[v1alpha1.LabelRole] != v1alpha1.RoleLearner {
			job.Status.Active, job.Status.Ready = *job.Spec.Parallelism, job.Spec.Parallelism
			if err := w.kube.Status().Update(ctx, job); err != nil {
				w.t.Fatal(err)
			}
			continue
		}
		w.runLearner(ctx, job)
	}
}

// replaceHostileRun deletes a hostile run that has ended, with its objects, and creates the next one.
func (w *hostileWorld) replaceHostileRun(ctx context.Context) {
	name := fmt.Sprintf("hostile-%d", w.runs)
	key := types.NamespacedName{Namespace: "n", Name: name}
	run := &v1alpha1.TrainingRun{}
	err := w.kube.Get(ctx, key, run)
	if err == nil && !status.RunFinished(run) {
		return
	}
	if err == nil {
		for _, kind := range []client.Object{&batchv1.Job{}, &corev1.Pod{}, &corev1.ConfigMap{}, &corev1.Service{},
			&corev1.Secret{}} {
			if err := w.kube.DeleteAllOf(ctx, kind, client.InNamespace("n"),
				client.MatchingLabels{v1alpha1.LabelRun: name}); err != nil {
				w.t.Fatal(err)
			}
		}
		if err := w.kube.Delete(ctx, run); err != nil {
			w.t.Fatal(err)
		}
		w.due[key] = time.Now()
	}
	w.runs++
	name = fmt.Sprintf("hostile-%d", w.runs)
	if err := w.kube.Create(ctx, w.newRun(name)); err != nil {
		w.t.Fatal(err)
	}
	w.due[types.NamespacedName{Namespace: "n", Name: name}] = time.Now()
}

// runLearner makes the pod of a learner's Job, or changes the pod of a hostile one.
func (w *hostileWorld) runLearner(ctx context.Context, job *batchv1.Job) {
	key := types.NamespacedName{Namespace: "n", Name: job.Name + "-pod"}
	pod := newPod()
	err := w.kube.Get(ctx, key, pod)
	hostile := strings.HasPrefix(job.Labels[v1alpha1.LabelRun], "hostile")
	switch {
	case apierrors.IsNotFound(err):
		pod = newPod()
		pod.Name, pod.Labels = key.Name, job.Spec.Template.Labels
		owner := metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
		pod.Status.PodIP = job.Labels[v1alpha1.LabelRun]
		pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.Now()
		if err := w.kube.Create(ctx, pod); err != nil {
			w.t.Fatal(err)
		}
	case err != nil:
		w.t.Fatal(err)
	case hostile && pod.Status.Phase == corev1.PodRunning && w.random.IntN(15) == 0:
		w.end(pod)
		if err := w.kube.Status().Update(ctx, pod); err != nil {
			w.t.Fatal(err)
		}
	default:
		return
	}
	w.due[types.NamespacedName{Namespace: "n", Name: job.Labels[v1alpha1.LabelRun]}] = time.Now()
}

// checkHonest fails unless the honest run trains as if nothing had happened.
func (w *hostileWorld) checkHonest(ctx context.Context, after time.Duration) {
	run := &v1alpha1.TrainingRun{}
	if err := w.kube.Get(ctx, types.NamespacedName{Namespace: "n", Name: "honest"}, run); err != nil {
		w.t.Fatal(err)
	}
	behind := w.step.Load()
	if run.Status.Step != nil {
		behind -= *run.Status.Step
	}
	if after < 5*time.Minute {
		return // The run is starting.
	}
	if behind > 8 || !meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionReady) ||
		len(run.Status.Attempts) != 1 {
		w.t.Errorf("after %s the honest run is %d steps behind, has %d attempts and is %s", after, behind,
			len(run.Status.Attempts), run.Status.State)
	}
}

// checkCounts fails if the hostile runs have made the manager do more than their heartbeats allow.
func (w *hostileWorld) checkCounts(hours int) {
	w.t.Logf("%d hostile runs, %d heartbeats, %d reconciles, %d writes of statuses, %d of histories, %d events", w.runs,
		w.heartbeats.Load(), w.reconciles.Load(), w.statusWrites.Load(), w.historyWrites.Load(), w.events.Load())
	beats := w.heartbeats.Load()
	for what, tc := range map[string]struct{ got, limit int64 }{
		"reconciles":          {w.reconciles.Load(), 4 * beats},
		"writes of statuses":  {w.statusWrites.Load(), 2 * beats},
		"writes of histories": {w.historyWrites.Load(), beats},
		"events":              {w.events.Load(), 2 * beats},
	} {
		if tc.got > tc.limit {
			w.t.Errorf("%d %s in %d heartbeats, want at most %d", tc.got, what, beats, tc.limit)
		}
	}
	if hours > 1 && w.runs < 2 {
		w.t.Errorf("%d runs in %v hours, want at least 2", w.runs, hours)
	}
}
