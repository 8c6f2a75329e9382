// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package try_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/try"
)

// printed is the output of a command so far.
type printed struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func (p *printed) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}
	return p.text.Write(data)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// await waits until the command has printed a text after the first bytes, and returns the end of the text.
func (p *printed) await(t *testing.T, from int, text string) int {
	t.Helper()
	late := time.After(10 * time.Minute)
	for {
		if at := strings.Index(p.String()[from:], text); at >= 0 {
			return from + at + len(text)
		}
		select {
		case <-p.more:
		case <-late:
			t.Fatalf("got %q, want %q", p.String()[from:], text)
		}
	}
}

// TestTryWatchesFiles changes a file while a trial runs, then makes a mistake in it, and finally changes the folder of
// a module.
func TestTryWatchesFiles(t *testing.T) {
	file, folder := filepath.Join(t.TempDir(), "environment.yaml"), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	all := variables(t)
	all["PYTHONPATH"] = folder
	const endless = "import time\ndef reward(row, reply): time.sleep(1000)"
	write(file, function(endless))
	out := &printed{more: make(chan struct{}, 1)}
	command := try.New(cli.IO{
		Getenv: func(name string) string { return all[name] }, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: out,
		Now: time.Now,
	})
	command.SetArgs([]string{"-f", file, "--episodes", "2", "--max-tokens", "16", "--watch"})
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(ctx) }()

	at := out.await(t, 0, "functions and programs run")
	write(filepath.Join(folder, "own.py"), "def one(): return 1")
	write(file, function("import own\ndef reward(row, reply): return own.one()"))
	at = out.await(t, at, "mean reward 1\n")
	at = out.await(t, at, "waiting for a change")
	write(file, "kind: Nothing")
	at = out.await(t, at, "error: ")
	at = out.await(t, at, "waiting for a change")
	write(file, function("import own\ndef reward(row, reply): return own.one() + 1"))
	at = out.await(t, at, "mean reward 2\n")
	at = out.await(t, at, "waiting for a change")
	write(filepath.Join(folder, "own.py"), "def one(): return 6")
	at = out.await(t, at, "mean reward 7\n")
	out.await(t, at, "waiting for a change")
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("the command ended with %v after an interrupt, want no error", err)
	}
}

// TestTryRefusesToWatch checks flags that cannot be watched.
func TestTryRefusesToWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"the standard input": {[]string{"-f", "-"}, "read once"},
		"an endpoint":        {[]string{"-f", sample, "--url", "http://localhost:1"}, "would buy tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := call(t, nil, "", append(tc.args, "--watch")...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
