// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/learner/relay"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/runpod"
	"github.com/tinker-operator/tinker-operator/internal/serving"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/archive"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// brokered is a run that names a TinkerEndpoint, whose broker stands before a simulator.
type brokered struct {
	broker *broker.Broker
	run    *v1alpha1.TrainingRun
	saved  v1alpha1.Checkpoint
	// url is the address of the relay, which runs in the pods of people.
	url     string
	cluster ctrlclient.WithWatch
	pods    runpod.Pods
	created []corev1.Pod
}

// Dial implements runpod.Dialer. It connects to the relay instead of a pod's port.
func (b *brokered) Dial() (net.Conn, error) {
	return net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
}

// Close implements runpod.Dialer.
func (*brokered) Close() error { return nil }

func newBrokered(t *testing.T, publication bool) *brokered {
	t.Helper()
	tokenKey := bytes.Repeat([]byte{7}, 32)
	_, upstream := simulatortest.Serve(t, tinkersim.Options{APIKey: "tml-platform"})
	b := &brokered{run: newRun()}
	b.run.UID, b.run.Spec.Tinker = "uid", v1alpha1.Tinker{EndpointRef: &ref.Endpoint{Name: "prod"}}
	var err error
	b.broker, err = broker.Open(broker.Config{Endpoint: "prod", BaseURL: upstream, APIKey: "tml-platform",
		TokenKey: tokenKey, Dir: t.TempDir(), Publication: publication})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.broker.Close)
	b.broker.SetRuns([]broker.Run{{Owner: broker.Owner{UID: "uid", Namespace: "default"}}})
	serve := func(handler http.Handler) string {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return server.URL
	}
	at, token := serve(b.broker), contract.RunToken(tokenKey, "uid")
	b.saved = trainedAt(t, at, token)
	b.run.Status.Checkpoints = []v1alpha1.Checkpoint{b.saved}
	passing, err := relay.New(relay.Config{BaseURL: at, Token: token, HTTP: http.DefaultTransport})
	if err != nil {
		t.Fatal(err)
	}
	b.url = serve(passing)
	b.startPods()
	return b
}

// startPods makes a cluster whose pods run at once. Their ports lead to the relay.
func (b *brokered) startPods() {
	file := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "file", Namespace: "default",
		Labels: map[string]string{v1alpha1.LabelRunUID: "uid", v1alpha1.LabelRole: v1alpha1.RoleLearner,
			v1alpha1.LabelAttempt: "2"},
		Annotations: map[string]string{v1alpha1.AnnotationPods: `{"Image":"operator:2"}`,
			v1alpha1.AnnotationEndpointSecret: "token-of-the-run"}}}
	b.cluster = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(file).Build()
	b.pods = runpod.Pods{Period: time.Millisecond, Patience: time.Minute, Report: func(string, ...any) {},
		Kube: interceptor.NewClient(b.cluster, interceptor.Funcs{
			Create: func(ctx context.Context, c ctrlclient.WithWatch, object ctrlclient.Object,
				options ...ctrlclient.CreateOption) error {
				pod := object.(*corev1.Pod)
				b.created = append(b.created, *pod.DeepCopy())
				pod.Status.Phase = corev1.PodRunning
				return c.Create(ctx, pod, options...)
			}}),
		Forward: func(string, string, int) (runpod.Dialer, error) { return b, nil }}
}

// farAway connects to nothing, like a machine outside the cluster's network.
var farAway = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("no route")}
}}

// TestCheckpointsOfARunAtATinkerEndpoint downloads, publishes and deletes a checkpoint through a pod, and checks that
// the pod is deleted afterwards.
func TestCheckpointsOfARunAtATinkerEndpoint(t *testing.T) {
	b := newBrokered(t, true)
	at := throughPod(b.pods, b.run, farAway)
	if err := at.relay.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	env := cli.IO{Stdout: &stdout, Stderr: &stderr, Now: time.Now}
	folder := filepath.Join(t.TempDir(), "adapter")
	if err := (downloadFlags{folder: folder}).download(t.Context(), env, at, b.run, b.saved); err != nil {
		t.Fatalf("downloading: %v\n%s", err, stderr.String())
	}
	if _, err := os.Stat(filepath.Join(folder, archive.TensorsFile)); err != nil {
		t.Error(err)
	}
	sampleThrough(t, at, b.saved.Sampler)
	both := []target{{Step: 1, Path: b.saved.Sampler}, {Step: 1, Path: b.saved.State}}
	if _, err := apply(t, published(true), at, both); err != nil {
		t.Fatal(err)
	}
	if got := sharing(t, at); !got[b.saved.Sampler] || !got[b.saved.State] {
		t.Errorf("public are %v, want both", got)
	}
	if _, err := apply(t, editor{done: "deleted", apply: remove}, at, both); err != nil {
		t.Fatal(err)
	}
	if got := sharing(t, at); len(got) != 0 {
		t.Errorf("after delete, the endpoint has %v", got)
	}
	if err := at.Close(t.Context()); err != nil || len(b.created) != 1 {
		t.Errorf("%d pods were created; closing: %v", len(b.created), err)
	}
	pod := &b.created[0]
	err := b.pods.Kube.Get(t.Context(), ctrlclient.ObjectKeyFromObject(pod), &corev1.Pod{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("pod %s is not deleted: %v", pod.Name, err)
	}
	if key := pod.Spec.Containers[0].Env[0].ValueFrom.SecretKeyRef; key.Name != "token-of-the-run" {
		t.Errorf("the pod has the key %v", key)
	}
}

// sampleThrough samples from a checkpoint, as chat and serve do.
func sampleThrough(t *testing.T, at Endpoint, path string) {
	t.Helper()
	api, err := at.Client(func(string) {}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	sampler := serving.NewSampler(t.Context(), api, "test")
	defer sampler.Close()
	params := tinker.DefaultSampling()
	params.MaxTokens = new(4)
	got, err := sampler.Sample(t.Context(), serving.Weights{Path: path}, tinker.SampleRequest{NumSamples: 1,
		Prompt: tinker.Text([]int32{49, 43, 50}), SamplingParams: params})
	if err != nil || len(got.Sequences) != 1 {
		t.Errorf("sampling: got %+v, %v", got, err)
	}
}

// TestAPodThatHasEndedIsReplaced makes a request after the pod of the command has ended: another pod answers it.
func TestAPodThatHasEndedIsReplaced(t *testing.T) {
	b := newBrokered(t, false)
	at := throughPod(b.pods, b.run, farAway)
	sharing(t, at)
	serving := b.url
	b.url = "http://127.0.0.1:1"
	api, err := at.Client(func(string) { b.url = serving }, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.WeightsInfo(t.Context(), b.saved.State); err != nil {
		t.Error(err)
	}
	if err := at.Close(t.Context()); err != nil || len(b.created) != 2 {
		t.Errorf("%d pods were created, want 2; closing: %v", len(b.created), err)
	}
}

// TestRefusalsOfABrokerAreToldAtOnce checks the messages for people without the necessary permission.
func TestRefusalsOfABrokerAreToldAtOnce(t *testing.T) {
	publishIt := func(t *testing.T, b *brokered) error {
		at := throughPod(b.pods, b.run, farAway)
		defer func() { _ = at.Close(t.Context()) }()
		if err := at.relay.Start(t.Context()); err != nil {
			return err
		}
		_, err := apply(t, published(true), at, []target{{Path: b.saved.State}})
		return err
	}
	for name, tc := range map[string]struct {
		change func(*brokered)
		want   []string
	}{
		"no rule for publication": {func(*brokered) {}, []string{"spec.allowed.publication"}},
		"the run is not permitted any more": {func(b *brokered) { b.broker.SetRuns(nil) },
			[]string{"no run of TinkerEndpoint prod has this token", "permits the namespace of the run"}},
		"no attempt": {func(b *brokered) {
			b.pods.Kube = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
		}, []string{"has no attempt"}},
		"no right to create pods": {func(b *brokered) {
			b.pods.Kube = interceptor.NewClient(b.cluster, interceptor.Funcs{
				Create: func(context.Context, ctrlclient.WithWatch, ctrlclient.Object, ...ctrlclient.CreateOption) error {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "relay", nil)
				}})
		}, []string{"role edit in namespace default", "asks TinkerEndpoint prod"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBrokered(t, false)
			tc.change(b)
			err := publishIt(t, b)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want it to have %q", err, want)
				}
			}
		})
	}
}

// TestDirectFiles fetches a file without a pod if this machine reaches the host of the file.
func TestDirectFiles(t *testing.T) {
	b := newBrokered(t, false)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "file")
	}))
	defer store.Close()
	for _, direct := range []http.RoundTripper{http.DefaultTransport, farAway} {
		at := throughPod(b.pods, b.run, direct)
		answer, err := at.http.Get(store.URL)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || string(data) != "file" {
			t.Errorf("the file is %q, %v", data, err)
		}
		if byPod := len(b.created) > 0; byPod != (direct == farAway) {
			t.Errorf("a pod fetched the file: %v", byPod)
		}
		_ = at.Close(t.Context())
	}
}
