// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tinker-operator/tinker-operator/test/wheel"
)

// packageIndex is an index of wheels with one module each. It asks for a password if password is set.
type packageIndex struct {
	password string

	mu     sync.Mutex
	wheels map[string][]byte
}

// add adds a wheel of a package, which requires other packages. Its module has the variable VALUE.
func (p *packageIndex) add(t *testing.T, name, version, value string, needs ...string) {
	t.Helper()
	made := wheel.Make(t, name, version, value, needs...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wheels[wheel.Name(name, version)] = made
}

func (p *packageIndex) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, password, _ := r.BasicAuth(); password != p.password {
		w.Header().Set("WWW-Authenticate", `Basic realm="index"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if file, ok := p.wheels[filepath.Base(r.URL.Path)]; ok {
		_, _ = w.Write(file)
		return
	}
	name := filepath.Base(r.URL.Path)
	var links []string
	for file := range p.wheels {
		if strings.HasPrefix(file, name+"-") {
			links = append(links, fmt.Sprintf("<a href=\"/wheels/%s\">%s</a>", file, file))
		}
	}
	if links == nil {
		http.NotFound(w, r)
		return
	}
	slices.Sort(links)
	w.Header().Set("Content-Type", "text/html")
	_, _ = w.Write([]byte("<!DOCTYPE html><html><body>" + strings.Join(links, "\n") + "</body></html>"))
}

// installed is the result of the container that installs packages.
type installed struct {
	directory, message, stderr string
	err                        error
}

// install runs the program of the container that installs packages.
func install(t *testing.T, requirements, lock string, variables ...string) installed {
	t.Helper()
	dir := t.TempDir()
	got := installed{directory: filepath.Join(dir, "packages")}
	log := filepath.Join(dir, "termination-log")
	command := exec.CommandContext(t.Context(), "python3", "-c", installPackages)
	command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "PYENV_ROOT=" + os.Getenv("PYENV_ROOT"), "HOME=" + dir, "PIP_CONFIG_FILE=" + os.DevNull,
		"REQUIREMENTS=" + requirements, "LOCK=" + lock, "PACKAGES_DIR=" + got.directory, "TERMINATION_LOG=" + log,
	}, variables...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	got.err = command.Run()
	got.stderr = stderr.String()
	message, err := os.ReadFile(log)
	if err == nil {
		got.message = string(message)
	}
	return got
}

// value returns VALUE of a module among the installed packages.
func (i installed) value(t *testing.T, module string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "python3", "-c", "import "+module+"; print("+module+".VALUE)")
	command.Env = append(os.Environ(), "PYTHONPATH="+i.directory)
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output)
	}
	return strings.TrimSpace(string(output))
}

// TestInstallPackages pins packages and their dependencies with real pip, and installs the same ones again although the
// index has newer ones since.
func TestInstallPackages(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "python3", "-m", "pip", "--version").Run(); err != nil {
		t.Skip("there is no python3 with pip here")
	}
	index := &packageIndex{wheels: map[string][]byte{}}
	index.add(t, "tool", "1.0", "tool of 1.0", "base")
	index.add(t, "base", "1.0", "base of 1.0")
	server := httptest.NewServer(index)
	t.Cleanup(server.Close)
	at := "INDEX_URL=" + server.URL + "/simple"

	first := install(t, "tool==1.0", "", at)
	if first.err != nil {
		t.Fatalf("%v:\n%s", first.err, first.stderr)
	}
	lines := strings.Split(first.message, "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "base==1.0 ") || !packageLine.MatchString(lines[0]) ||
		!packageLine.MatchString(lines[1]) {
		t.Fatalf("the termination message is %q, want the wheels base==1.0 and tool==1.0", first.message)
	}
	index.add(t, "base", "2.0", "base of 2.0")
	again := install(t, "tool==1.0", first.message, at)
	if got := again.value(t, "base"); got != "base of 1.0" || again.err != nil {
		t.Errorf("got %q and the error %v, want the wheel that was pinned:\n%s", got, again.err, again.stderr)
	}
	if got := again.value(t, "tool"); got != "tool of 1.0" {
		t.Errorf("got %q, want the module of the requirement", got)
	}

	index.add(t, "base", "1.0", "another base of 1.0")
	for name, tc := range map[string]struct {
		requirements, lock string
		variables          []string
		want               string
	}{
		"a wheel that is another one since": {"tool==1.0", first.message, []string{at}, "DO NOT MATCH THE HASHES"},
		"a package that is not there":       {"nothing==1.0", "", []string{at}, "distribution found for nothing==1.0"},
		"a version that is not there":       {"tool==9.0", "", []string{at}, "distribution found for tool==9.0"},
		"an index that does not answer": {"tool==1.0", "", []string{"INDEX_URL=http://127.0.0.1:1/simple", "PIP_RETRIES=0"},
			"tool==1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := install(t, tc.requirements, tc.lock, tc.variables...)
			last := strings.TrimSpace(got.stderr)
			last = last[strings.LastIndexByte(last, '\n')+1:]
			if got.err == nil || !strings.Contains(last, tc.want) || !strings.Contains(last, "execution.requirements: ") {
				t.Errorf("got the error %v and the last line %q, want execution.requirements and %q", got.err, last, tc.want)
			}
		})
	}
}

// TestInstallPackagesWithAPassword checks that the password of an index is sent, and not printed.
func TestInstallPackagesWithAPassword(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "python3", "-m", "pip", "--version").Run(); err != nil {
		t.Skip("there is no python3 with pip here")
	}
	index := &packageIndex{wheels: map[string][]byte{}, password: "p@ss:word"}
	index.add(t, "tool", "1.0", "tool of 1.0")
	server := httptest.NewServer(index)
	t.Cleanup(server.Close)
	at := "INDEX_URL=" + server.URL + "/simple"
	if got := install(t, "tool==1.0", "", at, "INDEX_USERNAME=u", "INDEX_PASSWORD=p@ss:word"); got.err != nil {
		t.Errorf("%v:\n%s", got.err, got.stderr)
	}
	got := install(t, "tool==1.0", "", at, "INDEX_USERNAME=u", "INDEX_PASSWORD=wrong-word")
	if got.err == nil || strings.Contains(got.stderr, "wrong-word") {
		t.Errorf("got the error %v, want one without the password:\n%s", got.err, got.stderr)
	}
}
