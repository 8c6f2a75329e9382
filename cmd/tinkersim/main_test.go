// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	faults := filepath.Join(t.TempDir(), "faults.json")
	if err := os.WriteFile(faults, []byte(`{"faults":[{"op":"optim_step","do":"hold"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := parse([]string{"--listen", ":0", "--data-dir", "d", "--api-key", "k", "--admin", "--faults", faults, "--alias", "a/b", "--alias", "c"}, "env", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if p.listen != ":0" || p.options.Dir != "d" || p.options.APIKey != "k" || !p.options.Admin || len(p.options.Faults) != 1 {
		t.Errorf("parsed %+v", p)
	}
	if diff := cmp.Diff([]string{"a/b", "c"}, p.options.Aliases); diff != "" {
		t.Errorf("aliases (-want +got):\n%s", diff)
	}
	if p, err := parse([]string{"--data-dir", "d"}, "env", io.Discard); err != nil || p.options.APIKey != "env" {
		t.Errorf("key = %q, %v, want that of the environment", p.options.APIKey, err)
	}
}

func TestParseRefuses(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "faults.json")
	if err := os.WriteFile(broken, []byte(`{"faults":[{"do":"?"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string][]string{
		"no data directory":       {},
		"an argument too many":    {"--data-dir", "d", "serve"},
		"an unknown flag":         {"--data-dir", "d", "--port", "1"},
		"faults that are missing": {"--data-dir", "d", "--faults", "missing.json"},
		"faults that are broken":  {"--data-dir", "d", "--faults", broken},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(args, "", io.Discard); err == nil || errors.Is(err, flag.ErrHelp) {
				t.Errorf("parse(%q) = %v, want an error", args, err)
			}
		})
	}
	var help bytes.Buffer
	if _, err := parse([]string{"--help"}, "", &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-data-dir") {
		t.Errorf("--help: %v\n%s", err, help.String())
	}
}

// urlLog passes on the URL that the program logs.
type urlLog chan string

func (l urlLog) Write(line []byte) (int, error) {
	if found := regexp.MustCompile(`url=(\S+)`).FindSubmatch(line); found != nil {
		l <- string(found[1])
	}
	return len(line), nil
}

// health asks for the health of a server.
func health(t *testing.T, url string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

func TestRunServesUntilItIsStopped(t *testing.T) {
	urls := make(urlLog, 1)
	p := &program{listen: "127.0.0.1:0", log: slog.New(slog.NewTextHandler(urls, nil))}
	p.options.Dir = t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	url := <-urls
	if status, err := health(t, url); err != nil || status != http.StatusOK {
		t.Errorf("healthz: %d, %v", status, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v after an orderly stop", err)
	}
	if _, err := health(t, url); err == nil {
		t.Error("still served after Run")
	}
	p.listen = "256.0.0.1:0"
	if err := p.Run(t.Context()); err == nil {
		t.Error("Run at an impossible address returned nil")
	}
}
