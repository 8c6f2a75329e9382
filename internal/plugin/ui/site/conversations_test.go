// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/uitest"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

func TestConversations(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	const page = stuck + "/conversations"
	f.expect(t, page, "Step 48, sampled by version 47", "24 of 24 episodes fit", "slot 1536", "advantage", "Use 3, 5, 8",
		`rel="prev"`, "length")
	f.expect(t, page+"?step=12", "Step 12, sampled by version 11", "advantage &#43;", `rel="next"`, `value="12"`)
	f.expect(t, page+"?step=40&stop=stop", "6 of 24 episodes fit")
	f.expect(t, page+"?step=40&greatest=0.5", "!reward good")
	f.expect(t, page+"?step=40&q=nothing+says+this", "0 of 24 episodes fit", "!<article")
	f.expect(t, page+"?step=12&slot=385&episode=2", "Slot 385", "All episodes of the group", ">episode 2<", "!>episode 1<")
	f.expect(t, page+"?step=12&evaluation=1", "Evaluation of version 12")
	coloured := f.expect(t, page+"?step=12&slot=385&episode=2&colour=logprob", `class="t-p0"`, "log-probability -0.02",
		"log-ratio of trainer and sampler", "segment 1:")
	if n := strings.Count(coloured, `<span class="t-p`); n < 80 {
		t.Errorf("%d tokens are coloured", n)
	}
	f.expect(t, page+"?step=12&slot=385&episode=2&colour=advantage", `class="t-`, "advantage ")
	if answer, text := f.get(t, page+"?step=99"); answer.StatusCode != http.StatusOK ||
		!strings.Contains(text, "has no transcript of step 99") {
		t.Errorf("a step without a transcript is answered with %s", answer.Status)
	}
}

// counted counts reads of transcripts, and makes each of them wait until it is released.
type counted struct {
	mu       sync.Mutex
	reads    int
	now      int
	together int
	release  chan struct{}
	err      error
}

func (c *counted) read(ctx context.Context, run *v1alpha1.TrainingRun, step int64,
	evaluation bool) (transcript.Step, []int64, error) {
	c.mu.Lock()
	c.reads++
	c.now++
	c.together = max(c.together, c.now)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now--
		c.mu.Unlock()
	}()
	select {
	case <-c.release:
	case <-ctx.Done():
		return transcript.Step{}, nil, ctx.Err()
	}
	if c.err != nil {
		return transcript.Step{}, nil, c.err
	}
	return uitest.Read(ctx, run, step, evaluation)
}

// TestATranscriptIsReadOnce checks that a transcript is read once, however many pages want it, and that the transcripts
// of a run are read one after another.
func TestATranscriptIsReadOnce(t *testing.T) {
	c := &counted{release: make(chan struct{})}
	f := newFixture(t, interceptor.Funcs{}, c.read)
	for range 3 {
		answer, page := f.do(t, http.MethodGet, stuck+"/conversations?step=3")
		if answer.Header.Get("X-Pending") == "" || !strings.Contains(page, "A pod reads the artifacts of the run, since") {
			t.Fatalf("while it is read the page is:\n%s", page)
		}
	}
	f.do(t, http.MethodGet, stuck+"/conversations?step=4")
	close(c.release)
	f.expect(t, stuck+"/conversations?step=4", "24 of 24")
	f.expect(t, stuck+"/conversations?step=3", "24 of 24")
	if c.reads != 2 || c.together != 1 {
		t.Errorf("%d reads were made, %d at once, want 2, one at a time", c.reads, c.together)
	}
}

// TestReadsEndWithTheCommand checks that reads end with the command, so that their pods are deleted.
func TestReadsEndWithTheCommand(t *testing.T) {
	c := &counted{release: make(chan struct{})}
	l := newLibrary(c.read)
	ctx, cancel := context.WithCancel(t.Context())
	l.begin(ctx)
	run := &v1alpha1.TrainingRun{}
	if _, whole := l.get(t.Context(), run, 1, false, glance); whole {
		t.Fatal("the transcript is there before it is read")
	}
	cancel()
	l.reads.Wait()
	if found, whole := l.get(t.Context(), run, 1, false, patience); !whole || !errors.Is(found.err, context.Canceled) {
		t.Errorf("the read ends with %v", found.err)
	}
}

// TestWhoMayNotCreatePods checks that a person who may not create pods sees why there are no conversations, and sees
// all other pages.
func TestWhoMayNotCreatePods(t *testing.T) {
	c := &counted{release: make(chan struct{})}
	close(c.release)
	c.err = fmt.Errorf("creating a pod that reads the artifacts: %w: ask for Kubernetes' role edit",
		apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no role")))
	f := newFixture(t, interceptor.Funcs{}, c.read)
	f.expect(t, stuck+"/conversations", "ask for Kubernetes&#39; role edit", "The other pages show everything else")
	f.expect(t, stuck, "RepliesCut")
}

// TestConversationsHaveTheCausesOfBranches shows why a branch begins, and why the tokens of a reply begin anew.
func TestConversationsHaveTheCausesOfBranches(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, func(ctx context.Context, run *v1alpha1.TrainingRun, step int64,
		evaluation bool) (transcript.Step, []int64, error) {
		out, steps, err := uitest.Read(ctx, run, step, evaluation)
		branch := &out.Groups[0].Episodes[0].Conversations[0]
		branch.Key, branch.PrefixBroken = "agent/2", "system"
		branch.Messages[1].PrefixBroken = "format"
		return out, steps, err
	})
	f.expect(t, stuck+"/conversations", "agent/2",
		"prefix broken: system, the conversation equals another one up to a message of this role.",
		"prefix broken: format, the model&#39;s format has rewritten earlier replies, and the tokens begin anew.")
}

// TestHostileTexts checks that hostile texts are shown as text: they add no element, attribute or control character.
func TestHostileTexts(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.ReadHostile)
	page := f.expect(t, stuck+"/conversations", "&lt;script", `\u{1B}[31mred`, `\u{202E}esrever\u{202C}`, `\u{200B}z`,
		"!\x1b", "!\u202e", "!\u2066", "!\u200b", "!javascript:alert(2)\">")
	for _, element := range []string{`<script[^>]*>`, `<img`, `<a href="javascript`, `\son[a-z]+=["']`, `style="`} {
		own := regexp.MustCompile(`<script defer src="/assets/[a-z./]+\?v=[0-9a-f]+">`)
		if found := regexp.MustCompile("(?i)" + element).FindString(own.ReplaceAllString(page, "")); found != "" {
			t.Errorf("the page has %s", found)
		}
	}
	if len(page) > 256<<10 {
		t.Errorf("the page has %d bytes, though its line is cut", len(page))
	}
	more := regexp.MustCompile(`href="([^"]+)" data-more>(\d+) more bytes`).FindStringSubmatch(page)
	if more == nil {
		t.Fatal("the page has no button for the rest of the line")
	}
	if want := fmt.Sprint(uitest.LongLine - most); more[2] != want {
		t.Errorf("%s bytes are left, want %s", more[2], want)
	}
	answer, text := f.get(t, strings.ReplaceAll(more[1], "&amp;", "&"))
	if answer.StatusCode != http.StatusOK || len(text) != most || answer.Header.Get("X-Next") == "" ||
		!strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("the rest is answered with %s and %d bytes", answer.Status, len(text))
	}
	place := strings.ReplaceAll(more[1], "&amp;", "&")
	place = regexp.MustCompile(`message=\d+`).ReplaceAllString(place, "message=0")
	place = regexp.MustCompile(`from=\d+`).ReplaceAllString(place, "from=0")
	if _, text := f.get(t, place); strings.ContainsAny(text, "\x1b\u202e") || !strings.Contains(text, `\u{1B}`) {
		t.Errorf("a text of its own is %q", text)
	}
	if answer, _ := f.get(t, stuck+"/text?step=3&slot=7&episode=0&conversation=9&message=0&field=text"); answer.
		StatusCode != http.StatusNotFound {
		t.Errorf("a place without a text is answered with %s", answer.Status)
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\ttext é 👩‍🔬": "plain\n\ttext é 👩‍🔬", "a\x1b[2Jb": `a\u{1B}[2Jb`,
		"\u202dx": `\u{202D}x`, "\x9b1m": "\x9b1m",
		"\u009b1m": `\u{9B}1m`, "\U000E0041": `\u{E0041}`, "a\u00adb\ufeff": `a\u{AD}b\u{FEFF}`,
	} {
		if got := string(visible([]byte(text))); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestExcerpts(t *testing.T) {
	text := strings.Repeat("é", most)
	whole, from := "", 0
	for {
		part := excerptOf(text, from)
		whole += part.Text
		if part.Left == 0 {
			break
		}
		from = part.Next
	}
	if whole != text {
		t.Errorf("the parts have %d bytes of %d", len(whole), len(text))
	}
	if got := excerptOf("abc", 7); got.Text != "" {
		t.Errorf("behind the end is %q", got.Text)
	}
}
