// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/transcript"
)

const attack = `</pre><script>alert("x")</script><img src=x onerror=alert(1)>`

// hostile is a step in which every text tries to break out of the page.
func hostile() transcript.Step {
	reward := 0.5
	return transcript.Step{Step: 3, Lineage: attack, SampledAt: 2, Missing: attack, Groups: []transcript.Group{{
		Environment: attack, Outcome: "Usable", Reason: attack, Missing: attack, Episodes: []transcript.Episode{{
			Outcome: attack, Reason: attack, StopReason: attack, Parts: map[string]float64{attack: 1}, Metrics: map[string]float64{attack: 1},
			Conversations: []transcript.Conversation{{
				Role: attack, Key: attack, Reward: &reward, StopReason: attack, Omitted: attack,
				Tools: []transcript.Tool{{Name: attack, Description: attack, Parameters: []byte(`"` + `<script>` + `"`)}},
				Messages: []transcript.Message{{Role: attack, Text: attack, Thinking: attack, Name: attack, Problem: attack, NewPrompt: true,
					Calls: []transcript.Call{{Name: attack, Arguments: attack}}}},
				Judgements: []transcript.Judgement{{Criterion: attack, Rationale: attack}},
			}},
		}},
	}}}
}

func TestRenderEscapesTexts(t *testing.T) {
	data, err := Render(hostile())
	if err != nil {
		t.Fatal(err)
	}
	html := string(data)
	if found := regexp.MustCompile(`(?i)<(script|img)`).FindString(html); found != "" {
		t.Errorf("the page has %s", found)
	}
	if count := strings.Count(html, "&lt;script&gt;alert(&#34;x&#34;)"); count < 20 {
		t.Errorf("the page shows the text %d times, want it for each of its fields", count)
	}
}

func TestRenderNeedsNoNetwork(t *testing.T) {
	data, err := Render(transcript.Step{Step: 1, Missing: "lost"})
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?i)(src|href|url|@import)\s*[=(]|https?://`).FindString(string(data)); found != "" {
		t.Errorf("the page refers to something else: %s", found)
	}
	if !strings.Contains(string(data), "default-src &#39;none&#39;") && !strings.Contains(string(data), "default-src 'none'") {
		t.Error("the page permits a browser to load something")
	}
}
