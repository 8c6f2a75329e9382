// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build conformance

package supervised

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// update writes the recorded files.
var update = flag.Bool("update", false, "write the recorded examples and steps")

const (
	requirements = "../conformance/requirements/"
	// key is the key that the simulator accepts.
	key = "tml-supervised"
)

// cookbook is an installed version of tinker-cookbook.
type cookbook struct {
	name, python string
	// path is a folder with packages that replace the packages of the environment, or empty.
	path string
}

// versions returns the pinned version and the next version, which is installed over the dependencies of the pinned one.
func versions(t *testing.T) []cookbook {
	t.Helper()
	next := requirements + "cookbook-next.txt"
	python := filepath.Join(prepared(t, "venv", "cookbook"), "bin", "python")
	return []cookbook{
		{name: pinned(t, requirements+"cookbook.txt"), python: python},
		{name: pinned(t, next), python: python, path: prepared(t, "over", "cookbook", "cookbook-next")},
	}
}

// prepared returns the folder that a script of ../conformance prepares and prints.
func prepared(t *testing.T, script string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../conformance/"+script, arguments...)
	cmd.Stderr = os.Stderr
	path, err := cmd.Output()
	if err != nil {
		t.Fatalf("preparing the cookbook with %s: %v", script, err)
	}
	return strings.TrimSpace(string(path))
}

// pinned returns the version of the cookbook that a requirements file pins.
func pinned(t *testing.T, file string) string {
	t.Helper()
	version := regexp.MustCompile(`(?m)^tinker_cookbook==(\S+)$`).FindStringSubmatch(read(t, file))
	if version == nil {
		t.Fatalf("%s pins no version of tinker_cookbook", file)
	}
	return version[1]
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// run runs a script and returns its output. Its hub is the simulator at url, and its proxy does not exist, so it cannot
// reach any other network.
func (c cookbook) run(t *testing.T, url string, arguments ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.python, arguments...)
	cmd.Env = append(os.Environ(),
		"PYTHONPATH="+c.path, "PYTHONDONTWRITEBYTECODE=1", "OMP_NUM_THREADS=1", "TOKENIZERS_PARALLELISM=false",
		"WANDB_MODE=disabled",
		"HF_ENDPOINT="+url, "HF_HOME="+t.TempDir(), "HF_HUB_DISABLE_TELEMETRY=1", "HF_HUB_DISABLE_XET=1",
		"TINKER_API_KEY="+key, "TINKER_BASE_URL="+url, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
	)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		const nowhere = "http://127.0.0.1:9"
		cmd.Env = append(cmd.Env, name+"="+nowhere, strings.ToLower(name)+"="+nowhere)
	}
	log := &strings.Builder{}
	cmd.Stderr = log
	out, err := cmd.Output()
	if err != nil {
		text := log.String()
		t.Fatalf("%v: %v\n%s", arguments, err, text[max(0, len(text)-4000):])
	}
	return out
}

// write writes a configuration and returns its path.
func write(t *testing.T, config any) string {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// serve runs a simulator in a process of its own, so that this process uses only the client's CPU, and returns its URL.
// It also serves models with other vocabularies, given as NAME=FILE.
func serve(t *testing.T, vocabularies ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tinkersim")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/tinkersim")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building tinkersim: %v\n%s", err, out)
	}
	arguments := []string{"--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--api-key", key, "--poll-patience", "1s"}
	for _, v := range vocabularies {
		arguments = append(arguments, "--vocabulary", v)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, arguments...)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	urls, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(urls)
		served := regexp.MustCompile(`msg=serving url=(\S+)`)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if found := served.FindStringSubmatch(lines.Text()); found != nil {
				urls <- found[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("tinkersim ended with %v", err)
		}
	})
	url, ok := <-urls
	if !ok {
		t.Fatal("tinkersim ended before it served")
	}
	return url
}
