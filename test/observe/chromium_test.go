// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build observe

package observe

import (
	"bytes"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/transcript/page"
)

const (
	browser = "chromium-headless-shell"
	hostile = `</pre><script src="/script.js"></script><img src="/image.png" onerror="document.title='executed'">What is 2 + 2?`
)

// hostileStep is a step whose texts would load a script and an image if a browser took them for markup.
func hostileStep() transcript.Step {
	reward := 1.0
	return transcript.Step{Step: 3, Lineage: strings.Repeat("0", 64), SampledAt: 2, Groups: []transcript.Group{{
		Environment: "arithmetic", Outcome: "Usable", Episodes: []transcript.Episode{{
			Outcome: "Usable", Reward: reward, StopReason: "stop", Conversations: []transcript.Conversation{{
				Reward: &reward, StopReason: "stop",
				Messages: []transcript.Message{{Role: "user", Text: hostile}, {Role: "assistant", Text: "4", Thinking: hostile,
					Reply: 1, Reward: &reward}},
				Judgements: []transcript.Judgement{{Criterion: hostile, Rating: 1, Rationale: hostile}},
			}},
		}},
	}}}
}

// server serves the page of a step, and notes the paths of all other requests.
type server struct {
	mu     sync.Mutex
	others []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" {
		_, _ = w.Write(page.Render(hostileStep()))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others = append(s.others, r.URL.Path)
	http.NotFound(w, r)
}

// TestTranscriptPageInChromium opens the page of a step in a browser, and checks that texts that look like markup are
// shown as text, and that nothing but the page is loaded. With -artifacts, it keeps the screenshot.
func TestTranscriptPageInChromium(t *testing.T) {
	handler := new(server)
	served := httptest.NewServer(handler)
	defer served.Close()
	run := func(arguments ...string) []byte {
		command := exec.CommandContext(t.Context(), browser,
			append([]string{"--no-sandbox", "--disable-gpu", "--window-size=1000,800"}, append(arguments, served.URL+"/")...)...)
		var problems bytes.Buffer
		command.Stderr = &problems
		output, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", browser, err, problems.String())
		}
		return output
	}
	dom := string(run("--dump-dom"))
	if found := regexp.MustCompile(`(?i)<(script|img)[^>]*>|executed</title>`).FindString(dom); found != "" {
		t.Errorf("the browser has made an element of a text: %s", found)
	}
	if got := strings.Count(dom, `&lt;script src="/script.js"&gt;`); got != 4 {
		t.Errorf("the browser shows the text %d times, want 4:\n%s", got, dom)
	}
	path := filepath.Join(t.ArtifactDir(), "transcript.png")
	run("--screenshot=" + path)
	if got := coloursOf(t, path); got < 10 {
		t.Errorf("the screenshot has %d colours, want a page with text", got)
	}
	handler.mu.Lock()
	defer handler.mu.Unlock()
	if loaded := slices.DeleteFunc(handler.others,
		func(path string) bool { return path == "/favicon.ico" }); len(loaded) > 0 {
		t.Errorf("the page has the browser load %v", loaded)
	}
	version, _ := exec.CommandContext(t.Context(), browser, "--version").Output()
	t.Logf("%s; the screenshot is %s", strings.TrimSpace(string(version)), path)
}

// coloursOf counts the colours of a picture.
func coloursOf(t *testing.T, path string) int {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	colours := map[color.Color]bool{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			colours[picture.At(x, y)] = true
		}
	}
	return len(colours)
}
