// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoints

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/safetensors"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/archive"
	"github.com/tinker-operator/tinker-operator/internal/tinker/client"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/export"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/simulatortest"
)

var now = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

func newRun() *v1alpha1.TrainingRun {
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	latest := v1alpha1.Checkpoint{Name: "40", Step: 40, State: "tinker://m/weights/40",
		Sampler: "tinker://m/sampler_weights/40",
		Lineage: "abc", SaveTime: at(-time.Minute)}
	best := v1alpha1.Checkpoint{Name: "10", Step: 10, State: "tinker://m/weights/10", SaveTime: at(-time.Hour),
		Metric: "test/pass@1",
		Value:  new(0.75)}
	middle := v1alpha1.Checkpoint{Name: "20", Step: 20, State: "tinker://m/weights/20", ExpirationTime: at(2 * time.Hour)}
	return &v1alpha1.TrainingRun{
		ObjectMeta: metav1.ObjectMeta{Name: "arithmetic", Namespace: "default"},
		Status: v1alpha1.TrainingRunStatus{LatestCheckpoint: latest.Name, BestCheckpoint: best.Name,
			Checkpoints: []v1alpha1.Checkpoint{latest, middle, best}},
	}
}

func TestListShowsEachCheckpointOnce(t *testing.T) {
	var stdout bytes.Buffer
	env := cli.IO{Stdout: &stdout}
	if err := output.Print(env, output.Table, table(newRun(), now)); err != nil {
		t.Fatal(err)
	}
	want := `STEP   BEST   SAVED    EXPIRES   METRIC             LINEAGE   STATE                   SAMPLER
40            1m ago   never                        abc       tinker://m/weights/40   tinker://m/sampler_weights/40
20                     in 2h                                  tinker://m/weights/20
10     *      1h ago   never     test/pass@1=0.75             tinker://m/weights/10
`
	if diff := cmp.Diff(want, stdout.String()); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
	stdout.Reset()
	if err := output.Print(env, output.JSON, table(newRun(), now)); err != nil {
		t.Fatal(err)
	}
	var parsed []struct {
		Step    int64
		State   string
		Best    bool
		Sampler string
	}
	if err := json.Unmarshal(stdout.Bytes(), &parsed); err != nil || len(parsed) != 3 || !parsed[2].Best ||
		parsed[0].Sampler == "" || parsed[1].State == "" {
		t.Errorf("%+v, %v", parsed, err)
	}
}

func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		step int64
		best bool
		want int64
	}{"newest": {step: -1, want: 40}, "best": {step: -1, best: true, want: 10}, "of a step": {step: 20, want: 20}} {
		if got, err := Choose(newRun(), tc.step, tc.best); err != nil || got.Step != tc.want {
			t.Errorf("%s: step %d, %v", name, got.Step, err)
		}
	}
	bare := newRun()
	bare.Status.BestCheckpoint = ""
	for want, err := range map[string]error{
		"choose one of 40, 20, 10": second(Choose(newRun(), 30, false)),
		"keepBest":                 second(Choose(bare, -1, true)),
		"wait until it has saved":  second(Choose(&v1alpha1.TrainingRun{}, -1, false)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

func second(_ v1alpha1.Checkpoint, err error) error { return err }

// trained starts tinkersim, trains a step, and returns the server's URL and the checkpoint.
func trained(t *testing.T) (string, v1alpha1.Checkpoint) {
	t.Helper()
	_, url := simulatortest.Serve(t, tinkersim.Options{})
	return url, trainedAt(t, url, "tml-test")
}

// trainedAt trains a step at a server, and returns the checkpoint.
func trainedAt(t *testing.T, url, key string) v1alpha1.Checkpoint {
	t.Helper()
	api, err := client.New(client.Config{BaseURL: url, APIKey: key, UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	session, err := api.CreateSession(t.Context(), client.SessionRequest{Tags: []string{"test"}})
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
	data := []tinker.Datum{{ModelInput: tinker.Text([]int32{1, 2}), LossFnInputs: map[string]tinker.Tensor{
		tinker.InputTargetTokens: tinker.Ints([]int64{2, 3}), tinker.InputWeights: tinker.Floats([]float32{1, 1}),
	}}}
	forward, err := model.ForwardBackward(t.Context(), data, tinker.Loss{Name: tinker.LossCrossEntropy})
	wait(t, forward, err)
	step, err := model.OptimStep(t.Context(), tinker.AdamParams{LearningRate: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8})
	wait(t, step, err)
	state, err := model.SaveState(t.Context(), client.SaveRequest{Name: "one"})
	sampler, samplerErr := model.SaveSampler(t.Context(), client.SaveRequest{Name: "one"})
	return v1alpha1.Checkpoint{Step: 1, State: wait(t, state, err).Path, Sampler: wait(t, sampler, samplerErr).Path}
}

func wait[T any](t *testing.T, future *client.Future[T], err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	value, err := future.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// downloadWith downloads a checkpoint with a key from the environment, and returns the output.
func downloadWith(t *testing.T, f downloadFlags, baseURL string, c v1alpha1.Checkpoint) (string, error) {
	t.Helper()
	stdout, stderr, err := downloadOf(t, newRun(), f, baseURL, c)
	t.Log(stderr)
	return stdout, err
}

func downloadOf(t *testing.T, run *v1alpha1.TrainingRun, f downloadFlags, baseURL string,
	c v1alpha1.Checkpoint) (string, string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	variables := map[string]string{keyVariable: "tml-test"}
	env := cli.IO{Getenv: func(name string) string { return variables[name] }, Stdout: &stdout, Stderr: &stderr,
		Now: time.Now}
	from, err := EndpointOf(t.Context(), env, nil, run, baseURL)
	if err != nil {
		t.Fatal(err)
	}
	err = f.download(t.Context(), env, from, run, c)
	return stdout.String(), stderr.String(), err
}

// TestDownloadConvertsNamesOfTinker serves an archive with the names of hosted Tinker.
func TestDownloadConvertsNamesOfTinker(t *testing.T) {
	const layer = "base_model.model.model.unembed_tokens.lora_"
	header, _, err := safetensors.EncodeHeader(map[string]safetensors.Tensor{
		layer + "A.weight": {Type: "F32", Shape: []int{1, 2}, Offsets: [2]int64{0, 8}},
		layer + "B.weight": {Type: "F32", Shape: []int{2, 1}, Offsets: [2]int64{0, 8}},
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := export.Tar(
		export.File{Name: archive.ConfigFile, Data: []byte(`{"r": 1, "lora_alpha": 32}`)},
		export.File{Name: archive.TensorsFile, Data: append(header, "aaaaaaaabbbbbbbb"...)},
	)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(archiveOf(string(files)))
	defer server.Close()
	for model, tc := range map[string]struct{ layer, notice string }{
		"Qwen/Qwen3-8B":      {layer: "base_model.model.lm_head.lora_A.weight"},
		"openai/gpt-oss-20b": {layer: layer + "A.weight", notice: "build_lora_adapter"},
	} {
		run := newRun()
		run.Spec.Model.Name = model
		f := downloadFlags{folder: filepath.Join(t.TempDir(), "adapter")}
		_, stderr, err := downloadOf(t, run, f, server.URL, v1alpha1.Checkpoint{Sampler: "tinker://m/sampler_weights/1"})
		if err != nil || !strings.Contains(stderr, tc.notice) || tc.notice == "" && strings.Contains(stderr,
			"tinker-cookbook") {
			t.Errorf("%s: %v; printed was %q", model, err, stderr)
		}
		data, err := os.ReadFile(filepath.Join(f.folder, archive.TensorsFile))
		if err != nil || !bytes.Contains(data, []byte(tc.layer)) {
			t.Errorf("%s: %v; the file has no %s: %q", model, err, tc.layer, data)
		}
		if entries, err := os.ReadDir(f.folder); err != nil || len(entries) != 2 {
			t.Errorf("%s: the folder has %v, %v", model, entries, err)
		}
	}
}

func TestDownloadFromTinkersim(t *testing.T) {
	url, checkpoint := trained(t)
	f := downloadFlags{folder: filepath.Join(t.TempDir(), "below", "adapter")}
	printed, err := downloadWith(t, f, url, checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(f.folder)
	if err != nil || len(entries) != 2 || strings.Count(printed, "\n") != 2 {
		t.Errorf("the folder has %v, %v; printed was %q", entries, err, printed)
	}
	data, err := os.ReadFile(filepath.Join(f.folder, archive.TensorsFile))
	if err != nil {
		t.Fatal(err)
	}
	var tensors map[string]struct {
		Type  string `json:"dtype"`
		Shape []int  `json:"shape"`
	}
	if err := json.Unmarshal(data[8:8+binary.LittleEndian.Uint64(data)], &tensors); err != nil {
		t.Fatal(err)
	}
	if a := tensors["base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"]; a.Type != "F32" ||
		len(a.Shape) != 2 || a.Shape[0] != 8 {
		t.Errorf("the adapter of the first matrix is %+v", a)
	}
	config, err := os.ReadFile(filepath.Join(f.folder, archive.ConfigFile))
	if err != nil || !bytes.Contains(config, []byte(`"r": 8`)) || !bytes.Contains(config, []byte(tinkersim.ModelName)) {
		t.Errorf("the configuration is %s, %v", config, err)
	}

	if _, err := downloadWith(t, f, url, checkpoint); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("files that exist: %v", err)
	}
	f.force = true
	if again, err := downloadWith(t, f, url, checkpoint); err != nil || again != printed {
		t.Errorf("the second download printed %q, %v, want %q", again, err, printed)
	}
}

func TestDownloadOfMissingCheckpoint(t *testing.T) {
	url, checkpoint := trained(t)
	checkpoint.State, checkpoint.Sampler = checkpoint.State+"x", checkpoint.Sampler+"x"
	f := downloadFlags{folder: filepath.Join(t.TempDir(), "adapter")}
	_, err := downloadWith(t, f, url, checkpoint)
	if err == nil || !strings.Contains(err.Error(), checkpoint.State) || !strings.Contains(err.Error(),
		"was deleted or has expired") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(f.folder); err == nil {
		t.Error("a folder is left")
	}
}

func TestDownloadErrorsNameTheRepair(t *testing.T) {
	reply := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"the key is rejected":       {reply(http.StatusUnauthorized, `{"detail":"bad key"}`), keyVariable},
		"an archive without a URL":  {reply(http.StatusOK, `{}`), "names no valid URL"},
		"another server":            {reply(http.StatusNotFound, `{"detail":"no"}`), "--base-url"},
		"an archive that is a page": {archiveOf("<html>sign in</html>"), "not a tar file"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			f := downloadFlags{folder: filepath.Join(t.TempDir(), "adapter")}
			_, err := downloadWith(t, f, server.URL, v1alpha1.Checkpoint{Sampler: "tinker://m/sampler_weights/1"})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want one with %q", err, tc.want)
			}
			if _, err := os.Stat(f.folder); err == nil {
				t.Error("a folder is left")
			}
		})
	}
}

func TestDownloadFromUnreachableEndpoint(t *testing.T) {
	f := downloadFlags{folder: filepath.Join(t.TempDir(), "adapter")}
	// Nothing listens there. Another server may get the port of a closed one.
	_, err := downloadWith(t, f, "http://127.0.0.1:1", v1alpha1.Checkpoint{Sampler: "tinker://m/sampler_weights/1"})
	if err == nil || !strings.Contains(err.Error(), "kubectl port-forward") {
		t.Errorf("the error is %v", err)
	}
}

// archiveOf serves an archive at a URL relative to the server, and refuses requests for it that have a key.
func archiveOf(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/archive"):
			w.Header().Set("Location", "/signed")
			w.WriteHeader(http.StatusFound)
		case r.URL.Path == "/signed" && r.Header.Get(tinker.HeaderAPIKey) != "":
			w.WriteHeader(http.StatusBadRequest)
		case r.URL.Path == "/signed":
			fmt.Fprint(w, content)
		default:
			fmt.Fprint(w, "{}")
		}
	}
}

// TestKeyIsForNamedEndpoints uses a person's key with runs whose author chose the endpoint: the key goes only to hosted
// Tinker, and to endpoints that the person names.
func TestKeyIsForNamedEndpoints(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	run := newRun()
	run.Spec.Tinker.APIKeySecretKeyRef = &ref.SecretKey{Name: "tinker", Key: "key"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tinker"},
		Data: map[string][]byte{"key": []byte("tml-run")}}
	readable := fake.NewClientBuilder().WithScheme(scheme).WithObjects(secret).Build()
	unreadable := fake.NewClientBuilder().WithScheme(scheme).Build()
	for name, tc := range map[string]struct {
		ofRun, flag, variable string
		kube                  ctrlclient.Reader
		key                   string
	}{
		"hosted Tinker":      {ofRun: "https://tinker.thinkingmachines.dev/services", kube: unreadable, key: "tml-mine"},
		"the run's endpoint": {ofRun: "https://example.com", kube: readable, key: "tml-run"},
		"an endpoint of the flag": {ofRun: "https://example.com", flag: "http://localhost:1", kube: readable,
			key: "tml-mine"},
		"an endpoint of the variable": {ofRun: "https://example.com", variable: "http://localhost:1", kube: readable,
			key: "tml-mine"},
		"the Secret cannot be read": {ofRun: "https://example.com", kube: unreadable},
		"a name that only looks so": {ofRun: "https://tinker.thinkingmachines.dev.example.com", kube: unreadable},
		"hosted Tinker without TLS": {ofRun: "http://tinker.thinkingmachines.dev", kube: unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			run.Spec.Tinker.BaseURL = tc.ofRun
			variables := map[string]string{keyVariable: "tml-mine", baseURLVariable: tc.variable}
			env := cli.IO{Getenv: func(name string) string { return variables[name] }}
			e, err := EndpointOf(t.Context(), env, tc.kube, run, tc.flag)
			if e.key != tc.key || (err == nil) != (tc.key != "") {
				t.Errorf("the key is %q, %v, want %q", e.key, err, tc.key)
			}
			if err != nil && !strings.Contains(err.Error(), "give --base-url "+tc.ofRun) {
				t.Errorf("the error is %v, want one that names the repair", err)
			}
		})
	}
}

func TestEndpointOfRunWithoutBaseURL(t *testing.T) {
	none := cli.IO{Getenv: func(string) string { return "" }}
	if _, err := EndpointOf(t.Context(), none, nil, newRun(), ""); err == nil || !strings.Contains(err.Error(),
		"--base-url") {
		t.Errorf("without a base URL: %v", err)
	}
	if _, err := EndpointOf(t.Context(), none, nil, newRun(), "localhost:8080"); err == nil ||
		!strings.Contains(err.Error(), "http://") {
		t.Errorf("with a base URL that has no scheme: %v", err)
	}
}
