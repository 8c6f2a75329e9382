// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/uitest"
)

func TestScale(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	const action = stuck + "/actions/scale"
	f.expect(t, stuck, `href="`+action+`"`)
	f.expect(t, action, `name="replicas" value="4"`, `!method="post"`)
	f.expect(t, action+"?check=1&replicas=many", "give a whole number", `!method="post"`)
	f.expect(t, action+"?check=1&replicas=8", "is scaled to 8 workers", `method="post"`,
		"kubectl tinker scale countdown-qwen3 --namespace research --replicas 8")
	if f.specOf(t, uitest.Stuck).Rollouts.Workers != nil {
		t.Fatal("the page that asks changes the run")
	}
	answer, page := f.post(t, action, url.Values{"replicas": {"8"}})
	if workers := f.specOf(t, uitest.Stuck).Rollouts.Workers; answer.StatusCode != http.StatusSeeOther || workers == nil ||
		*workers != 8 {
		t.Errorf("the action answers %s:\n%s", answer.Status, page)
	}
	f.expect(t, "/runs/research/notes-sft", "!actions/scale")
	f.expect(t, "/runs/research/notes-sft/actions/scale?check=1&replicas=2", "has no workers")
}

func TestFork(t *testing.T) {
	f := newFixture(t, interceptor.Funcs{}, uitest.Read)
	f.expect(t, stuck, "actions/fork?step=30&amp;name=countdown-qwen3-s30",
		"kubectl tinker checkpoints delete countdown-qwen3 --namespace research --step 30")
	const action = stuck + "/actions/fork"
	f.expect(t, action+"?step=30&name=countdown-qwen3-s30", `name="step" value="30"`, `!method="post"`)
	values := url.Values{"step": {"30"}, "name": {"longer"}, "check": {"1"},
		"set": {"spec.environments[countdown].sampling.maxTokens=1024\nspec.algorithm.steps=20\n"}}
	page := html.UnescapeString(f.expect(t, action+"?"+values.Encode(), "forked as longer", `method="post"`))
	if !strings.Contains(page, "--set spec.algorithm.steps=20") || !strings.Contains(page, "--step 30 --name longer") {
		t.Errorf("the page lacks the command:\n%s", page)
	}
	wrong := url.Values{"step": {"31"}, "name": {"x"}, "check": {"1"}}
	f.expect(t, action+"?"+wrong.Encode(), "of step 31", `!method="post"`)
	wrong = url.Values{"step": {"30"}, "name": {"x"}, "check": {"1"}, "set": {"spec.algorithm.step=20"}}
	f.expect(t, action+"?"+wrong.Encode(), "spec.algorithm.steps", `!method="post"`)
	answer, page := f.post(t, action, values)
	if answer.Header.Get("Location") != "/runs/research/longer" {
		t.Fatalf("the fork is answered with %s:\n%s", answer.Status, page)
	}
	spec := f.specOf(t, "longer")
	if spec.Environments[0].Sampling.MaxTokens != 1024 || spec.InitFrom == nil ||
		spec.InitFrom.Checkpoint != "tinker://8d0f-2c41:train:0/weights/s30-lineage" {
		t.Errorf("the fork is %+v", spec)
	}
	if answer, page = f.post(t, action, values); answer.StatusCode == http.StatusSeeOther ||
		!strings.Contains(page, "exists already") {
		t.Errorf("the second fork is answered with %s:\n%s", answer.Status, page)
	}
	f.expect(t, "/runs/research/longer", "It begins with the weights of", `href="/runs/research/countdown-qwen3"`,
		"spec.environments[countdown].sampling.maxTokens")
}
