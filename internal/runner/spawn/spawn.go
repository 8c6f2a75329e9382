// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package spawn is the program below the runner that runs a command for each call: any program, in any language. It is
// a part of the runner's own program, so that an image needs nothing for it. A process has one call at a time; the
// runner ends processes that the command leaves behind.
package spawn

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/runner/protocol"
)

// Argument is the argument that makes the runner's program run this one.
const Argument = "spawn-commands"

// Method is the only method of the program.
const Method = "run"

// Command is the command line of this program below a runner.
func Command() []string { return []string{"/proc/self/exe", Argument} }

// mostOutput is how many bytes are kept of the end of a command's output, and of the beginning of a file that it
// writes.
const mostOutput = 1 << 20

// outputPatience is how long the output of a command that has ended may stay open.
const outputPatience = 500 * time.Millisecond

// Config is the configuration in the hello of the program.
type Config struct {
	Command []string `json:"command"`
	// Variables are the names of the environment variables that differ between calls. A module that reads one of them
	// while it is imported is imported by each call.
	Variables []string `json:"variables,omitempty"`
	// ImportSeconds is how long the imports of a command in Python may take before the first call, less than the limit
	// of the program's start. Defaults to 40.
	ImportSeconds float64 `json:"importSeconds,omitempty"`
}

// Params are the parameters of a call.
type Params struct {
	// Env has variables of the command in addition to the program's variables. $(DIR) in a value stands for the directory
	// of the call.
	Env map[string]string `json:"env"`
	// Files are written into the directory before the command begins. Read has the names of the files that the result
	// includes.
	Files map[string]string `json:"files"`
	Read  []string          `json:"read"`
}

// Result is the result of a command.
type Result struct {
	// Exit is its exit code, or -1 after a signal.
	Exit   int    `json:"exit"`
	Output string `json:"output"`
	// Files are the files of Params.Read that exist.
	Files map[string]string `json:"files,omitempty"`
	// Last is the last line of its standard error.
	Last string `json:"last,omitempty"`
}

// Main is the main function of the program. It returns the exit code.
func Main(in io.Reader, out io.Writer) int {
	if err := protect(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	p := &program{out: json.NewEncoder(out)}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m protocol.Message
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Fprintf(os.Stderr, "reading a line: %v\n", err)
			return 1
		}
		if err := p.take(m); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

type program struct {
	out    *json.Encoder
	config Config
	// forks starts the command; nil if the command is started afresh for each call.
	forks *forks
}

func (p *program) take(m protocol.Message) error {
	switch m.Type {
	case protocol.TypeHello:
		if err := json.Unmarshal(m.Config, &p.config); err != nil || len(p.config.Command) == 0 {
			return p.out.Encode(protocol.Message{Type: protocol.TypeFailed, Error: &protocol.Error{
				Code: protocol.CodeImportError, Message: "The program has no command."}})
		}
		name := p.config.Command[0]
		if _, err := exec.LookPath(name); err != nil {
			return p.out.Encode(protocol.Message{Type: protocol.TypeFailed, Error: &protocol.Error{
				Code: protocol.CodeMissingFunction, Message: fmt.Sprintf("The image has no program %s.", name)}})
		}
		var start Start
		p.forks, start = prefork(p.config)
		value, err := json.Marshal(start)
		if err != nil {
			return fmt.Errorf("encoding how commands start: %w", err)
		}
		return p.out.Encode(protocol.Message{Type: protocol.TypeReady, Version: protocol.Version, Concurrency: 1,
			Forks: p.forks != nil, Value: value})
	case protocol.TypeOpen, protocol.TypeClose:
		return p.out.Encode(protocol.Message{Type: protocol.TypeResult, ID: m.ID, Value: json.RawMessage("{}")})
	case protocol.TypeCall:
		value, err := p.call(m)
		if errors.Is(err, errLost) {
			return err
		}
		if err != nil {
			return p.out.Encode(protocol.Message{Type: protocol.TypeError, ID: m.ID, Error: &protocol.Error{
				Code: protocol.CodeException, Message: err.Error()}})
		}
		return p.out.Encode(protocol.Message{Type: protocol.TypeResult, ID: m.ID, Value: value})
	}
	return nil
}

// call runs the command once.
func (p *program) call(m protocol.Message) (json.RawMessage, error) {
	var params Params
	if err := json.Unmarshal(m.Params, &params); err != nil {
		return nil, fmt.Errorf("reading the parameters: %w", err)
	}
	for name, text := range params.Files {
		if err := os.WriteFile(filepath.Join(m.Scratch, filepath.Base(name)), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("writing a file of the call: %w", err)
		}
	}
	output, last := &tail{}, &tail{}
	exit, err := p.run(m.Scratch, params.Env, output, io.MultiWriter(os.Stderr, last))
	if err != nil {
		return nil, err
	}
	result := Result{Exit: exit, Output: output.String(), Last: last.line()}
	for _, name := range params.Read {
		if text, ok := readFile(filepath.Join(m.Scratch, filepath.Base(name))); ok {
			if result.Files == nil {
				result.Files = map[string]string{}
			}
			result.Files[name] = text
		}
	}
	return json.Marshal(result)
}

// errLost means that it is unknown how a call has ended. This program then ends, and everything of the call with it.
var errLost = errors.New("the process that forks has ended during a call")

// run runs the command in a directory, and returns its exit code.
func (p *program) run(dir string, own map[string]string, output, errs io.Writer) (int, error) {
	env := append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, "PWD="+dir)
	for name, value := range own {
		env = append(env, name+"="+strings.ReplaceAll(value, "$(DIR)", dir))
	}
	if p.forks != nil && p.areKnown(own) {
		exit, err := p.forks.run(dir, env, output, errs)
		switch {
		case err == nil:
			return exit, nil
		case !errors.Is(err, errNoFork):
			return 0, fmt.Errorf("%w: %w", errLost, err)
		}
		p.forks.end()
		p.forks = nil
	}
	cmd := exec.Command(p.config.Command[0], p.config.Command[1:]...) //nolint:noctx // The runner ends it.
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = dir, output, errs, env
	// Processes that the command has left behind may hold its output open.
	cmd.WaitDelay = outputPatience
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return 0, fmt.Errorf("running %s: %w", p.config.Command[0], err)
	}
	return cmd.ProcessState.ExitCode(), nil
}

// areKnown reports whether imports were checked for all variables of a call.
func (p *program) areKnown(own map[string]string) bool {
	for name := range own {
		if !slices.Contains(p.config.Variables, name) {
			return false
		}
	}
	return true
}

// readFile returns the text of a regular file that a command has left. It does not read a link.
func readFile(name string) (string, bool) {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	file, err := os.Open(name)
	if err != nil {
		return "", false
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostOutput))
	return strings.ToValidUTF8(string(text), "\uFFFD"), err == nil
}

// tail keeps the end of the written text.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - mostOutput; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.text), "\uFFFD") }

// line returns the last line.
func (t *tail) line() string {
	const longest = 500
	text := bytes.TrimSpace(t.text)
	text = text[bytes.LastIndexByte(text, '\n')+1:]
	return strings.ToValidUTF8(string(text[:min(len(text), longest)]), "\uFFFD")
}
