// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ui

package ui

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/guard"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/site"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/uitest"
)

var pictures = flag.String("pictures", "", "keep the pictures of the pages in this `FOLDER`")

var report = flag.String("report", "", "append what was measured to this `FILE`, which the target prints")

// say reports a measurement: the target prints only the output of tests that fail.
func say(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf(format, args...)
	if *report == "" {
		return
	}
	file, err := os.OpenFile(*report, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(file, format+"\n", args...)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// read reads the transcripts of the cluster in memory.
var read = uitest.Read

// browser is Debian's headless Chromium, which hack/need-chromium.sh installs.
const browser = "chromium-headless-shell"

// pagesOf returns the pages of a cluster.
func pagesOf(t *testing.T, cluster client.WithWatch, read site.ReadFunc) *site.Site {
	t.Helper()
	return site.New(site.Config{Connection: &cli.Connection{Client: cluster, Namespace: uitest.Namespace},
		Watcher: cluster, Namespace: uitest.Namespace, Read: read, Pieces: uitest.Pieces,
		Now: func() time.Time { return uitest.Now }})
}

// served serves pages, and returns the address that admits a browser and the host.
func served(t *testing.T, pages *site.Site) (address, host string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	go pages.Run(ctx)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	keeper := guard.New([]string{"127.0.0.1"}, port, false, time.Now)
	server := &http.Server{Handler: keeper.Wrap(pages), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		cancel()
		_ = server.Close()
	})
	return keeper.Address(), "http://" + listener.Addr().String()
}

// tab is a tab of a browser, with the problems and the requests of its pages.
type tab struct {
	ctx  context.Context
	host string

	mu       sync.Mutex
	problems []string
	asked    []string
}

// open opens the pages of a cluster in memory.
func open(t *testing.T, read site.ReadFunc) *tab {
	t.Helper()
	cluster, err := uitest.New(t.Context(), interceptor.Funcs{})
	if err != nil {
		t.Fatal(err)
	}
	return openPages(t, pagesOf(t, cluster, read))
}

// openPages opens pages in a tab.
func openPages(t *testing.T, pages *site.Site) *tab {
	t.Helper()
	address, host := served(t, pages)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(browser),
		chromedp.NoSandbox, chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	allocated, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocated)
	t.Cleanup(end)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	b := &tab{ctx: ctx, host: host}
	chromedp.ListenTarget(ctx, b.note)
	b.do(t, network.Enable(), log.Enable(), chromedp.Navigate(address))
	return b
}

// note keeps a page's complaints and the addresses that it loads.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			b.problems = append(b.problems, fmt.Sprintf("console: %s", e.Args[0].Value))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.problems = append(b.problems, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *page.EventJavascriptDialogOpening:
		b.problems = append(b.problems, "a dialog says "+e.Message)
	}
}

func (b *tab) do(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// expectClean fails if a page has complained, or loaded something from elsewhere.
func (b *tab) expectClean(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, problem := range b.problems {
		t.Errorf("the browser says: %s", problem)
	}
	for _, address := range b.asked {
		// Chromium draws its own check boxes from data.
		if !strings.HasPrefix(address, b.host+"/") && !strings.HasPrefix(address, "data:") {
			t.Errorf("a page asks for %s", address)
		}
	}
	b.problems, b.asked = nil, nil
}

// awaited makes an evaluation wait for an expression that is a promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// is evaluates an expression.
func is[T any](t *testing.T, b *tab, expression string) (value T) {
	t.Helper()
	b.do(t, chromedp.Evaluate(expression, &value))
	return value
}

// await waits until an expression holds.
func (b *tab) await(t *testing.T, expression string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var holds bool
		// A page that is being left evaluates nothing.
		err := chromedp.Run(b.ctx, chromedp.Evaluate("!!("+expression+")", &holds))
		if err == nil && holds {
			return
		}
		if time.Now().After(deadline) || b.ctx.Err() != nil {
			t.Fatalf("%s: it does not hold that %s: %v", is[string](t, b, "location.href"), expression, err)
		}
	}
}

const stuck = "/runs/research/" + uitest.Stuck

// views has the pages to look at. whole is true in a page that is complete.
var views = []struct {
	name, path, whole string
	// height is the height of the window if the README has the picture.
	height int64
}{
	{"runs", "/", `document.querySelectorAll("#runs svg.spark").length > 4`, 600},
	{"run", stuck, `document.querySelectorAll("#usage .plot canvas").length === 2`, 0},
	{"run-smooth", stuck + "?metric=env/all/stop/length&metric=reward&metric=pass@1&smooth=0.8&x=time",
		`document.querySelectorAll("#curves .plot canvas").length === 3`, 0},
	{"compare", "/compare?sweep=lr", `document.querySelector(".plot canvas")`, 0},
	{"compare-seeds", "/compare?sweep=lr&seeds=1", `document.querySelector(".plot canvas")`, 0},
	{"environments", "/environments", `document.querySelector("table")`, 0},
	{"environment", "/environments/research/countdown", `document.querySelector("table")`, 0},
	{"conversations", stuck + "/conversations?step=36", `document.querySelectorAll("article").length === 4`, 0},
	{"tokens", stuck + "/conversations?step=12&slot=385&episode=0&colour=logprob",
		`document.querySelector(".tokens .t-p0")`, 0},
	{"task", "/environments/research/countdown?task=" + uitest.Stuck, `document.querySelector("#task .message")`, 0},
	{"editor", stuck + "/spec", `document.querySelector("textarea.yaml")`, 0},
	{"fork", stuck + "/actions/fork?step=30&name=longer&check=1&set=spec.algorithm.steps%3D20",
		`document.querySelector("form[method=post]")`, 0},
	{"action", stuck + "/actions/suspend", `document.querySelector("form[method=post]")`, 0},
	{"waiting", "/runs/research/countdown-llama", `document.querySelector(".plot canvas")`, 0},
}

// eachView opens each page at two widths, light and dark, and calls check once a page is whole. A name has the page,
// the width and the scheme.
func (b *tab) eachView(t *testing.T, check func(name string)) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			b.do(t, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
				Value: scheme}}))
			for _, v := range views {
				b.do(t, emulation.SetDeviceMetricsOverride(width, cmp.Or(v.height, 900), 1, width < 600),
					chromedp.Navigate(b.host+v.path))
				b.await(t, v.whole)
				check(fmt.Sprintf("%s-%d-%s", v.name, width, scheme))
			}
		}
	}
}

// TestPages opens each page at two widths, light and dark: no error, no request to another host, nothing wider than
// the window, and each curve is drawn.
func TestPages(t *testing.T) {
	b := open(t, read)
	b.eachView(t, func(name string) {
		if over := is[int](t, b, `document.documentElement.scrollWidth - window.innerWidth`); over > 0 {
			t.Errorf("%s is %d pixels wider than the window", name, over)
		}
		b.keep(t, name+".png")
		b.expectClean(t)
	})
}

// keep keeps a picture of a page.
func (b *tab) keep(t *testing.T, name string) {
	t.Helper()
	if *pictures == "" {
		return
	}
	var data []byte
	b.do(t, chromedp.Sleep(150*time.Millisecond), chromedp.CaptureScreenshot(&data))
	if err := os.WriteFile(filepath.Join(*pictures, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestHostileTexts opens conversations whose texts are markup, links, control characters and a line of 10 MB.
func TestHostileTexts(t *testing.T) {
	b := open(t, uitest.ReadHostile)
	b.do(t, chromedp.Navigate(b.host+stuck+"/conversations"))
	b.await(t, `document.querySelector("article")`)
	if n := is[int](t, b, `document.querySelectorAll("main script, main img, main a[href^='javascript']").length`); n > 0 {
		t.Errorf("the texts have become %d elements", n)
	}
	if title := is[string](t, b, `document.title`); strings.Contains(title, "executed") {
		t.Error("a text was executed")
	}
	if text := is[string](t, b, `document.querySelector("article").textContent`); !strings.Contains(text, `\u{202E}`) ||
		strings.ContainsAny(text, "\u202e\x1b") {
		t.Error("the characters that turn text are not shown as escapes")
	}
	const long = `Math.max(...Array.from(document.querySelectorAll("article pre"), (e) => e.textContent.length))`
	before := is[int](t, b, long)
	b.do(t, chromedp.Evaluate(`for (const d of document.querySelectorAll("details")) d.open = true`, nil),
		chromedp.Click("[data-more]", chromedp.ByQuery))
	b.await(t, long+" > "+fmt.Sprint(before))
	b.expectClean(t)
}

// TestLiveParts checks that parts of a page are replaced if they change, and keep a person's input.
func TestLiveParts(t *testing.T) {
	b := open(t, read)
	b.do(t, chromedp.Navigate(b.host+"/"))
	b.await(t, `document.querySelectorAll("#runs svg.spark").length > 4`)
	b.do(t, chromedp.Evaluate(`document.getElementById("pick-research_too-hot").checked = true;
		document.querySelector("#rows tr:nth-child(3) td.name a").focus();
		window.top0 = document.querySelector("#rows").getBoundingClientRect().top;
		document.querySelector("#rows").lastElementChild.remove()`, nil))
	b.do(t, chromedp.Evaluate(`document.querySelector("#rows tr td.num.wide:last-child").textContent = "old"`, nil))
	// The server has sent the same, so nothing is replaced: the script remembers what the server sent last.
	b.await(t, `document.getElementById("pulse").textContent === "live"`)
	if !is[bool](t, b, `document.getElementById("pick-research_too-hot").checked`) {
		t.Error("a tick is lost")
	}
	if over := is[float64](t, b, `document.querySelector("#rows").getBoundingClientRect().top - window.top0`); over != 0 {
		t.Errorf("the rows move by %g pixels", over)
	}
	b.expectClean(t)
}

// TestKeyboard walks from the list of runs to a conversation with keys alone.
func TestKeyboard(t *testing.T) {
	b := open(t, read)
	b.do(t, chromedp.Navigate(b.host+"/"))
	b.await(t, `document.getElementById("pulse").textContent === "live"`)
	b.do(t, chromedp.KeyEvent("/"))
	b.await(t, `document.activeElement.name === "q"`)
	// Keys that tests send are typed as well, though the page has taken them.
	b.do(t, chromedp.Evaluate(`document.activeElement.value = ""`, nil))
	b.do(t, chromedp.KeyEvent("qwen3-s40\r"))
	b.await(t, `location.search === "?q=qwen3-s40" && document.querySelectorAll("#rows tr").length === 1`)
	b.await(t, `document.getElementById("pulse").textContent === "live"`)
	b.do(t, chromedp.KeyEvent("j"))
	b.await(t, `document.activeElement.textContent === "countdown-qwen3-s40"`)
	b.do(t, chromedp.KeyEvent("\r"))
	b.await(t, `location.pathname.endsWith("/countdown-qwen3-s40")`)
	b.await(t, `document.getElementById("pulse") && document.getElementById("pulse").textContent === "live"`)
	for range 40 {
		b.do(t, chromedp.KeyEvent("\t"))
		if is[string](t, b, `document.activeElement.textContent`) == "Conversations" {
			break
		}
		if outline := is[string](t, b, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
			t.Errorf("%s has no outline", is[string](t, b, `document.activeElement.outerHTML.slice(0, 80)`))
		}
	}
	b.do(t, chromedp.KeyEvent("\r"))
	b.await(t, `location.pathname.endsWith("/conversations") && document.querySelector("article") &&
		document.readyState === "complete"`)
	b.do(t, chromedp.KeyEvent("j"))
	b.await(t, `document.activeElement.closest(".groups")`)
	b.do(t, chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	b.await(t, `location.search.includes("slot=") && document.querySelector(".groups li:nth-child(2).chosen")`)
	b.expectClean(t)
}
