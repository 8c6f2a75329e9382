// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

const attack = `</pre><script>alert("x")</script><img src=x onerror=alert(1)>`

// hostile returns a step in which every text tries to break out of the page.
func hostile() transcript.Step {
	reward := 0.5
	return transcript.Step{Step: 3, Lineage: attack, SampledAt: 2, Missing: attack, Groups: []transcript.Group{{
		Environment: attack, Outcome: "Usable", Reason: attack, Missing: attack, Episodes: []transcript.Episode{{
			Outcome: attack, Reason: attack, StopReason: attack, Parts: map[string]float64{attack: 1},
			Metrics: map[string]float64{attack: 1},
			Conversations: []transcript.Conversation{{
				Role: attack, Key: attack, Reward: &reward, StopReason: attack, Omitted: attack, PrefixBroken: attack,
				Tools: []transcript.Tool{{Name: attack, Description: attack, Parameters: []byte(`"` + `<script>` + `"`)}},
				Messages: []transcript.Message{{Role: attack, Text: attack, Thinking: attack, Name: attack, Problem: attack,
					NewPrompt: true, PrefixBroken: attack,
					Calls: []transcript.Call{{Name: attack, Arguments: attack}}}},
				Judgements: []transcript.Judgement{{Criterion: attack, Rationale: attack}},
			}},
		}},
	}}}
}

func TestRenderEscapesTexts(t *testing.T) {
	html := string(Render(hostile()))
	if found := regexp.MustCompile(`(?i)<(script|img)`).FindString(html); found != "" {
		t.Errorf("the page has %s", found)
	}
	if count := strings.Count(html, "&lt;script&gt;alert(&#34;x&#34;)"); count < 20 {
		t.Errorf("the page shows the text %d times, want it for each of its fields", count)
	}
}

// TestEveryTextHasAPlace looks for markup with more places than texts.
func TestEveryTextHasAPlace(t *testing.T) {
	html := string(Render(hostile()))
	if strings.Contains(strings.TrimPrefix(html[strings.Index(html, "</style>"):], "</style>"), "%") {
		t.Error("the page has a place without a text")
	}
}

func TestEscapeReplacesWhatHTMLDoesNotPermit(t *testing.T) {
	if got, want := escape("a\x00b\xff<'\">&"), "a\uFFFDb\uFFFD&lt;&#39;&#34;&gt;&amp;"; got != want {
		t.Errorf("the text becomes %q, want %q", got, want)
	}
}

func TestRenderNeedsNoNetwork(t *testing.T) {
	data := Render(transcript.Step{Step: 1, Missing: "lost"})
	if found := regexp.MustCompile(`(?i)(src|href|url|@import)\s*[=(]|https?://`).FindString(string(data)); found != "" {
		t.Errorf("the page refers to something else: %s", found)
	}
	if !strings.Contains(string(data), "default-src &#39;none&#39;") && !strings.Contains(string(data),
		"default-src 'none'") {
		t.Error("the page permits a browser to load something")
	}
}

// golden returns a step that has each part of a page.
func golden() transcript.Step {
	reward := 0.123456
	return transcript.Step{Step: 12, Lineage: "3f2a9c1e", SampledAt: 11, Groups: []transcript.Group{
		{Slot: 40, Environment: "sums", Outcome: "Usable", Episodes: []transcript.Episode{
			{Index: 0, Outcome: "Usable", Reward: 1, StopReason: "stop", Parts: map[string]float64{"style": 0.25, "exact": 1},
				Metrics: map[string]float64{"correct": 1},
				Conversations: []transcript.Conversation{{Messages: []transcript.Message{
					{Role: "user", Text: "What is 1 < 2 & \"so on\"?\n\n  It's 'quoted'."},
					{Role: "assistant", Thinking: "well", Text: "Yes.", Reply: 1},
				}}}},
			{Index: 1, Outcome: "Usable", Retries: 2, Conversations: []transcript.Conversation{
				{Role: "solver", Key: "0", Reward: &reward, StopReason: "length", Omitted: "2 messages are left out",
					Tools: []transcript.Tool{{Name: "add", Description: "adds", Parameters: []byte(`{"type":"object"}`)},
						{Name: "stop"}},
					Messages: []transcript.Message{
						{Role: "system", Text: "Be short."}, {Role: "assistant", Reply: 1,
							Calls: []transcript.Call{{Name: "add", Arguments: "{}"}, {Name: "stop"}}},
						{Role: "tool", Name: "add", Text: "3", Reward: new(0.25)}, {Role: "user", Text: "again", NewPrompt: true},
						{Role: "assistant", Reply: 2, Text: "{", Problem: "no JSON"},
						{Role: "tool", Name: "stop", Text: "Thank you.", Reward: new(0.0), Finished: true},
					},
					Judgements: []transcript.Judgement{{Criterion: "is short", Rating: 0.5, Rationale: "not quite"},
						{Criterion: "is polite", Rating: 1}}},
				{Key: "1", PrefixBroken: "user", Messages: []transcript.Message{
					{Role: "assistant", Text: "Yes.", Reply: 1, PrefixBroken: "format"}}},
			}},
			{Index: 2, Outcome: "EnvironmentFault", Reason: "it crashed"},
		}},
		{Slot: 41, Environment: "sums", Outcome: "Deadline", Reason: "too long",
			Missing: "the group's worker recorded no conversations"},
	}}
}

var update = flag.Bool("update", false, "write the golden pages anew")

func TestRenderGoldenPages(t *testing.T) {
	for name, step := range map[string]transcript.Step{"groups": golden(), "missing": {Step: 3, Lineage: "a", SampledAt: 2,
		Missing: "it was lost"}} {
		got := Render(step)
		file := filepath.Join("testdata", name+".html")
		if *update {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("the page %s (-want +got):\n%s", name, diff)
		}
	}
}
