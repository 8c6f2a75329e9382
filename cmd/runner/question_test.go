// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/python"
)

// TestQuestionsReachTheCaller plays an episode that asks its questions at the same time.
func TestQuestionsReachTheCaller(t *testing.T) {
	c := startRunner(t).dial(t)
	p := start(t, c, "episodes", python.Function{Code: asyncCode}, protocol.Spec{Concurrency: 16})
	var together sync.WaitGroup
	together.Add(3)
	var mu sync.Mutex
	asked := 0
	ask := func(_ context.Context, q client.Question) (json.RawMessage, error) {
		mu.Lock()
		asked++
		first := asked <= 3
		mu.Unlock()
		if first { // none is answered until all three are asked
			together.Done()
			together.Wait()
		}
		return json.Marshal(map[string]any{"text": "four",
			"messages": []any{map[string]string{"role": "assistant", "content": "four"}}})
	}
	result, err := callWith(t, p.Call, client.Call{Method: "episode", Params: json.RawMessage(`{"row":{"n":3}}`), Seed: 42,
		Ask: ask})
	if err != nil {
		t.Fatal(describe(err))
	}
	if want := `{"reward":3,"rewards":{"0":1},"metrics":{"length":4,"seed":42}}`; string(result.Value) != want {
		t.Errorf("got %s, want %s", result.Value, want)
	}
	refuse := func(context.Context, client.Question) (json.RawMessage, error) {
		return nil, &protocol.Error{Code: "paused", Message: "The endpoint is paused."}
	}
	_, err = callWith(t, p.Call, client.Call{Method: "episode", Params: json.RawMessage(`{"row":{}}`), Ask: refuse})
	failure := checkFault(t, err, fault{code: protocol.CodeQuestionFailed})
	if failure.Err.Question == nil || failure.Err.Question.Code != "paused" {
		t.Errorf("got the question's error %v, want the code that the caller gave", failure.Err.Question)
	}
}

// TestEvidenceOfAProcessThatEnded checks the evidence of a process that ended: how it ended, its usage, and its last
// output.
func TestEvidenceOfAProcessThatEnded(t *testing.T) {
	const code = `
import os
def reward(row, reply):
    print("x" * 100000)
    block = b"x" * (50 << 20)
    print("last words é")
    os._exit(3)
`
	p := start(t, startRunner(t).dial(t), "reward", python.Function{Code: code}, protocol.Spec{})
	_, err := call(t, p, nil, "")
	failure := checkFault(t, err, fault{code: protocol.CodeDied, exit: 3})
	e := failure.Evidence
	if !strings.HasSuffix(e.Stderr, "\nlast words é\n") || len(e.Stderr) > 5000 {
		t.Errorf("got %q printed, want the last lines of it", e.Stderr)
	}
	if e.PeakBytes < 50<<20 || e.PeakBytes > 500<<20 || e.Seconds <= 0 || e.CPUSeconds <= 0 || e.Shared {
		t.Errorf("got %+v, want above 50 MiB, some time, and a process of its own", e)
	}
}

// TestQuestionsAreBounded runs an episode that asks more questions at once than its limit.
func TestQuestionsAreBounded(t *testing.T) {
	c := startRunner(t).dial(t)
	p := start(t, c, "episodes", python.Function{Code: asyncCode}, protocol.Spec{Limits: protocol.Limits{Questions: 16}})
	ask := func(ctx context.Context, _ client.Question) (json.RawMessage, error) {
		<-ctx.Done() // none is answered
		return nil, ctx.Err()
	}
	_, err := callWith(t, p.Try, client.Call{Method: "episode", Params: json.RawMessage(`{"row":{"n":50}}`), Ask: ask})
	checkFault(t, err, fault{code: protocol.CodeProtocol, breach: protocol.CodeTooManyQuestions})
}

// TestForgedAnswerOfItsOwnCall runs code that answers its call itself, and then returns. This breaks the protocol, so
// a call that the process was given meanwhile is repeated.
func TestForgedAnswerOfItsOwnCall(t *testing.T) {
	const forged = `
def own_result():
    frame = sys._getframe()
    while "message" not in frame.f_locals:
        frame = frame.f_back
    forge(b'{"type":"result","id":%d,"value":{"reward":5}}\n' % frame.f_locals["message"]["id"])
    return 1
`
	c := startRunner(t).dial(t)
	p := start(t, c, "hostile", python.Function{Code: hostileCode + forged}, protocol.Spec{Limits: hostileLimits})
	for range 3 {
		result, err := call(t, p, map[string]any{"do": "own_result"}, "")
		if err == nil && string(result.Value) != `{"reward":5}` {
			t.Errorf("got %s, want the one answer that came first", result.Value)
		}
		right := client.Call{Method: "reward", Params: params(t, map[string]any{"do": "right"}, "")}
		if result, err := callWith(t, p.Call, right); err != nil || string(result.Value) != `{"reward":1}` {
			t.Errorf("the next call: got %s and %s, want a reward of 1", result.Value, describe(err))
		}
	}
}

// TestProcessesThatDieTakeNoOtherCallsWithThem makes ten calls at once, two of which end the process that they share
// with others. The other eight are repeated, with the same answers to their questions.
func TestProcessesThatDieTakeNoOtherCallsWithThem(t *testing.T) {
	c := startRunner(t).dial(t)
	p := start(t, c, "episodes", python.Function{Code: asyncCode}, protocol.Spec{Concurrency: 16, Processes: 2})
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			asked := map[string]int{}
			var mu sync.Mutex
			ask := func(_ context.Context, q client.Question) (json.RawMessage, error) {
				mu.Lock()
				defer mu.Unlock()
				asked[string(q.Params)]++
				return json.RawMessage(`{"text":"x","messages":["y"]}`), nil
			}
			row := fmt.Sprintf(`{"row":{"n":2,"i":%d,"die":%t}}`, i, i%5 == 0)
			result, err := p.Call(t.Context(), client.Call{Method: "episode", Params: json.RawMessage(row), Ask: ask})
			if i%5 == 0 {
				if client.After(err, true) != client.Permanent {
					t.Errorf("call %d, which ends its process: got %s and %v, want a permanent fault", i, result.Value, err)
				}
			} else if err != nil {
				t.Errorf("call %d: %s, want a result", i, describe(err))
			}
			for params, n := range asked {
				if n != 1 {
					t.Errorf("call %d: the caller was asked %s %d times, want once", i, params, n)
				}
			}
		})
	}
	all.Wait()
}

// TestClockStandsWhileAQuestionIsOpen answers a question later than the limit of the call.
func TestClockStandsWhileAQuestionIsOpen(t *testing.T) {
	c := startRunner(t).dial(t)
	const limit = 0.5
	p := start(t, c, "episodes", python.Function{Code: asyncCode},
		protocol.Spec{Limits: protocol.Limits{CallSeconds: limit}})
	busy := start(t, c, "busy", python.Function{Code: hostileCode},
		protocol.Spec{Limits: protocol.Limits{CallSeconds: limit}})
	ask := func(context.Context, client.Question) (json.RawMessage, error) {
		_, err := call(t, busy, map[string]any{"do": "stop itself"}, "") // takes longer than the limit, by which it ends
		checkFault(t, err, fault{code: protocol.CodeLimit, limit: "callSeconds"})
		return json.RawMessage(`{"text":"x","messages":["y"]}`), nil
	}
	result, err := callWith(t, p.Try, client.Call{Method: "episode", Params: json.RawMessage(`{"row":{}}`), Ask: ask})
	if err != nil {
		t.Fatal(describe(err))
	}
	if result.Evidence.Seconds > limit {
		t.Errorf("got %.2f s, want the questions left out", result.Evidence.Seconds)
	}
	_, err = callWith(t, p.Try, client.Call{Method: "episode", Params: json.RawMessage(`{"row":{"wait":1}}`), Ask: ask})
	checkFault(t, err, fault{code: protocol.CodeLimit, limit: "callSeconds"})
}
