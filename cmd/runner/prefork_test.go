// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/runner/client"
	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
	"github.com/tinker-operator/tinker-operator/internal/runner/spawn"
)

// writeModules writes Python files into a directory that every user can read.
func writeModules(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "prefork")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// startCommand starts a command, and returns the program and its report of the start.
func startCommand(t testing.TB, c *client.Client, name string, config spawn.Config,
	edit func(*protocol.Spec)) (*client.Program, spawn.Start) {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	spec := protocol.Spec{
		Kind: "command", Command: spawn.Command(), Config: text, Processes: 1,
		Env: map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
	}
	if edit != nil {
		edit(&spec)
	}
	p, err := c.Start(t.Context(), name, spec)
	if err != nil {
		t.Fatal(describe(err))
	}
	var said spawn.Start
	if err := json.Unmarshal(p.Value, &said); err != nil {
		t.Fatal(err)
	}
	return p, said
}

// runCommand calls a command with environment variables and files, and returns its result.
func runCommand(t testing.TB, p *client.Program, env map[string]string) (spawn.Result, error) {
	t.Helper()
	params, err := json.Marshal(spawn.Params{Env: env, Files: map[string]string{"task.json": "{}"},
		Read: []string{"result.json"}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := callWith(t, p.Try, client.Call{Method: spawn.Method, Params: params})
	var left spawn.Result
	if err == nil {
		err = json.Unmarshal(result.Value, &left)
	}
	return left, err
}

// sharedModule notes in which process it was imported.
const sharedModule = "import os\nIMPORTED_BY = os.getpid()\n"

// preforkScript reports the surroundings of a process. None of them may differ between a fork and a process of its own.
const preforkScript = `
import shared
import json, os, random, resource, signal, sys, tempfile
me = open("/proc/self/status").read()
def status(name):
    return [line.split(":")[1].split() for line in me.splitlines() if line.startswith(name + ":")]
with open("result.json", "w") as file:
    json.dump({
        "argv": sys.argv, "path": sys.path, "name": __name__, "file": globals().get("__file__"), "spec": __spec__ is None,
        "environment": {k: v for k, v in os.environ.items() if k not in ("HOME", "TMPDIR", "PWD")},
        "home": os.environ["HOME"] == os.getcwd() == os.environ["PWD"] == tempfile.gettempdir(),
        "limits": [resource.getrlimit(i) for i in range(16)], "nice": os.nice(0), "umask": os.umask(0o77),
        "files": sorted(os.listdir("/proc/self/fd"))[:3], "cwd": sorted(os.listdir(".")),
        "confined": [status(name) for name in ("NoNewPrivs", "Seccomp", "CapEff", "Groups", "SigBlk", "SigIgn")],
        "group": os.getpgrp() == os.getsid(0), "session": os.getsid(0) == os.getpid(),
        "threads": len(os.listdir("/proc/self/task")), "readable": os.access("/proc/self/environ", os.R_OK),
        "main": sys.modules["__main__"].__dict__ is globals(), "originals": sys.orig_argv[1:],
        "input": sys.stdin.read(), "oom": open("/proc/self/oom_score_adj").read(),
    }, file)
print("forked" if shared.IMPORTED_BY != os.getpid() else "afresh", random.random(), os.urandom(4).hex())
print("an error", file=sys.stderr)
sys.exit(int(os.environ["TASK"]))
`

// TestForkedCommands runs a command in a process of its own and in a fork: as a file, as a module and as a text. Both
// report the same surroundings.
func TestForkedCommands(t *testing.T) {
	inSandboxes(t, func(t *testing.T, _ *host, c *client.Client) {
		gateway, _ := greet(t, "tcp", "127.0.0.1:0")
		dir := writeModules(t, map[string]string{"shared.py": sharedModule, "agent.py": preforkScript,
			"pack/__init__.py": "", "pack/__main__.py": preforkScript})
		edit := func(spec *protocol.Spec) {
			spec.Network = &protocol.Network{Connect: []string{gateway}}
			spec.Env["PYTHONPATH"] = dir
		}
		for name, command := range map[string][]string{
			"a file":   {python3, "-u", filepath.Join(dir, "agent.py"), "--one", "two"},
			"a module": {python3, "-m", "pack", "--one"},
			"a text":   {python3, "-u", "-c", preforkScript, "--one"},
		} {
			// This config does not name the variable TASK, so each call with TASK starts afresh.
			afresh, _ := startCommand(t, c, name+" afresh", spawn.Config{Command: command}, edit)
			forked, said := startCommand(t, c, name, spawn.Config{Command: command, Variables: []string{"TASK"}}, edit)
			if said.Afresh != "" || !strings.Contains(strings.Join(said.Modules, " "), "shared") {
				t.Fatalf("%s: the program says %+v, want that shared was imported", name, said)
			}
			printed := map[string]bool{}
			for range 3 {
				for _, exit := range []string{"0", "7"} {
					want, err1 := runCommand(t, afresh, map[string]string{"TASK": exit})
					got, err2 := runCommand(t, forked, map[string]string{"TASK": exit})
					if err1 != nil || err2 != nil {
						t.Fatal(describe(err1), describe(err2))
					}
					how := strings.Fields(got.Output)
					if len(how) != 3 || how[0] != "forked" || !strings.HasPrefix(want.Output, "afresh") || printed[how[1]] ||
						printed[how[2]] {
						t.Fatalf("%s: got %q, and %q afresh, want a fork with numbers of its own", name, got.Output, want.Output)
					}
					printed[how[1]], printed[how[2]] = true, true
					if diff := cmp.Diff(withoutPaths(t, want), withoutPaths(t, got)); diff != "" {
						t.Errorf("%s: (-afresh +forked)\n%s", name, diff)
					}
				}
			}
		}
	})
}

// withoutPaths returns the report of a script, with one name for the directories of calls.
func withoutPaths(t *testing.T, r spawn.Result) map[string]any {
	t.Helper()
	var found map[string]any
	if err := json.Unmarshal([]byte(r.Files["result.json"]), &found); err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	if path, ok := found["path"].([]any); ok && len(path) > 0 && strings.Contains(path[0].(string), "scratch") {
		path[0] = "the directory of the call"
	}
	found["exit"], found["last"] = r.Exit, r.Last
	return found
}

// TestErrorsOfForkedCommands compares the errors of a forked script with the errors of a fresh process.
func TestErrorsOfForkedCommands(t *testing.T) {
	needPython(t)
	files := map[string]string{
		"shared.py": sharedModule,
		"fails.py":  "raise ValueError('it fails')\n",
		"raises.py": "import shared\ndef f(): return 1 / 0\nf()\n",
		"killed.py": "import shared, os\nos.kill(os.getpid(), 9)\n",
		"import.py": "import shared\nimport fails\n",
		"none.py":   "import no_such_package, shared\n",
		"syntax.py": "import shared\ndef f(:\n",
		"ends.py":   "import os\nos._exit(5)\n",
		"ended.py":  "import shared, ends\n",
		"text.py":   "import shared, sys\nsys.exit('a text')\n",
	}
	dir := writeModules(t, files)
	// A program that is given as a text has no directory with its modules.
	edit := func(spec *protocol.Spec) { spec.Env["PYTHONPATH"] = dir }
	scripts, texts := startRunner(t).dial(t), startRunner(t).dial(t)
	for name, forked := range map[string]bool{"raises": true, "killed": true, "import": true, "none": true, "text": true,
		"syntax": false, "absent": false, "ended": false, "raises, as a text": true, "import, as a text": true,
		"text, as a text": true, "syntax, as a text": false} {
		c, command := scripts, []string{python3, filepath.Join(dir, name+".py")}
		if of, isText := strings.CutSuffix(name, ", as a text"); isText {
			c, command = texts, []string{python3, "-c", files[of+".py"]}
		}
		afresh, _ := startCommand(t, c, name+"-afresh", spawn.Config{Command: command}, edit)
		program, said := startCommand(t, c, name, spawn.Config{Command: command, Variables: []string{"TASK"}}, edit)
		if (said.Afresh == "") != forked {
			t.Errorf("%s: the program says %+v, want forks: %v", name, said, forked)
		}
		for range 2 {
			want, err1 := runCommand(t, afresh, map[string]string{"TASK": ""})
			got, err2 := runCommand(t, program, map[string]string{"TASK": ""})
			if err1 != nil || err2 != nil {
				t.Fatal(name, describe(err1), describe(err2))
			}
			if diff := cmp.Diff(want, got); diff != "" || got.Exit == 0 {
				t.Errorf("%s: (-afresh +forked)\n%s", name, diff)
			}
		}
	}
}

// TestSlowImports checks that calls begin afresh if the imports take longer than the config allows, and not otherwise.
func TestSlowImports(t *testing.T) {
	needPython(t)
	dir := writeModules(t, map[string]string{"shared.py": sharedModule, "slow.py": "import time\ntime.sleep(2)\n",
		"agent.py": "import shared, slow, os\nprint(shared.IMPORTED_BY != os.getpid())\n"})
	c := startRunner(t).dial(t)
	for name, tc := range map[string]struct {
		seconds          float64
		afresh, isForked string
	}{
		"too slow":  {0.5, "its imports take more than 500ms", "False\n"},
		"permitted": {50, "", "True\n"},
	} {
		p, said := startCommand(t, c, name, spawn.Config{Command: []string{python3, filepath.Join(dir, "agent.py")},
			ImportSeconds: tc.seconds}, nil)
		got, err := runCommand(t, p, nil)
		if err != nil {
			t.Fatal(name, describe(err))
		}
		if said.Afresh != tc.afresh || got.Output != tc.isForked {
			t.Errorf("%s: the program says %+v and its call prints %q, want %q and %q", name, said, got.Output, tc.afresh,
				tc.isForked)
		}
	}
}

// TestImportsThatAreNotShared checks that each call imports a module itself if the module would differ between calls.
func TestImportsThatAreNotShared(t *testing.T) {
	needPython(t)
	modules := map[string]string{
		"thread":      "import threading, time\nthreading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n",
		"reads":       "import os\nbase = os.environ.get('TASK')\n",
		"all":         "import os\nbase = dict(os.environ)\n",
		"home":        "import os\nbase = os.path.expanduser('~/.cache')\n",
		"directory":   "import os\nbase = os.path.abspath('cache')\n",
		"temporary":   "import tempfile\nbase = tempfile.gettempdir()\n",
		"prints":      "print('a banner')\n",
		"opens":       "import os\nfile = open('/dev/urandom')\n",
		"writes":      "open('a-file', 'w').close()\n",
		"z_moves":     "import os\nos.chdir('/')\n",
		"environment": "import os\nos.environ['ADDED'] = 'by a module'\n",
		"process":     "import subprocess\nchild = subprocess.Popen(['sleep', '100'])\n",
		"exits":       "import sys\nsys.exit(3)\n",
	}
	files := map[string]string{"shared.py": sharedModule, "inner.py": modules["reads"], "outer.py": "import inner\n"}
	script := "import shared\n"
	want := []string{"outer"}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		files[name+".py"] = modules[name]
		if name != "exits" {
			script += "import " + name + "\n"
			want = append(want, name)
		}
	}
	files["agent.py"] = script + "import outer, os\n" +
		"print(shared.IMPORTED_BY != os.getpid(), reads.base, outer.inner.base, " +
		"home.base == os.environ['PWD'] + '/.cache', directory.base == os.environ['PWD'] + '/cache', os.environ['ADDED'])\n" +
		"import exits\n"
	dir := writeModules(t, files)
	c := startRunner(t).dial(t)
	p, said := startCommand(t, c, "agent", spawn.Config{
		Command: []string{python3, filepath.Join(dir, "agent.py")}, Variables: []string{"TASK"}}, nil)
	if diff := cmp.Diff([]string{"shared", "os"}, said.Modules); diff != "" || said.Afresh != "" {
		t.Errorf("%+v: (-want +got)\n%s", said, diff)
	}
	for _, name := range append(want, "exits") {
		if said.Left[name] == "" {
			t.Errorf("the module %s was imported before all calls", name)
		}
	}
	for _, task := range []string{"one", "two"} {
		got, err := runCommand(t, p, map[string]string{"TASK": task})
		if err != nil {
			t.Fatal(describe(err))
		}
		line := "True " + task + " " + task + " True True by a module"
		if !strings.Contains(got.Output, "a banner") || !strings.Contains(got.Output, line) || got.Exit != 3 {
			t.Errorf("got %+v, want %q", got, line)
		}
	}
}

// TestForksThatAreHostile runs forks that attack their parent process and the process above it. The next call is
// another episode, and finds no trace of the attack.
func TestForksThatAreHostile(t *testing.T) {
	inSandboxes(t, func(t *testing.T, h *host, c *client.Client) {
		gateway, _ := greet(t, "tcp", "127.0.0.1:0")
		dir := writeModules(t, map[string]string{"shared.py": sharedModule + "SECRET = 'as it was'\n", "agent.py": `
import shared
import ctypes, os, signal, sys
task, above, opened = os.environ["TASK"], [os.getppid()], []
above.append(int(open("/proc/%d/stat" % above[0]).read().rsplit(")", 1)[1].split()[1]))
if task.startswith("kill"):
    os.kill(above[int(task[-1])], 9)
    import time; time.sleep(100)
if task == "write":
    shared.SECRET = "changed"
    for pid in above:
        for name in ("mem", "environ", "maps", "fd/0", "fd/1", "fd/3", "cwd/x", "root/x"):
            try:
                opened.append((pid, name, os.open("/proc/%d/%s" % (pid, name), os.O_RDWR | os.O_CREAT)))
            except OSError:
                pass
            try:
                opened.append((pid, name, os.open("/proc/%d/%s" % (pid, name), os.O_RDONLY)))
            except OSError:
                pass
        if ctypes.CDLL(None).ptrace(16, pid, 0, 0) == 0:
            opened.append("ptrace")
found = False
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
    for line in maps:
        begin, end = (int(x, 16) for x in line.split()[0].split("-"))
        if "[heap]" in line or "00:00 0" in line and "rw" in line:
            try:
                memory.seek(begin)
                for after in memory.read(end - begin).split(b"token-")[1:]:
                    found |= after[:5][::-1] == b"etirw"  # the token of the first call
            except (OSError, ValueError):
                pass
print(shared.SECRET, opened, found)
`})
		p, said := startCommand(t, c, "agent", spawn.Config{
			Command: []string{python3, filepath.Join(dir, "agent.py")}, Variables: []string{"TASK", "TOKEN"}},
			func(spec *protocol.Spec) {
				spec.Network = &protocol.Network{Connect: []string{gateway}, Minimum: isolation.Process}
			})
		if said.Afresh != "" || len(said.Modules) == 0 {
			t.Fatalf("the program says %+v, want forks", said)
		}
		play := func(task string) string {
			got, err := runCommand(t, p, map[string]string{"TASK": task, "TOKEN": "token-" + task})
			if err != nil {
				return describe(err)
			}
			return strings.TrimSpace(got.Output) + got.Last
		}
		if got := play("write"); got != "changed [] True" {
			t.Errorf("got %q, want that nothing of the processes above can be opened, and its own token in its memory", got)
		}
		token := func() string {
			got, err := runCommand(t, p, map[string]string{"TASK": "read"})
			if err != nil {
				return describe(err)
			}
			return strings.TrimSpace(got.Output) + got.Last
		}
		if got := token(); got != "as it was [] False" {
			t.Errorf("the next call: got %q, want nothing of the last one", got)
		}
		for _, task := range []string{"kill-0", "kill-1"} {
			if got := play(task); !strings.Contains(got, string(protocol.CodeDied)) {
				t.Errorf("%s: got %q, want that the process has died", task, got)
			}
			if got := token(); got != "as it was [] False" {
				t.Errorf("the call after %s: got %q", task, got)
			}
		}
		eventually(t, "nothing is left but the program and the process that forks", func() bool { return h.below(t) <= 3 })
	})
}
