// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ui

package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/cache"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/site"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/uitest"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

// mostHeap is the largest heap in bytes that a page may have in the browser.
const mostHeap = 300 << 20

// running returns a function that reads the transcripts of another function like the transcripts of a pod that runs: as
// deliveries over HTTP.
func running(t *testing.T, made site.ReadFunc) site.ReadFunc {
	t.Helper()
	answers := map[int64][]byte{}
	for _, step := range []int64{uitest.LongStep, uitest.WideStep} {
		decoded, steps, err := made(t.Context(), nil, step, false)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(decoded)
		if err != nil {
			t.Fatal(err)
		}
		var written bytes.Buffer
		if err := delivery.Write(&written, delivery.Delivery{Steps: steps, Transcript: encoded}); err != nil {
			t.Fatal(err)
		}
		answers[step] = written.Bytes()
		say(t, "step %d: the transcript has %.1f MB, and its delivery %.1f MB", step, float64(len(encoded))/1e6,
			float64(written.Len())/1e6)
	}
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		step, _ := strconv.ParseInt(r.URL.Query().Get("step"), 10, 64)
		_, _ = w.Write(answers[step])
	}))
	t.Cleanup(pod.Close)
	return func(ctx context.Context, _ *v1alpha1.TrainingRun, step int64, _ bool) (transcript.Step, []int64, error) {
		var decoded transcript.Step
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?step=%d", pod.URL, step), http.NoBody)
		if err != nil {
			return decoded, nil, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return decoded, nil, err
		}
		defer answer.Body.Close()
		found, err := delivery.Read(answer.Body)
		if err != nil {
			return decoded, nil, err
		}
		return decoded, found.Steps, json.Unmarshal(found.Transcript, &decoded)
	}
}

// TestScale opens pages with 1,000 runs, 10,000 steps, 1,000 episodes a step and conversations of 100,000 tokens, and
// prints the time until each is whole and the heap of the browser.
func TestScale(t *testing.T) {
	store := func(folder string) *cache.Cache {
		kept, err := cache.Open(folder, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return kept
	}
	folder, pod := t.TempDir(), running(t, uitest.ReadLarge)
	cluster, _, err := uitest.Crowd(t.Context(), 1000, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	const run = "/runs/research/run-0000"
	long, wide := fmt.Sprintf("%s/conversations?step=%d", run, uitest.LongStep), fmt.Sprintf("%s/conversations?step=%d",
		run, uitest.WideStep)
	const article = `document.querySelector("article") && `
	say(t, "%-58s %9s %9s %9s", "", "first", "bytes", "heap")
	for _, from := range []string{"a running reader", "the cache"} {
		b := openPages(t, pagesOf(t, cluster, store(folder).Wrap(pod)))
		for _, v := range []struct{ name, path, whole string }{
			{"1,000 runs", "/", `document.querySelectorAll("#rows tr").length === 100 &&
				document.querySelector("#runs svg.spark")`},
			{"1,000 runs, the last page by reward", "/?sort=reward&from=900",
				`document.querySelectorAll("#rows tr").length === 100`},
			{"10,000 steps", run, `document.querySelector(".plot canvas")`},
			{"100,000 tokens, from " + from, long, article + `document.querySelector("[data-more]")`},
			{"100,000 tokens coloured", long + "&colour=logprob&slot=0&episode=0", `document.querySelector(".tokens .t-p0")`},
			{"1,000 episodes, from " + from, wide, article + `document.querySelectorAll(".groups li").length === 63`},
			{"1,000 episodes, those with a text", wide + "&q=needle", article +
				`document.body.textContent.includes("1 of 1000")`},
		} {
			b.measure(t, v.name, v.path, v.whole)
		}
		b.expectClean(t)
	}
}

// measure opens a page and prints how long it takes until it is whole, its bytes, and the heap of the browser.
func (b *tab) measure(t *testing.T, name, path, whole string) {
	t.Helper()
	began := time.Now()
	b.do(t, chromedp.Navigate(b.host+path))
	b.await(t, whole)
	took := time.Since(began)
	var heap float64
	b.do(t, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		used, _, _, _, err := runtime.GetHeapUsage().Do(ctx)
		heap = used
		return err
	}), network.Enable())
	bytes := is[int](t, b, `document.documentElement.outerHTML.length`)
	say(t, "%-58s %7.2f s %6d kB %6.1f MB", name, took.Seconds(), bytes>>10, heap/1e6)
	if heap > mostHeap {
		t.Errorf("%s: the page takes %.0f MB", name, heap/1e6)
	}
	// Other programs slow the machine down: without them each view takes less than a second.
	if took > 30*time.Second {
		t.Errorf("%s: the first view takes %s", name, took)
	}
}
