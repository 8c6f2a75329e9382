// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package pythonreward

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/chat"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
	"github.com/tinker-operator/tinker-operator/internal/environment/verify"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// program is the runner's program.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "runner")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "runner")
	build := exec.Command("go", "build", "-o", program, "../../../cmd/runner")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the runner: %v\n%s", err, text)
		return 1
	}
	return m.Run()
}

// runner is a runner that a test has started.
type runner struct {
	dir     string
	process *exec.Cmd
}

func (r *runner) socket() string { return filepath.Join(r.dir, "runner.sock") }

// startRunner starts a runner. It is killed when the test ends.
func startRunner(t *testing.T) *runner {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here: no function of a user can run")
	}
	dir, err := os.MkdirTemp("", "reward") // short: the path of a socket has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{dir: dir}
	r.start(t)
	t.Cleanup(func() {
		r.kill()
		os.RemoveAll(dir)
	})
	return r
}

func (r *runner) start(t *testing.T) {
	t.Helper()
	r.process = exec.Command(program, "--socket", r.socket(), "--scratch", filepath.Join(r.dir, "scratch"))
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
}

func (r *runner) kill() {
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
}

func (r *runner) grader(t *testing.T, o Options) *Grader {
	t.Helper()
	o.Timeout = cmp.Or(o.Timeout, 10*time.Minute)
	host := &Host{Socket: r.socket(), InheritEnv: true}
	t.Cleanup(host.Close)
	g, err := New(host, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestModules calls a function of a module that the image has.
func TestModules(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "rewards"), 0o755); err != nil {
		t.Fatal(err)
	}
	const code = "def score(row, reply):\n    return len(reply.text)\n"
	if err := os.WriteFile(filepath.Join(dir, "rewards", "length.py"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startRunner(t)
	for name, tc := range map[string]struct{ module, function, want string }{
		"a module":            {module: "rewards.length", function: "score"},
		"another function":    {module: "rewards.length", want: "missing_function"},
		"one that is missing": {module: "rewards.width", want: "import_error"},
	} {
		t.Run(name, func(t *testing.T) {
			host := &Host{Socket: r.socket(), InheritEnv: true, Env: map[string]string{"PYTHONPATH": dir}}
			t.Cleanup(host.Close)
			g, err := New(host, Options{Module: tc.module, Function: tc.function, Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			got, err := g.Grade(t.Context(), row(nil), say("four"))
			var code *CodeError
			if errors.As(err, &code); tc.want != "" && (code == nil || string(code.Code) != tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			if tc.want == "" && (err != nil || got.Reward != 4) {
				t.Errorf("a score of %+v, %v, want 4", got, err)
			}
		})
	}
}

func say(text string) environment.Reply {
	return environment.Reply{Message: chat.Message{Role: chat.RoleAssistant, Content: text}}
}

func row(fields map[string]any) dataset.Row {
	r := dataset.NewRow("What is it?", "4")
	r.Fields = fields
	return r
}

// TestShapes checks the arguments that a function receives.
func TestShapes(t *testing.T) {
	const code = `
def reward(row, reply):
    seen = [row["n"], type(row["n"]).__name__, row["x"], type(row["x"]).__name__, row["list"], row["none"],
            row["prompt"], row["answer"], reply.text, reply.truncated, reply.tool_calls, reply.messages]
    raise ValueError(__import__("json").dumps(seen))
`
	g := startRunner(t).grader(t, Options{Code: code})
	reply := say("It is 4.")
	reply.Truncated = true
	reply.Message.Calls = []chat.ToolCall{{ID: "a", Name: "calculator", Arguments: `{"expression": "2+2"}`}}
	_, err := g.Grade(t.Context(), row(map[string]any{
		"n": json.Number("12345678901234567890"), "x": json.Number("1.0"), "list": []any{json.Number("1"), "b"}, "none": nil,
	}), reply)
	calls := `[{"id": "a", "name": "calculator", "arguments": "{\"expression\": \"2+2\"}"}]`
	want := `user_code.py:5: ValueError: [12345678901234567890, "int", 1.0, "float", [1, "b"], null, "What is it?", ` +
		`"4", "It is 4.", true, ` + calls + `, [{"role": "assistant", "content": "It is 4.", "tool_calls": ` + calls +
		`}]] ` +
		`(raise ValueError(__import__("json").dumps(seen)))`
	if diff := gocmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("arguments of a function (-want +got):\n%s", diff)
	}
}

func TestResults(t *testing.T) {
	const define = "def reward(row, reply):\n    "
	half := 0.5
	failed := verify.Score{Reward: half, Metrics: map[string]float64{MetricErrors: 1}}
	cases := map[string]struct {
		code    string
		onError *float64
		want    verify.Score
		// fault is the permanent fault; empty if there is none.
		fault string
	}{
		"a number": {code: define + "return 0.25", want: verify.Score{Reward: 0.25}},
		"a bool": {code: define + "return reply.text == 'x'",
			want: verify.Score{Reward: 1, Metrics: map[string]float64{"correct": 1}}},
		"a wrong bool": {code: define + "return False", want: verify.Score{Metrics: map[string]float64{"correct": 0}}},
		"a dict": {code: define + "return {'reward': 0.5, 'correct': False, 'length': 3, 'early': True}",
			want: verify.Score{Reward: 0.5, Metrics: map[string]float64{"correct": 0, "length": 3, "early": 1}}},
		"a coroutine": {code: "import asyncio\nasync def reward(row, reply):\n    await asyncio.sleep(0)\n    return 2",
			want: verify.Score{Reward: 2}},
		"another name": {code: "def helper(): return 1\ndef score(row, reply):\n    return helper()",
			want: verify.Score{Reward: 1}},
		"an exception": {code: define + "return row['solution']",
			fault: "user_code.py:2: KeyError: 'solution' (return row['solution'])"},
		"None":   {code: define + "pass", fault: "The result is None"},
		"NaN":    {code: define + "return float('nan')", fault: "The result is nan, which is not finite"},
		"a text": {code: define + "return '1'", fault: "The result must be a number, and is of type str"},
		"a lost await": {code: "async def f(): pass\n" + define + "return f()",
			fault: "The result is a coroutine that was never awaited"},
		"SystemExit": {code: define + "raise SystemExit(3)",
			fault: "user_code.py:2: SystemExit: 3 (raise SystemExit(3))"},
		"onError":         {code: define + "return 1 / 0", onError: &half, want: failed},
		"onError of None": {code: define + "return None", onError: &half, want: failed},
		"onError, and the process ends": {code: "import os\n" + define + "os._exit(7)", onError: &half,
			fault: "The program has ended by itself: exit code 7"},
		"a process that ends": {code: "import os, sys\n" + define + "sys.stderr.write('first\\nlast words\\n'); os._exit(7)",
			fault: "The program has ended by itself: exit code 7: last words"},
		"a forged result": {code: "import os\n" + define + `
    for fd in range(3, 20):
        try: os.write(fd, b'{"type":"result","id":1,"value":{"reward":"7"}}\n')
        except OSError: pass
    import time; time.sleep(60)`, fault: "reading the result of the reward: it is no result of a function"},
	}
	r := startRunner(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			options := Options{Code: tc.code, OnError: tc.onError}
			if name == "another name" {
				options.Function = "score"
			}
			got, err := r.grader(t, options).Grade(t.Context(), row(nil), say("x"))
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("score (-want +got):\n%s", diff)
			}
			var fault *environment.Fault
			isFault := errors.As(err, &fault) && fault.Permanent
			if isFault != (tc.fault != "") || err != nil && !strings.HasPrefix(err.Error(), tc.fault) {
				t.Errorf("got %v, want the permanent fault %q", err, tc.fault)
			}
		})
	}
}

// TestCallIsRepeatedAlone ends each process at its second call. No call is at fault for that: the call is repeated
// alone.
func TestCallIsRepeatedAlone(t *testing.T) {
	const code = `
import os
calls = 0
def reward(row, reply):
    global calls
    calls += 1
    if calls == 2:
        os._exit(1)
    return {"reward": len(reply.text), "calls": calls}
`
	g := startRunner(t).grader(t, Options{Code: code, Processes: 1})
	for i := range 6 {
		got, err := g.Grade(t.Context(), row(nil), say(strings.Repeat("x", i)))
		if err != nil || got.Reward != float64(i) || got.Metrics["calls"] != 1 {
			t.Errorf("call %d: got %+v, %v, want the reward %d of a first call", i, got, err, i)
		}
	}
}

func TestHangIsAFaultOfItsCallAlone(t *testing.T) {
	const code = "import time\nasync def reward(row, reply):\n    if reply.text == 'hang': time.sleep(1000)\n    return 1"
	g := startRunner(t).grader(t, Options{Code: code, Timeout: time.Second, Concurrency: 8})
	errs := make(chan error, 4)
	for i := range 4 {
		go func() {
			text := "fine"
			if i == 0 {
				text = "hang"
			}
			_, err := g.Grade(t.Context(), row(nil), say(text))
			if (err == nil) == (text == "hang") || err != nil && err.Error() != "The call has taken too long: callSeconds is 1" {
				errs <- fmt.Errorf("%s: got %w", text, err)
				return
			}
			errs <- nil
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestCallWaitsForARunner kills the runner of a call, and starts another one.
func TestCallWaitsForARunner(t *testing.T) {
	r := startRunner(t)
	marker := filepath.Join(r.dir, "called")
	code := fmt.Sprintf(`
import os, time
def reward(row, reply):
    if not os.path.exists(%[1]q):
        open(%[1]q, "w").close()
        time.sleep(1000)
    return 3
`, marker)
	g := r.grader(t, Options{Code: code, Timeout: time.Hour})
	g.function.host.Wait = true
	paused := &pauses{}
	scores := make(chan verify.Score, 1)
	go func() {
		score, err := g.Grade(environment.WithRecorder(t.Context(), paused), row(nil), say(""))
		if err != nil {
			t.Error(err)
		}
		scores <- score
	}()
	for _, err := os.Stat(marker); err != nil; _, err = os.Stat(marker) {
		time.Sleep(5 * time.Millisecond)
	}
	r.kill()
	r.start(t)
	if got := <-scores; got.Reward != 3 {
		t.Errorf("got %+v, want the reward of the second runner", got)
	}
	if paused.began == 0 || paused.began != paused.ended {
		t.Errorf("the episode's clock stood %d times and went on %d times", paused.began, paused.ended)
	}
}

// pauses counts pauses of a clock.
type pauses struct{ began, ended int }

func (*pauses) CountJudge(environment.JudgeUsage)        {}
func (*pauses) RecordJudgements([]environment.Judgement) {}
func (p *pauses) Pause() func()                          { p.began++; return func() { p.ended++ } }

// TestNothingBeginsWithoutItsReward starts episodes of code that cannot be loaded. Nothing is sampled for them, and the
// error is returned within 15 seconds.
func TestNothingBeginsWithoutItsReward(t *testing.T) {
	cases := map[string]struct {
		code, want string
		final      bool
	}{
		"a syntax error": {"def reward(row, reply):\n    return (", "user_code.py:2: SyntaxError", true},
		"a package is missing": {"import nowhere_at_all\ndef reward(row, reply): return 1",
			"user_code.py:1: ModuleNotFoundError: No module named 'nowhere_at_all' (import nowhere_at_all)", false},
		"no function": {"x = 1", "The code defines no function: define reward(row, reply) or rewards(row, replies), or " +
			"name another in the field function.", true},
		"too few arguments": {"def reward(reply): return 1",
			"user_code.py:1: The function must take the arguments of reward(row, reply)", true},
		"an episode": {"async def episode(row, policy, seed): return 1",
			"The code defines episode: define reward(row, reply) or rewards(row, replies).", true},
		"a death at import": {"import os\nprint('last words')\nos._exit(3)",
			"The program has ended by itself: exit code 3: last words", false},
	}
	r := startRunner(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := r.grader(t, Options{Code: tc.code})
			env := Serve(nil, nil, []*Grader{g}, true)
			_, err := env.Start(t.Context(), environment.Task{})
			var fault *environment.Fault
			var code *CodeError
			if !errors.As(err, &fault) || !fault.Unavailable || fault.Permanent || !errors.As(err, &code) ||
				!strings.HasPrefix(err.Error(), tc.want) || code.IsFinal() != tc.final {
				t.Errorf("got %v, want an environment that is unavailable: %s", err, tc.want)
			}
			if checker := environment.CheckerOf(env); checker == nil || checker.Check(t.Context()) == nil {
				t.Error("got an environment that is available, want that its check fails")
			}
		})
	}
}

func TestContextEndsACall(t *testing.T) {
	g := startRunner(t).grader(t, Options{
		Code: "import time\ndef reward(row, reply): time.sleep(1000)", Timeout: time.Hour,
	})
	if err := g.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := g.Grade(ctx, row(nil), say("")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := New(&Host{}, Options{Code: "x", Processes: 1000})
	var invalid *protocol.Error
	if !errors.As(err, &invalid) || invalid.Field != "spec.processes" {
		t.Errorf("got %v, want an error that names the field", err)
	}
}

// TestGroups scores the replies of a group together.
func TestGroups(t *testing.T) {
	half := 0.5
	failed := verify.Score{Reward: half, Metrics: map[string]float64{MetricErrors: 1}}
	const rank = "def rewards(row, replies):\n    longest = max(len(r.text) for r in replies)\n" +
		"    return [{'reward': len(r.text) / longest, 'correct': r.text == row['answer']} for r in replies]"
	correct := func(value float64) map[string]float64 { return map[string]float64{"correct": value} }
	cases := map[string]struct {
		code    string
		onError *float64
		want    []verify.Score
		fault   string
	}{
		"a ranking": {code: rank, want: []verify.Score{
			{Reward: 0.25, Metrics: correct(1)}, {Reward: 1, Metrics: correct(0)}}},
		"too few": {code: "def rewards(row, replies): return [1]", fault: "rewards returns 1 results for 2 replies"},
		"None":    {code: "def rewards(row, replies): return [1, None]", fault: "The result is None"},
		"raises": {code: "def rewards(row, replies): return 1 / 0",
			fault: "user_code.py:1: ZeroDivisionError: division by zero"},
		"onError": {code: "def rewards(row, replies): return 1 / 0", onError: &half, want: []verify.Score{failed, failed}},
	}
	r := startRunner(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := r.grader(t, Options{Code: tc.code, OnError: tc.onError})
			if err := g.Check(t.Context()); err != nil || !g.GradesTogether() {
				t.Fatalf("Check: %v, and together is %v", err, g.GradesTogether())
			}
			if _, err := g.Grade(t.Context(), row(nil), say("4")); !errors.Is(err, verify.ErrTogether) {
				t.Errorf("Grade of one reply: got %v, want %v", err, verify.ErrTogether)
			}
			got, err := g.GradeGroup(t.Context(), row(nil), []environment.Reply{say("4"), say("four")})
			if tc.fault != "" {
				if !strings.HasPrefix(fmt.Sprint(err), tc.fault) {
					t.Errorf("got %v, want the fault %q", err, tc.fault)
				}
				return
			}
			if diff := gocmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if err := Serve(nil, nil, []*Grader{g}, false).(*served).Check(t.Context()); err == nil {
				t.Error("got a group's reward as a part of a sum, want an error")
			}
		})
	}
}
