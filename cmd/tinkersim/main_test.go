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
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
	"github.com/tinker-operator/tinker-operator/test/freeport"
)

func TestParse(t *testing.T) {
	faults := filepath.Join(t.TempDir(), "faults.json")
	if err := os.WriteFile(faults, []byte(`{"faults":[{"op":"optim_step","do":"hold"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(config, []byte(`{"pjwt_auth_enabled":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := parse([]string{
		"--listen", ":0", "--data-dir", "d", "--api-key", "k", "--admin", "--faults", faults, "--alias", "a/b", "--alias",
		"c",
		"--client-config", config, "--sample-noise", "0.05", "--poll-patience", "2s", "--announce-bytes", "1000",
		"--requests-per-second", "2.5", "--unfinished-samples", "7",
	}, "env", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if p.listen != ":0" || p.options.Dir != "d" || p.options.APIKey != "k" || !p.options.Admin ||
		len(p.options.Faults) != 1 {
		t.Errorf("parsed %+v", p)
	}
	if p.options.SampleNoise != 0.05 {
		t.Errorf("noise %g", p.options.SampleNoise)
	}
	if l := p.options.Limits; l.RequestsPerSecond != 2.5 || l.UnfinishedSamples != 7 {
		t.Errorf("limits %+v", l)
	}
	if p.options.PollPatience != 2*time.Second || p.options.MetadataBytes != 1000 {
		t.Errorf("patience %v, announced from %d bytes on", p.options.PollPatience, p.options.MetadataBytes)
	}
	if config := p.options.Config; !config.PJWTAuthEnabled || !config.ParallelChunks {
		t.Errorf("the configuration of clients is %+v, want the file's settings and the API's defaults for the others",
			config)
	}
	if diff := cmp.Diff([]string{"a/b", "c"}, p.options.Aliases); diff != "" {
		t.Errorf("aliases (-want +got):\n%s", diff)
	}
	var help strings.Builder
	if _, err := parse([]string{"--help"}, "tml-secret", &help); !errors.Is(err, flag.ErrHelp) ||
		strings.Contains(help.String(), "tml-secret") {
		t.Errorf("the help has the key of the environment: %v\n%s", err, help.String())
	}
	if p, err := parse([]string{"--data-dir", "d"}, "env", io.Discard); err != nil || p.options.APIKey != "env" {
		t.Errorf("key = %q, %v, want the key of the environment", p.options.APIKey, err)
	}
}

func TestParseErrors(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "faults.json")
	if err := os.WriteFile(broken, []byte(`{"faults":[{"do":"?"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	notJSON := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(notJSON, []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string][]string{
		"no data directory":        {},
		"an argument too many":     {"--data-dir", "d", "serve"},
		"an unknown flag":          {"--data-dir", "d", "--port", "1"},
		"faults that are missing":  {"--data-dir", "d", "--faults", "missing.json"},
		"faults that are broken":   {"--data-dir", "d", "--faults", broken},
		"a config that is missing": {"--data-dir", "d", "--client-config", "missing.json"},
		"a config that is broken":  {"--data-dir", "d", "--client-config", notJSON},
		"an unknown latency":       {"--data-dir", "d", "--latency", "slow"},
		"a divisor that is 0":      {"--data-dir", "d", "--latency", "hosted/0"},
		"a divisor of letters":     {"--data-dir", "d", "--latency", "hosted/ten"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(args, "", io.Discard); err == nil || errors.Is(err, flag.ErrHelp) {
				t.Errorf("parse(%q) = %v, want an error", args, err)
			}
		})
	}
	var help bytes.Buffer
	if _, err := parse([]string{"--help"}, "", &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(),
		"-data-dir") {
		t.Errorf("--help: %v\n%s", err, help.String())
	}
}

func TestLatencyFlag(t *testing.T) {
	for value, want := range map[string]latency.Profile{"hosted": latency.Hosted, "hosted/10": latency.Hosted.Faster(10)} {
		if p, err := parse([]string{"--data-dir", "d", "--latency", value}, "", io.Discard); err != nil ||
			p.options.Latency != want {
			t.Errorf("--latency %s = %+v, %v, want %+v", value, p.options.Latency, err, want)
		}
	}
}

func TestVocabularyFlag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokenizer.json")
	// The simulator's own tokenizer has bytes and <|end|>, which is all that is required.
	if err := os.WriteFile(file, model.TokenizerJSON(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := parse([]string{"--data-dir", "d", "--vocabulary", "a/b=" + file, "--vocabulary", "c/d=" + file}, "",
		io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if v := p.options.Vocabularies["a/b"]; len(p.options.Vocabularies) != 2 || v == nil || v.Size() != 260 {
		t.Errorf("parsed %+v", p.options.Vocabularies)
	}
	cases := map[string]string{
		"no file": "a/b", "no owner": "b=" + file, "an empty owner": "/b=" + file, "three names": "a/b/c=" + file,
		"a file that is missing": "a/b=missing.json", "no name": "=" + file,
	}
	for name, value := range cases {
		if _, err := parse([]string{"--data-dir", "d", "--vocabulary", value}, "", io.Discard); err == nil {
			t.Errorf("%s: %q was accepted", name, value)
		}
	}
	if _, err := parse([]string{"--data-dir", "d", "--vocabulary", "a/b=" + file, "--vocabulary", "a/b=" + file}, "",
		io.Discard); err == nil {
		t.Error("a duplicate name was accepted")
	}
}

// urlLog sends the URL that the program logs.
type urlLog chan string

func (l urlLog) Write(line []byte) (int, error) {
	if found := regexp.MustCompile(`url=(\S+)`).FindSubmatch(line); found != nil {
		l <- string(found[1])
	}
	return len(line), nil
}

// health returns the status of the health endpoint of a server.
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

func TestRunUntilStopped(t *testing.T) {
	urls := make(urlLog, 1)
	p := &program{listen: freeport.Address(t), log: slog.New(slog.NewTextHandler(urls, nil))}
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

// TestSecondStart checks that a second server with the same arguments, or with the same directory alone, leaves
// the first one and its data alone.
func TestSecondStart(t *testing.T) {
	urls := make(urlLog, 1)
	first := &program{listen: "127.0.0.1:0", log: slog.New(slog.NewTextHandler(urls, nil))}
	first.options.Dir = t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- first.Run(ctx) }()
	url := <-urls
	fresh := filepath.Join(t.TempDir(), "data")
	cases := []struct{ listen, dir, want string }{
		{strings.TrimPrefix(url, "http://"), fresh, "address already in use"},
		{"127.0.0.1:0", first.options.Dir, "stop that server"},
	}
	for _, tc := range cases {
		second := &program{listen: tc.listen, log: first.log}
		second.options.Dir = tc.dir
		if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Run at %s = %v, want an error with %q", tc.listen, err, tc.want)
		}
	}
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("the directory was opened before listening: %v", err)
	}
	if status, err := health(t, url); err != nil || status != http.StatusOK {
		t.Errorf("the first server: %d, %v", status, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}
