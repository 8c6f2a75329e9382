// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/uitest"
)

// fixture serves the pages of a cluster in memory.
type fixture struct {
	cluster client.WithWatch
	site    *Site
}

func newFixture(t testing.TB, hooks interceptor.Funcs, read ReadFunc) *fixture {
	t.Helper()
	cluster, err := uitest.New(t.Context(), hooks)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, cluster, read)
}

func serve(t testing.TB, cluster client.WithWatch, read ReadFunc) *fixture {
	t.Helper()
	s := New(Config{Connection: &cli.Connection{Client: cluster, Namespace: uitest.Namespace}, Watcher: cluster,
		Namespace: uitest.Namespace, Read: read, Pieces: uitest.Pieces, Now: func() time.Time { return uitest.Now }})
	ctx, cancel := context.WithCancel(context.Background())
	go s.Run(ctx)
	t.Cleanup(func() {
		cancel()
		s.Wait()
	})
	return &fixture{cluster: cluster, site: s}
}

// reply is an answer without its text.
type reply struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// get returns the answer to a request, and its text, once no more transcripts are read for it.
func (f *fixture) get(t testing.TB, target string, headers ...string) (*reply, string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; {
		answer, page := f.do(t, http.MethodGet, target, headers...)
		if answer.Header.Get("X-Pending") == "" {
			return answer, page
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not read within ten minutes", target)
		}
	}
}

// post sends a form.
func (f *fixture) post(t testing.TB, target string, form url.Values) (*reply, string) {
	t.Helper()
	return f.send(httptest.NewRequest(http.MethodPost, target, strings.NewReader(form.Encode())),
		"Content-Type", "application/x-www-form-urlencoded")
}

func (f *fixture) do(t testing.TB, method, target string, headers ...string) (*reply, string) {
	t.Helper()
	return f.send(httptest.NewRequest(method, target, nil), headers...)
}

func (f *fixture) send(r *http.Request, headers ...string) (*reply, string) {
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.site.ServeHTTP(w, r)
	return &reply{StatusCode: w.Code, Status: http.StatusText(w.Code), Header: w.Header()}, w.Body.String()
}

// expect fails unless a page has the texts. A text that follows "!" must be absent.
func (f *fixture) expect(t *testing.T, target string, texts ...string) string {
	t.Helper()
	answer, page := f.get(t, target)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s:\n%s", target, answer.Status, page)
	}
	for _, text := range texts {
		if absent, ok := strings.CutPrefix(text, "!"); ok == strings.Contains(page, strings.TrimPrefix(text, "!")) {
			t.Errorf("%s: has %q is %t, want %t", target, absent, ok, !ok)
		}
	}
	return page
}

const stuck = "/runs/research/" + uitest.Stuck

func TestRuns(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	f.expect(t, "/", uitest.Stuck, "48/80", "lr-2-seed-1",
		`data-spark="/runs/research/countdown-qwen3/sparks"`, "RepliesCut",
		"EndpointUnreachable", "$22.08", "of $60<", "1–12 of 12 runs", "<!DOCTYPE html>")
	f.expect(t, "/?state=Failed", "too-hot", "!notes-sft", "1–1 of 1 runs that fit, 12 in all")
	f.expect(t, "/?sweep=lr&q=seed-1", "lr-0-seed-1", "!lr-0-seed-0", "1–3 of 3 runs")
	f.expect(t, "/?q=nothing-like-it", "No run of 12 fits the filters")
	page := f.expect(t, "/?sort=name", `aria-sort="descending"`, `href="/?sort=-name"`)
	if strings.Index(page, ">countdown-llama<") > strings.Index(page, ">too-hot<") {
		t.Errorf("the rows are not sorted by name: llama at %d, too-hot at %d",
			strings.Index(page, ">countdown-llama<"), strings.Index(page, ">too-hot<"))
	}
	page = f.expect(t, "/?sort=-name", `aria-sort="ascending"`)
	if strings.Index(page, ">countdown-llama<") < strings.Index(page, ">too-hot<") {
		t.Errorf("the rows are not sorted by name, the last first: llama at %d, too-hot at %d",
			strings.Index(page, ">countdown-llama<"), strings.Index(page, ">too-hot<"))
	}
	page = f.expect(t, "/?sort=reward")
	if strings.Index(page, ">too-hot<") < strings.Index(page, ">countdown-qwen3<") {
		t.Errorf("the greatest reward is not first: qwen3 at %d, too-hot at %d",
			strings.Index(page, ">countdown-qwen3<"), strings.Index(page, ">too-hot<"))
	}
}

func TestSparks(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	page := f.expect(t, stuck+"/sparks", "<polyline points=")
	if n := strings.Count(page, "<svg"); n != 2 {
		t.Errorf("a row has %d sparklines, want 2", n)
	}
	if answer, _ := f.get(t, "/runs/research/nobody/sparks"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("the sparklines of no run are answered with %s", answer.Status)
	}
}

func TestRunPage(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	f.expect(t, stuck, "RepliesCut", "Raise sampling.maxTokens", "the node was drained", "Disrupted",
		"actions/fork?step=40", "train task 4711: the reward timed out",
		"a million tokens of Qwen/Qwen3-8B cost", "apiKeySecretKeyRef", "Step 40 is saved", "/conversations",
		`data-chart="/runs/research/countdown-qwen3/curve.json?metric=env%2Fall%2Freward%2Ftotal"`, "actions/suspend",
		"!actions/resume", "!actions/retry")
	f.expect(t, stuck+"?metric=optim/entropy&smooth=0.9&x=time&log=1", "curve.json?metric=optim%2Fentropy&amp;smooth=0.9"+
		"&amp;x=time",
		`data-log="true"`)
	f.expect(t, "/runs/research/countdown-qwen3-s40", "spec.environments[countdown].sampling.maxTokens", "2048", "512")
	f.expect(t, "/runs/research/countdown-llama", "connection refused", "What to do")
	f.expect(t, "/runs/research/too-hot", "actions/retry", "!actions/suspend")
	f.expect(t, "/runs/research/judge-ablation", "actions/resume", "!actions/suspend")
	if answer, page := f.get(t, "/runs/research/nobody"); answer.StatusCode != http.StatusNotFound ||
		!strings.Contains(page, "does not exist") {
		t.Errorf("no run is answered with %s:\n%s", answer.Status, page)
	}
}

func TestCompare(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	f.expect(t, "/compare", "/compare?sweep=lr")
	page := f.expect(t, "/compare?sweep=lr", `title="spec.algorithm.optimizer.learningRate"`, "0.00016", "lr-1-seed-1",
		`class="first"`, "/compare/curve.json?metric=env%2Fall%2Freward%2Ftotal&amp;sweep=lr", "line-f")
	if first, other := strings.Index(page, ">lr-1-seed-1<"), strings.Index(page, ">lr-0-seed-0<"); first > other {
		t.Errorf("the best run is not first: got %v, want at most %v", first, other)
	}
	f.expect(t, "/compare?sweep=lr&seeds=1", "± ", "2 of 2", "!spec.algorithm.seed")
	f.expect(t, "/compare?run=research/countdown-qwen3&run=research/too-hot&metric=optim/entropy", "too-hot",
		"optim/entropy", "!lr-1-seed-1")
	_, data := f.get(t, "/compare/curve.json?sweep=lr&metric=reward")
	if !strings.HasPrefix(data, `{"x":[`) {
		t.Errorf("the curves are %.80s", data)
	}
}

func TestEnvironments(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	f.expect(t, "/environments", "countdown", "13.3k", "proofs", "NotReady", "persistentvolumeclaim", "0.4%")
	f.expect(t, "/environments/research/countdown", "the same twice", "countdown-qwen3", "train task 4711", "train",
		"reply.lastNumber()", stuck+"/conversations")
	f.expect(t, "/environments/research/proofs", "persistentvolumeclaim", "What to do")
	if answer, _ := f.get(t, "/environments/research/nothing"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("no environment is answered with %s", answer.Status)
	}
}

// TestFragmentsAreSentWhereTheyHaveChanged checks that the script is sent only the content, and nothing if it already
// has the content.
func TestFragmentsAreSentWhereTheyHaveChanged(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	answer, page := f.get(t, "/", fragmentHeader, "1")
	if strings.Contains(page, "<html") || !strings.Contains(page, `data-live id="rows"`) {
		t.Errorf("the fragment is %.200s", page)
	}
	again, rest := f.get(t, "/", fragmentHeader, "1", "If-None-Match", answer.Header.Get("ETag"))
	if again.StatusCode != http.StatusNotModified || rest != "" {
		t.Errorf("an unchanged fragment is answered with %s", again.Status)
	}
	if whole, _ := f.get(t, "/", "If-None-Match", answer.Header.Get("ETag")); whole.StatusCode != http.StatusOK {
		t.Errorf("the page is answered with %s for the tag of its fragment", whole.Status)
	}
}

func TestAssets(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	for target, kind := range map[string]string{"/assets/app.js": "text/javascript; charset=utf-8",
		"/assets/app.css": "text/css; charset=utf-8", "/assets/vendor/uplot.iife.min.js": "text/javascript; charset=utf-8"} {
		if answer, _ := f.get(t, target); answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != kind {
			t.Errorf("%s answers %s with %s", target, answer.Status, answer.Header.Get("Content-Type"))
		}
	}
	for _, target := range []string{"/assets/vendor/SOURCES", "/assets/", "/assets/assets.go", "/nothing"} {
		if answer, _ := f.get(t, target); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s", target, answer.Status)
		}
	}
}
