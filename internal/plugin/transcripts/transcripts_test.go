// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transcripts

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/output"
	"github.com/tinker-operator/tinker-operator/internal/transcript"
	"github.com/tinker-operator/tinker-operator/internal/transcript/delivery"
)

func newRun() *v1alpha1.TrainingRun {
	return &v1alpha1.TrainingRun{
		ObjectMeta: metav1.ObjectMeta{Name: "arithmetic", Namespace: "default", UID: "uid-1"},
		Spec:       v1alpha1.TrainingRunSpec{Artifacts: &v1alpha1.Artifacts{ClaimName: "runs"}},
	}
}

func step() transcript.Step {
	return transcript.Step{Step: 3, Lineage: "abc",
		Groups: []transcript.Group{{Slot: 9, Environment: "sums", Outcome: "Usable", Episodes: []transcript.Episode{{
			Outcome: "Usable", Reward: 1, StopReason: "stop",
			Conversations: []transcript.Conversation{{Messages: []transcript.Message{
				{Role: "user", Text: "What is <script>1 + 1?"}, {Role: "assistant", Text: "2\x1b[31m", Reply: 1},
			}}},
		}}}}}
}

// TestPrintHasRewardsOfMessages prints the environment's rewards for results of tools.
func TestPrintHasRewardsOfMessages(t *testing.T) {
	var out strings.Builder
	Print(&out, transcript.Step{Groups: []transcript.Group{
		{Episodes: []transcript.Episode{{Conversations: []transcript.Conversation{{
			Messages: []transcript.Message{
				{Role: "tool", Name: "look", Text: "1 and 2", Reward: new(0.25)}, {Role: "user", Text: "Go on."},
				{Role: "tool", Name: "submit", Text: "Thank you.", Reward: new(0.0), Finished: true},
				{Role: "tool", Name: "end", Text: "Bye.", Finished: true},
			},
		}}}}}}})
	_, got, _ := strings.Cut(out.String(), "    tool look")
	want := ": 1 and 2\n    (reward 0.25)\n    user: Go on.\n    tool submit: Thank you.\n    (reward 0; the " +
		"environment ended the episode)\n" +
		"    tool end: Bye.\n    (the environment ended the episode)\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestPrintHasTheCausesOfBrokenPrefixes prints why a branch begins, and why the tokens of a reply begin anew.
func TestPrintHasTheCausesOfBrokenPrefixes(t *testing.T) {
	var out strings.Builder
	Print(&out, transcript.Step{Groups: []transcript.Group{
		{Episodes: []transcript.Episode{{Conversations: []transcript.Conversation{{Key: "agent/2", PrefixBroken: "fork",
			Messages: []transcript.Message{{Role: "user", Text: "Go on."}, {Role: "assistant", Text: "1", Reply: 1},
				{Role: "assistant", Text: "2", Reply: 2, PrefixBroken: "tools"},
				{Role: "assistant", Text: "3", Reply: 3, PrefixBroken: "of-a-newer-version"}}}}}}}}})
	_, got, _ := strings.Cut(out.String(), "    conversation ")
	want := " agent/2\n" +
		"    (prefix broken: fork, the request extends a reply that another request has extended)\n" +
		"    user: Go on.\n    assistant: 1\n" +
		"    (prefix broken: tools, the declared tools have changed, and the tokens begin anew)\n" +
		"    assistant: 2\n    (prefix broken: of-a-newer-version)\n    assistant: 3\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the conversation (-want +got):\n%s", diff)
	}
}

func TestShow(t *testing.T) {
	encoded, err := json.Marshal(step())
	if err != nil {
		t.Fatal(err)
	}
	show := func(f flags) string {
		var stdout bytes.Buffer
		if err := f.show(t.Context(), cli.IO{Stdout: &stdout}, "arithmetic", step(), encoded); err != nil {
			t.Fatal(err)
		}
		return stdout.String()
	}
	format := func(f output.Format) *output.Format { return &f }
	want := `step 3, sampled by version 0

slot 9  environment sums  Usable
  episode 0  reward 1  stop reason stop
    user: What is <script>1 + 1?
    assistant: 2�[31m
`
	if diff := cmp.Diff(want, show(flags{format: format(output.Table)})); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if got := show(flags{format: format(output.Plain)}); got != strings.Join(episodeHeader, "\t")+
		"\n3\t9\tsums\t0\t1\tUsable\tstop\n" {
		t.Errorf("plain lines are %q", got)
	}
	var decoded transcript.Step
	if err := json.Unmarshal([]byte(show(flags{format: format(output.JSON)})), &decoded); err != nil ||
		decoded.Groups[0].Slot != 9 {
		t.Errorf("JSON is %+v, %v", decoded, err)
	}
	dir := t.TempDir()
	for name, want := range map[string]string{"a.html": "&lt;script&gt;1", "a.json": `"lineage":"abc"`} {
		file := filepath.Join(dir, name)
		if got := show(flags{save: file}); got != file+"\n" {
			t.Errorf("it prints %q", got)
		}
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s lacks %q: %v", name, want, err)
		}
	}
}

func TestQuestionsAreArguments(t *testing.T) {
	for want, q := range map[string]question{
		"--step=3": {step: 3}, "--step=-1 --evaluation": {step: newest, evaluation: true}, "--lines=5": {lines: 5},
	} {
		if got := strings.Join(q.args(), " "); got != want {
			t.Errorf("%+v has the arguments %s, want %s", q, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	run := newRun()
	for want, f := range map[string]flags{"first step is 1": {step: 0}, "leave out --step": {step: 3, list: true},
		".html or .json": {step: newest, save: "x.txt"}} {
		if err := f.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want it to have %q", err, want)
		}
	}
	if _, err := chosen(run, 9, delivery.Delivery{Steps: []int64{1, 2, 3, 7, 10, 11}}); err == nil ||
		!strings.Contains(err.Error(), "choose one of 1-3, 7, 10-11") {
		t.Errorf("a step without a transcript: %v", err)
	}
	if _, err := chosen(run, newest, delivery.Delivery{}); err == nil || !strings.Contains(err.Error(),
		"kubectl tinker why") {
		t.Errorf("a run without transcripts: %v", err)
	}
	run.Spec.Artifacts.GroupsPerStep = new(int32(0))
	if err := written(run, true); err != nil {
		t.Errorf("results without conversations: %v", err)
	}
	if err := written(run, false); err == nil || !strings.Contains(err.Error(), "groupsPerStep is 0") {
		t.Errorf("without groups the error is %v", err)
	}
	run.Spec.Artifacts = nil
	if err := written(run, false); err == nil || !strings.Contains(err.Error(), "set spec.artifacts") {
		t.Errorf("without artifacts the error is %v", err)
	}
}

// TestRefusalsOfARunThatIsOver checks that the refusals for a run that is over give only advice that applies to it.
func TestRefusalsOfARunThatIsOver(t *testing.T) {
	run := newRun()
	run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}}
	_, none := chosen(run, newest, delivery.Delivery{})
	run.Spec.Artifacts = nil
	for want, err := range map[string]error{
		"is over: none of its steps":                                none,
		"in another run: this one is over, and kubectl tinker fork": written(run, false),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "resume") ||
			strings.Contains(err.Error(), "waits for") {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// TestPrintCleansWhatEnvironmentsChoose prints a role that an environment server chose: no escape sequence reaches the
// terminal.
func TestPrintCleansWhatEnvironmentsChoose(t *testing.T) {
	hostile := step()
	conversation := &hostile.Groups[0].Episodes[0].Conversations[0]
	conversation.Messages[0].Role = "user\x1b]0;title\x07"
	var out strings.Builder
	Print(&out, hostile)
	if strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Errorf("the terminal gets %q", out.String())
	}
}
