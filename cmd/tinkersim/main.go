// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command tinkersim serves a Tinker-compatible API around a small model that really learns. It
// needs no GPU and no network, and keeps its checkpoints in a directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// Exit codes.
const (
	exitUsage   = 64
	exitFailure = 1
)

// keyVariable holds the API key where it is not to show in the list of processes.
const keyVariable = "TINKERSIM_API_KEY"

const usage = `tinkersim serves the Tinker API around a small byte-level language model that really learns.

  tinkersim --listen 127.0.0.1:8000 --data-dir ./tinkersim-data
  export TINKER_BASE_URL=http://127.0.0.1:8000 TINKER_API_KEY=tml-local

The base model is ` + tinkersim.ModelName + `: bytes are tokens. With HF_ENDPOINT set to the same URL, clients
that look their tokenizer up at a Hugging Face hub find it there. Models and sessions are in memory and end
with the process; checkpoints are in the data directory and do not.

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	p, err := parse(os.Args[1:], os.Getenv(keyVariable), os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "tinkersim:", err)
		os.Exit(exitUsage)
	}
	p.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := p.Run(ctx); err != nil {
		p.log.Error("stopped", "error", err)
		os.Exit(exitFailure)
	}
}

// parse turns arguments into a program. The key is the one of the environment.
func parse(args []string, key string, output io.Writer) (*program, error) {
	flags := flag.NewFlagSet("tinkersim", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Usage = func() {
		fmt.Fprint(output, usage)
		flags.PrintDefaults()
	}
	p := &program{}
	var faults string
	flags.StringVar(&p.listen, "listen", "127.0.0.1:8000", "`address` to serve at; port 0 takes a free one, which is logged")
	flags.StringVar(&p.options.Dir, "data-dir", "", "`directory` of the checkpoints, which one server at a time may use (required)")
	flags.StringVar(&p.options.APIKey, "api-key", key, "the only `key` that is accepted; without one, any that begins with tml- is (or "+keyVariable+")")
	flags.BoolVar(&p.options.Admin, "admin", false, "serve the endpoints under /admin: scripted faults, restart, counts")
	flags.StringVar(&faults, "faults", "", "`file` with scripted faults, as POST /admin/faults takes them")
	flags.DurationVar(&p.options.SessionTimeout, "session-timeout", 10*time.Minute, "how long a session lives without a heartbeat or a request")
	flags.Func("alias", "a further `name` of the base model, such as Qwen/Qwen3-8B-Base; may be repeated", func(name string) error {
		p.options.Aliases = append(p.options.Aliases, name)
		return nil
	})
	showVersion := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if *showVersion {
		fmt.Fprintln(output, version.String())
		return nil, flag.ErrHelp
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected arguments: %s", strings.Join(flags.Args(), " "))
	}
	if p.options.Dir == "" {
		return nil, errors.New("--data-dir is required")
	}
	if faults == "" {
		return p, nil
	}
	var err error
	p.options.Faults, err = readFaults(faults)
	return p, err
}

func readFaults(name string) ([]fault.Rule, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return fault.Decode(file)
}
