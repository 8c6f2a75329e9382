// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// toolServer is an answerServer that declares another tool besides the tool for answers while declares is true.
type toolServer struct {
	*answerServer
	declares atomic.Bool
}

func newToolServer(t *testing.T, declares bool) *toolServer {
	t.Helper()
	s := &toolServer{answerServer: newAnswerServer(t)}
	s.declares.Store(declares)
	s.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if !s.declares.Load() || !strings.HasSuffix(r.URL.Path, "/task_tools") {
			return false
		}
		fmt.Fprint(w,
			`{"tools": [{"name": "look", "description": "Shows the letters.", "input_schema": {"type": "object"}}],`+
				`"terminal_tool": {"name": "submit", "arg": "answer", "description": ""}}`)
		return true
	}
	return s
}

// newToolFixture prepares a run on the server. The format of its model has no tools.
func newToolFixture(t *testing.T, s *toolServer, dialect settings.ToolDialect) *fixture {
	t.Helper()
	w := newFixture(t, func(f *contract.RunFile) {
		e := served("letters", "http://letters") // The digest of the definition covers the server's address.
		e.Definition.Interaction = &settings.Interaction{ToolUse: &settings.ToolUse{
			Dialect: dialect, ParseErrors: settings.ParseErrors{MaxConsecutive: new(int32(2)), Train: settings.KeepParseErrors},
		}}
		f.Fixed.Environments, f.Evaluation = []contract.Environment{e}, nil
		f.Fixed.Algorithm.Steps = 2
	})
	w.file.Fixed.Environments[0].Definition.ORS.URL = s.url
	w.startRolloutWorker("w0")
	return w
}

// TestToolsThatTheFormatCannotDeclare trains a model whose format has no tools on a server that declares one. The run
// reports the environment and the field, commits nothing, and does not report the server as unavailable. Once the
// server declares no tool, it has the weights of a run that was never blocked.
func TestToolsThatTheFormatCannotDeclare(t *testing.T) {
	t.Parallel()
	plain := newToolFixture(t, newToolServer(t, false), "")
	want := plain.outcome(plain.waitFor(plain.startLearner(1, nil), contract.CauseCompleted))

	server := newToolServer(t, true)
	w := newToolFixture(t, server, "")
	a := w.startLearner(1, nil)
	blocked := w.awaitProblem(a, problem.UnsupportedByFormat).Evidence
	for _, part := range []string{`environment "letters"`, "declaring tools", "interaction.toolUse.dialect", "HermesJSON",
		"model.renderer"} {
		if !strings.Contains(blocked, part) {
			t.Errorf("the run waits for %q, which does not name %q", blocked, part)
		}
	}
	// More tries fail, in several groups, than a breaker tolerates.
	requests := len(server.Log())
	w.until("the prompts are asked for again", func() bool { return len(server.Log()) > requests+50 })
	reply, err := w.heartbeat(a, 1, contract.DesiredRun)
	if err != nil || reply.Progress.Step != 0 || len(reply.Unavailable) > 0 || len(w.outcomes()) > 0 {
		t.Errorf("the learner answers %+v, %v with the groups %v; want no step, no group and no unavailable environment",
			reply, err, w.outcomes())
	}
	server.declares.Store(false)
	w.compare(w.waitFor(a, contract.CauseCompleted), want)
	if diff := cmp.Diff(plain.timelessMetrics(), w.timelessMetrics()); diff != "" {
		t.Errorf("metrics (-never blocked +blocked):\n%s", diff)
	}
}

// TestToolsInADialect trains the same model on the same server with a dialect of tool calls, so that the format need
// not have tools.
func TestToolsInADialect(t *testing.T) {
	t.Parallel()
	w := newToolFixture(t, newToolServer(t, true), settings.HermesJSON)
	w.waitFor(w.startLearner(1, nil), contract.CauseCompleted)
	outcomes := w.outcomes()
	for slot, outcome := range outcomes {
		if outcome == rl.EnvironmentFault.String() {
			t.Errorf("the group of slot %d is a fault", slot)
		}
	}
	if len(outcomes) == 0 {
		t.Error("no group was played")
	}
}
