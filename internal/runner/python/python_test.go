// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package python

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// interpreters returns the Python interpreters of this machine by version.
func interpreters(t *testing.T) map[string]string {
	t.Helper()
	names := []string{"python3", "/usr/bin/python3", "/usr/local/bin/python3"}
	for _, minor := range []string{"9", "10", "11", "12", "13", "14"} {
		names = append(names, "python3."+minor)
	}
	if home, err := os.UserHomeDir(); err == nil {
		more, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.*/bin/python3"))
		names = append(names, more...)
	}
	found := map[string]string{}
	for _, name := range names {
		const show = `import platform, sys; print(platform.python_version() if sys.version_info >= (3, 9) else "")`
		text, err := exec.Command(name, "-c", show).Output()
		if version := strings.TrimSpace(string(text)); err == nil && version != "" && found[version] == "" {
			found[version] = name
		}
	}
	if len(found) == 0 {
		t.Skip("there is no python3 here: the program cannot run")
	}
	return found
}

// TestSyntaxIsThatOfPython39 parses the program as Python 3.9 does, with each interpreter of this machine.
func TestSyntaxIsThatOfPython39(t *testing.T) {
	for version, name := range interpreters(t) {
		const parse = `import ast, sys; ast.parse(sys.stdin.read(), feature_version=(3, 9))`
		command := exec.Command(name, "-c", parse)
		command.Stdin = strings.NewReader(Source)
		if text, err := command.CombinedOutput(); err != nil {
			t.Errorf("Python %s: %v\n%s", version, err, text)
		}
	}
}

// TestProgramImportsTheStandardLibraryAlone checks the names of imports against the list that Python 3.10 and later
// have.
func TestProgramImportsTheStandardLibraryAlone(t *testing.T) {
	const list = `
import ast, sys
names = set()
for node in ast.walk(ast.parse(sys.stdin.read())):
    if isinstance(node, ast.Import):
        names |= {alias.name.split(".")[0] for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
        names.add(node.module.split(".")[0])
print(len(names), sorted(names - getattr(sys, "stdlib_module_names", names)))
`
	for version, name := range interpreters(t) {
		command := exec.Command(name, "-c", list)
		command.Stdin = strings.NewReader(Source)
		text, err := command.CombinedOutput()
		if err != nil || !strings.HasSuffix(string(text), " []\n") || strings.HasPrefix(string(text), "0 ") {
			t.Errorf("Python %s: got %v and %s, want no others", version, err, text)
		}
	}
}

// program is the program without a runner.
type program struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
	dir string
}

func start(t *testing.T, interpreter string, f Function, files map[string]string) (*program, protocol.Message) {
	t.Helper()
	spec, err := Spec(interpreter, f, protocol.Spec{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, dir: t.TempDir()}
	for name, text := range spec.Files {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(spec.Command[0], spec.Command[1:]...)
	command.Dir, command.Env = p.dir, append(os.Environ(), "PYTHONHASHSEED=0")
	in, err1 := command.StdinPipe()
	out, err2 := command.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // the end of its input ends the program
		if err := command.Wait(); err != nil {
			t.Errorf("the program's end: %v", err)
		}
	})
	p.in, p.out = in, bufio.NewScanner(out)
	return p, p.say(protocol.Message{Type: protocol.TypeHello, Versions: []int{protocol.Version}, Config: spec.Config})
}

// say sends a message and returns the next one of the program.
func (p *program) say(m protocol.Message) protocol.Message {
	p.t.Helper()
	line, err := protocol.Encode(&m)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(line); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("the program has ended: %v", p.out.Err())
	}
	answer, err := protocol.Decode(p.out.Bytes(), protocol.DefaultLines, protocol.FromProgram)
	if err != nil {
		p.t.Fatalf("%v in %s", err, p.out.Bytes())
	}
	return *answer
}

func (p *program) call(id int64, method, params string, seed uint64) protocol.Message {
	p.t.Helper()
	return p.say(protocol.Message{
		Type: protocol.TypeCall, ID: id, Method: method, Params: json.RawMessage(params), Seed: seed, Scratch: p.dir,
	})
}

// outcome returns the value, or the code of the error.
func outcome(m protocol.Message) string {
	if m.Error != nil {
		return string(m.Error.Code)
	}
	return string(m.Value)
}

// TestResultsOfEveryVersion returns values of all kinds that functions can return, in every interpreter of the machine.
func TestResultsOfEveryVersion(t *testing.T) {
	const reply = `"reply": {"text": "a", "messages": [{"role": "assistant", "content": "a"}], "truncated": true}`
	const one, both = `{"row": {"n": 3, "f": 3.5}, ` + reply + `}`,
		`{"row": {}, "replies": [{"text": "a"}, {"text": "bb"}]}`
	cases := map[string]struct {
		code, method, params string
		want                 string
	}{
		"an int":  {"def reward(row, reply): return 2", "reward", one, `{"reward":2}`},
		"a float": {"def reward(row, reply): return 2.0", "reward", one, `{"reward":2.0}`},
		"a bool": {"def reward(row, reply): return reply.text == 'a'", "reward", one,
			`{"reward":1,"correct":true}`},
		"a fraction": {"from fractions import Fraction\ndef reward(row, reply): return Fraction(1, 4)", "reward",
			one, `{"reward":0.25}`},
		"a scalar of an array": {"class S:\n    def item(self): return 0.5\ndef reward(row, reply): return S()", "reward",
			one, `{"reward":0.5}`},
		"an array": {"class A:\n    def item(self): raise ValueError('size')\ndef reward(row, reply): " +
			"return A()", "reward", one, `wrong_type`},
		"metrics": {"def reward(row, reply): return {'reward': 1, 'correct': False, 'length': 2, 'ok': True}",
			"reward", one, `{"reward":1,"correct":false,"metrics":{"length":2,"ok":1}}`},
		"integers of rows": {"def reward(row, reply): return isinstance(row['n'], int) + 2 * " +
			"isinstance(row['f'], float)", "reward", one, `{"reward":3}`},
		"fields of the reply": {"def reward(row, reply): return reply.truncated and reply.messages[0]['content'] == " +
			"'a' and reply.tool_calls == []", "reward", one, `{"reward":1,"correct":true}`},
		"tokens not asked for":    {"def reward(row, reply): return len(reply.tokens)", "reward", one, `exception`},
		"a dict without a reward": {"def reward(row, reply): return {'length': 1}", "reward", one, `no_value`},
		"a reward None":           {"def reward(row, reply): return {'reward': None}", "reward", one, `no_value`},
		"a metric NaN": {"def reward(row, reply): return {'reward': 1, 'm': float('nan')}", "reward", one,
			`not_finite`},
		"a metric that is a text": {"def reward(row, reply): return {'reward': 1, 'm': 'x'}", "reward", one, `wrong_type`},
		"correct of 1": {"def reward(row, reply): return {'reward': 1, 'correct': 1}", "reward", one,
			`wrong_type`},
		"a complex number": {"def reward(row, reply): return 1j", "reward", one, `wrong_type`},
		"a generator":      {"def reward(row, reply):\n    yield 1", "reward", one, `wrong_type`},
		"memory":           {"def reward(row, reply): raise MemoryError()", "reward", one, `out_of_memory`},
		"prints": {"import os, sys\ndef reward(row, reply):\n    print('{}'); os.write(1, b'{}'); " +
			"os.system('echo {}')\n    return 1", "reward", one, `{"reward":1}`},
		"standard output closed": {"import sys\ndef reward(row, reply):\n    sys.stdout = None\n    return 1", "reward", one,
			`{"reward":1}`},
		"a fork that returns": {"import os\ndef reward(row, reply):\n    os.fork()\n    return 1", "reward", one,
			`{"reward":1}`},
		"of a group": {"def rewards(row, replies): return [len(r.text) for r in replies]", "rewards", both,
			`[{"reward":1},{"reward":2}]`},
		"of a part of a group": {"def rewards(row, replies): return [1]", "rewards", both, `wrong_type`},
		"of a group, None":     {"def rewards(row, replies): pass", "rewards", both, `no_value`},
		"async": {"import asyncio\nasync def reward(row, reply):\n    await asyncio.sleep(0)\n    return 1",
			"reward", one, `{"reward":1}`},
		"async, never awaited": {"async def f(): pass\nasync def reward(row, reply):\n    f()\n    return 1", "reward", one,
			`not_awaited`},
		"async, sys.exit": {"import sys\nasync def reward(row, reply): sys.exit(1)", "reward", one, `exception`},
	}
	for version, interpreter := range interpreters(t) {
		t.Run(version, func(t *testing.T) {
			sync, _ := start(t, interpreter, Function{Code: dispatch}, nil)
			async, _ := start(t, interpreter, Function{Code: "async " + strings.TrimSpace(dispatchAsync)}, nil)
			id := int64(0)
			for _, name := range slices.Sorted(maps.Keys(cases)) {
				tc := cases[name]
				p, params := sync, map[string]any{}
				if err := json.Unmarshal([]byte(tc.params), &params); err != nil {
					t.Fatal(err)
				}
				switch {
				case tc.method == "rewards":
					p, _ = start(t, interpreter, Function{Code: tc.code}, nil)
				case strings.Contains(tc.code, "async def reward"):
					p = async
				}
				if row := params["row"].(map[string]any); p == sync || p == async {
					row["code"] = tc.code
				}
				encoded, err := json.Marshal(params)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second time as the first
					id++
					if got := p.call(id, tc.method, string(encoded), 0); outcome(got) != tc.want || got.ID != id {
						t.Errorf("%s: got %s of call %d, want %s of %d (%v)", name, outcome(got), got.ID, tc.want, id, got.Error)
					}
				}
			}
			if got := sync.call(id+1, "rewards", both, 0); outcome(got) != string(protocol.CodeUnknownMethod) {
				t.Errorf("a method that there is not: got %s, want %s", outcome(got), protocol.CodeUnknownMethod)
			}
		})
	}
}

// dispatch and dispatchAsync call the function that the row has, so that one process serves many cases.
const (
	dispatch = `
def reward(row, reply):
    names = {}
    exec(row["code"], names)
    return names["reward"](row, reply)
`
	dispatchAsync = `
def reward(row, reply):
    names = {}
    exec(row["code"], names)
    return await names["reward"](row, reply)
`
)

// TestSeedDecidesRandomNumbers calls a function with seeds, in one process and in another. The first call imports
// numpy, for which a module of the test stands in.
func TestSeedDecidesRandomNumbers(t *testing.T) {
	const code = `
import random
def reward(row, reply):
    import numpy
    return {"reward": random.random(), "numpy": numpy.random.value(), "order": list({"a", "b", "c", "d"}).index("a")}
`
	files := map[string]string{"numpy.py": `
class random:
    _seed = -1
    @classmethod
    def seed(cls, seed): cls._seed = seed
    @classmethod
    def value(cls): return cls._seed
`}
	for version, interpreter := range interpreters(t) {
		first, _ := start(t, interpreter, Function{Code: code}, files)
		second, _ := start(t, interpreter, Function{Code: code}, files)
		const params = `{"row": {}, "reply": {}}`
		one := outcome(first.call(1, "reward", params, 1<<40+5))
		other := outcome(first.call(2, "reward", params, 6))
		again := outcome(second.call(1, "reward", params, 1<<40+5))
		if one != again || one == other || !strings.Contains(one, `"numpy":5`) {
			t.Errorf("Python %s: got %s, then %s with another seed, and %s with the first seed in another process", version, one,
				other, again)
		}
	}
}

// TestEpisodesDrawApart plays episodes one after the other and at the same time. An episode, and each task that it
// starts, draws the same numbers both times.
func TestEpisodesDrawApart(t *testing.T) {
	const code = `
import asyncio, inspect, numpy, random
async def draw():
    await asyncio.sleep(0)
    assert inspect.getcoroutinestate(asyncio.current_task().get_coro()) == "CORO_RUNNING"  # anyio asks it
    return random.random() + numpy.random.value()
async def episode(row, policy, seed):
    first, value = random.random(), numpy.random.value()
    await policy.chat("go on")
    left, right = await asyncio.gather(draw(), draw())
    return {"reward": random.random(), "first": first, "value": value, "next": numpy.random.value(), "left": left, "right": right,
            "same": left == right or first == random.random()}
`
	files := map[string]string{"numpy.py": `
class random:
    state = -1
    @classmethod
    def seed(cls, seed): cls.state = seed
    @classmethod
    def get_state(cls): return [cls.state]
    @classmethod
    def set_state(cls, state): cls.state = state[0]
    @classmethod
    def value(cls):
        cls.state += 1
        return cls.state
`}
	const row = `{"row": {}}`
	answer := func(asked protocol.Message) protocol.Message {
		return protocol.Message{Type: protocol.TypeAnswer, ID: asked.ID, Value: json.RawMessage(`{"text": ""}`)}
	}
	for version, interpreter := range interpreters(t) {
		p, _ := start(t, interpreter, Function{Code: code}, files)
		var want []string
		for id, seed := range []uint64{5, 6} {
			want = append(want, outcome(p.say(answer(p.call(int64(id+1), "episode", row, seed)))))
		}
		if want[0] == want[1] || !strings.Contains(want[0], `"same":0`) || !strings.Contains(want[0], `"next":7`) {
			t.Errorf("Python %s: got %s, want numbers that the seed decides", version, want)
		}
		one, other := p.call(3, "episode", row, 5), p.call(4, "episode", row, 6)
		got := []string{outcome(p.say(answer(one)))}
		got = append(got, outcome(p.say(answer(other))))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Python %s: episodes beside each other draw other numbers (-alone +beside):\n%s", version, diff)
		}
	}
}

// TestEpisodeAsksThePolicy plays an episode of a class with start and step, and one of token ids.
func TestEpisodeAsksThePolicy(t *testing.T) {
	const environment = `
class Environment:
    def start(self, row, seed):
        self.left = row["turns"]
        return "begin %d" % seed
    async def step(self, reply):
        self.left -= 1
        return {"messages": "next", "reward": 0.5, "done": self.left == 0, "length": len(reply.text)}
`
	const tokens = `
async def episode(row, policy, seed):
    reply = await policy.sample([1, 2], stop=["x"], key="k")
    return sum(reply.tokens)
`
	for version, interpreter := range interpreters(t) {
		p, _ := start(t, interpreter, Function{Code: environment}, nil)
		answer := json.RawMessage(`{"text": "abc", "messages": [{"role": "assistant", "content": "abc"}]}`)
		asked := p.call(1, "episode", `{"row": {"turns": 2}}`, 9)
		questions := []string{string(asked.Params)}
		asked = p.say(protocol.Message{Type: protocol.TypeAnswer, ID: asked.ID, Value: answer})
		questions = append(questions, string(asked.Params))
		result := p.say(protocol.Message{Type: protocol.TypeAnswer, ID: asked.ID, Value: answer})
		want := []string{
			`{"messages":[{"role":"user","content":"begin 9"}]}`,
			`{"messages":[{"role":"user","content":"begin 9"},{"role":"assistant","content":"abc"},{"role":"user","content":"next"}]}`,
		}
		if diff := cmp.Diff(want, questions); diff != "" || outcome(result) != `{"reward":1.0,"metrics":{"length":3}}` {
			t.Errorf("Python %s: got %s; the questions (-want +got):\n%s", version, outcome(result), diff)
		}
		p, _ = start(t, interpreter, Function{Code: tokens}, nil)
		asked = p.call(7, "episode", `{"row": {}}`, 0)
		if want := `{"tokens":[1,2],"stop":["x"],"key":"k"}`; string(asked.Params) != want || asked.Method != "sample" ||
			asked.Call != 7 {
			t.Errorf("Python %s: got the question %s of %s, want %s of sample", version, asked.Params, asked.Method, want)
		}
		result = p.say(protocol.Message{Type: protocol.TypeAnswer, ID: asked.ID,
			Value: json.RawMessage(`{"tokens": [3, 4]}`)})
		if outcome(result) != `{"reward":7}` {
			t.Errorf("Python %s: got %s, want the sum of the tokens", version, outcome(result))
		}
	}
}
