// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package talk

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/playing"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/serving"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

// saved saves sampler weights at the simulator under each name, and returns their paths.
func saved(t *testing.T, url string, names ...string) (paths []string) {
	t.Helper()
	api, err := client.New(client.Config{BaseURL: url, APIKey: "tml-test", UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	session, err := api.CreateSession(t.Context(), client.SessionRequest{})
	if err != nil {
		t.Fatal(err)
	}
	lora := tinker.DefaultLora()
	lora.Rank = 8
	model, err := api.CreateModel(t.Context(), tinker.CreateModelRequest{Session: session, BaseModel: tinkersim.ModelName,
		Lora: lora})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		future, err := model.SaveSampler(t.Context(), client.SaveRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		result, err := future.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, result.Path)
	}
	return paths
}

// cluster returns a fake cluster with a run that has a checkpoint of step 10.
func cluster(t *testing.T) (connection *cli.Connection, run *v1alpha1.TrainingRun, url string, paths []string) {
	t.Helper()
	_, url = simulatortest.Serve(t, tinkersim.Options{})
	paths = saved(t, url, "10", "20")
	run = &v1alpha1.TrainingRun{
		ObjectMeta: metav1.ObjectMeta{Name: "sums", Namespace: "default", UID: "0123456789"},
		Spec: v1alpha1.TrainingRunSpec{
			Model:  v1alpha1.Model{Name: tinkersim.ModelName, LoraRank: new(int32(8)), Seed: new(int64(0))},
			Tinker: v1alpha1.Tinker{BaseURL: url, APIKeySecretKeyRef: &ref.SecretKey{Name: "tinker", Key: "key"}},
			Environments: []v1alpha1.TrainingEnvironment{{EnvironmentUse: v1alpha1.EnvironmentUse{Name: "sums",
				Sampling: playing.Sampling{MaxTokens: 8, Temperature: new(0.0)}}}},
		},
		Status: v1alpha1.TrainingRunStatus{LatestCheckpoint: "10", BestCheckpoint: "10",
			Checkpoints: []v1alpha1.Checkpoint{{Name: "10", Step: 10, Sampler: paths[0]}}},
	}
	sums := &v1alpha1.RewardEnvironment{ObjectMeta: metav1.ObjectMeta{Name: "sums", Namespace: "default"},
		Spec: v1alpha1.RewardEnvironmentSpec{Dataset: &environment.Dataset{SystemPrompt: "Add."}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tinker", Namespace: "default"},
		Data: map[string][]byte{"key": []byte("tml-test")}}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run, sums, secret).Build()
	return &cli.Connection{Client: kube, Namespace: "default"}, run, url, paths
}

// ioOf returns the environment of a command, with a key.
func ioOf(stdin io.Reader, stdout, stderr io.Writer, now func() time.Time) cli.IO {
	return cli.IO{Stdin: stdin, Stdout: stdout, Stderr: stderr, Now: now, Getenv: func(name string) string {
		return map[string]string{keyVariable: "tml-test"}[name]
	}}
}

// newest chooses the newest checkpoint.
func newest() choice {
	return choice{step: -1, topP: 1, topK: -1, temperature: 1, temperatureGiven: func() bool { return false }}
}

// TestServedNamesFollowTheRun serves the newest checkpoint, which moves, and others by their names.
func TestServedNamesFollowTheRun(t *testing.T) {
	connection, run, _, paths := cluster(t)
	now := time.Now()
	var stderr bytes.Buffer
	env := ioOf(nil, io.Discard, &stderr, func() time.Time { return now })
	from, err := newest().open(t.Context(), env, func() (*cli.Connection, error) { return connection, nil }, "sums")
	if err != nil {
		t.Fatal(err)
	}
	defer from.sampler.Close()
	if from.defaults.MaxTokens != 8 || from.defaults.Temperature != 0 {
		t.Errorf("the defaults are %+v, want the run's", from.defaults)
	}
	models := newCatalog(from, []string{"gpt-4o", "gpt-4o-mini"})
	expect := func(name, path string, step int64) {
		t.Helper()
		got, err := models.Model(t.Context(), name)
		if err != nil || got.Weights.Path != path || got.Weights.Step != step {
			t.Errorf("%s is %+v, %v, want step %d at %s", name, got.Weights, err, step, path)
		}
	}
	expect("gpt-4o", paths[0], 10)
	if diff := cmp.Diff([]string{"gpt-4o", "gpt-4o-mini", "gpt-4o@10", "gpt-4o@best", "gpt-4o@base"},
		models.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	run.Status.LatestCheckpoint = "20"
	run.Status.Checkpoints = append(run.Status.Checkpoints, v1alpha1.Checkpoint{Name: "20", Step: 20, Sampler: paths[1]})
	if err := connection.Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	expect("gpt-4o-mini", paths[1], 20)
	expect("gpt-4o@10", paths[0], 10)
	expect("gpt-4o@best", paths[0], 10)
	if !strings.Contains(stderr.String(), "step 20 now") {
		t.Errorf("printed was %q", stderr.String())
	}
	if got, err := models.Model(t.Context(), "gpt-4o@base"); err != nil || got.Weights.Base != tinkersim.ModelName {
		t.Errorf("the base model is %+v, %v", got.Weights, err)
	}
	for _, name := range []string{"sums", "gpt-4o@30", "gpt-4o@-1", "gpt-4o@"} {
		var unknown *serving.UnknownModelError
		if _, err := models.Model(t.Context(), name); !errors.As(err, &unknown) {
			t.Errorf("%s: the error is %v, want one for clients", name, err)
		}
	}
}

// TestServe serves a run and a path on a port, until the command is interrupted.
func TestServe(t *testing.T) {
	connection, _, url, paths := cluster(t)
	for name, argument := range map[string]string{"a run": "sums", "a path": paths[0]} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			reader, writer := io.Pipe()
			f := serveFlags{choice: newest(), token: "secret"}
			f.baseURL = url
			ended := make(chan error, 1)
			go func() {
				ended <- f.run(ctx, ioOf(nil, writer, io.Discard, time.Now),
					func() (*cli.Connection, error) { return connection, nil }, argument)
				writer.Close()
			}()
			address, err := bufio.NewReader(reader).ReadString('\n')
			if err != nil {
				t.Fatalf("no address: %v, %v", err, <-ended)
			}
			request, err := http.NewRequestWithContext(ctx, http.MethodPost,
				strings.TrimSpace(address)+"/secret/v1/completions", strings.NewReader(`{"model": "`+argument+
					`", "prompt": "1+1=", "max_tokens": 3}`))
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("text_completion")) {
				t.Errorf("got %d %s, %v", response.StatusCode, body, err)
			}
			interrupt()
			if err := <-ended; err != nil {
				t.Errorf("the command ended with %v", err)
			}
		})
	}
}

func TestServeRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		flags serveFlags
		want  string
	}{
		"other machines without TLS":    {serveFlags{choice: newest(), listen: "0.0.0.0", token: "x"}, "--tls-cert"},
		"other machines without tokens": {serveFlags{choice: newest(), listen: "::", cert: "a", key: "b"}, "--with-token"},
		"a certificate without a key":   {serveFlags{choice: newest(), cert: "a"}, "belong together"},
		"step and best":                 {serveFlags{choice: choice{step: 1, best: true, topP: 1}}, "exclude"},
	} {
		if err := tc.flags.check(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v, want one with %q", name, err, tc.want)
		}
	}
	fine := serveFlags{choice: newest(), listen: "127.0.0.1", withToken: true}
	if err := fine.check(); err != nil || fine.token == "" {
		t.Errorf("a token on the loopback interface: %v, token %q", err, fine.token)
	}
}

// TestChat checks that one or two checkpoints answer lines, each in a conversation of its own.
func TestChat(t *testing.T) {
	connection, _, _, _ := cluster(t)
	for name, tc := range map[string]struct {
		compare, stdin string
		lines          []string
	}{
		"one": {stdin: "3+4=?\n\n/help\n", lines: []string{""}},
		"two": {compare: "base", stdin: "3+4=?\n/reset\n5+1=?\n/quit\nno\n",
			lines: []string{"step 10: ", "base: ", "step 10: ", "base: "}},
		"best": {compare: "best", stdin: "3+4=?\n/system Be brief.\n", lines: []string{"step 10: ", "step 10: "}},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			f := chatFlags{choice: newest(), compare: tc.compare, systemGiven: func() bool { return false }}
			err := f.run(t.Context(), ioOf(strings.NewReader(tc.stdin), &stdout, &stderr, time.Now),
				func() (*cli.Connection, error) { return connection, nil }, "sums")
			if err != nil {
				t.Fatalf("%v: %s", err, stderr.String())
			}
			var begins []string
			for line := range strings.Lines(stdout.String()) {
				for _, label := range tc.lines {
					if strings.HasPrefix(line, label) && len(line) > len(label)+1 {
						begins = append(begins, label)
						break
					}
				}
			}
			if len(begins) < len(tc.lines) {
				t.Errorf("got %q, want lines that begin with %q", stdout.String(), tc.lines)
			}
		})
	}
}

func TestChatRefusals(t *testing.T) {
	connection, _, _, _ := cluster(t)
	f := chatFlags{choice: newest(), compare: "x", systemGiven: func() bool { return true }}
	err := f.run(t.Context(), ioOf(strings.NewReader(""), io.Discard, io.Discard, time.Now),
		func() (*cli.Connection, error) { return connection, nil }, "sums")
	if err == nil || !strings.Contains(err.Error(), "a step of the run, best or base") {
		t.Errorf("the error is %v", err)
	}
}

// TestSystemPrompts checks that chat takes the system prompt of the environment unless it depends on the task.
func TestSystemPrompts(t *testing.T) {
	connection, run, _, _ := cluster(t)
	var stderr bytes.Buffer
	from := &source{env: ioOf(nil, nil, &stderr, nil), kube: connection, run: run}
	if got, err := from.systemPrompt(t.Context()); got != "Add." || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	talk := &talk{system: "Add.", speakers: []*speaker{{messages: []chat.Message{{Content: "old"}}}}}
	talk.reset()
	if diff := cmp.Diff([]chat.Message{{Role: chat.RoleSystem, Content: "Add."}}, talk.speakers[0].messages); diff != "" {
		t.Errorf("after /reset (-want +got):\n%s", diff)
	}
	sums := &v1alpha1.RewardEnvironment{ObjectMeta: metav1.ObjectMeta{Name: "sums", Namespace: "default"},
		Spec: v1alpha1.RewardEnvironmentSpec{Dataset: &environment.Dataset{SystemPrompt: "Add $(a)."}}}
	if err := connection.Delete(t.Context(), sums.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := connection.Create(t.Context(), sums); err != nil {
		t.Fatal(err)
	}
	got, err := from.systemPrompt(t.Context())
	if got != "" || err != nil || !strings.Contains(stderr.String(), "--system") {
		t.Errorf("a template: got %q, %v; printed was %q", got, err, stderr.String())
	}
}

// TestModelsDoNotControlTheTerminal prints the text of a hostile model.
func TestModelsDoNotControlTheTerminal(t *testing.T) {
	var stdout bytes.Buffer
	session := &talk{env: cli.IO{Stdout: &stdout}}
	reply := &spoken{pieces: make(chan chat.Part, 3), done: make(chan struct{})}
	reply.pieces <- chat.Part{Text: "a\x1b]0;title\x07", Thinking: true}
	reply.pieces <- chat.Part{Text: "b\r\n\u009b31mc\td"}
	close(reply.pieces)
	reply.answer.Message.Calls = []chat.ToolCall{{Name: "x\x1b[2J", Arguments: "{\"a\": \"\x1b[1m\"}"}}
	close(reply.done)
	session.speakers = []*speaker{{name: "base"}}
	session.print(session.speakers[0], reply)
	want := "(thinking) a\uFFFD]0;title\uFFFD\nb\uFFFD\n\uFFFD31mc\td\n(calls x\uFFFD[2J({\"a\": \"\uFFFD[1m\"}))\n"
	if got := stdout.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
