// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command tinkersim serves a Tinker-compatible API around a small model that really learns. It
// needs no GPU and no network, and stores its checkpoints in a directory.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/fault"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/latency"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/vocabulary"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

// Exit codes.
const (
	exitUsage   = 64
	exitFailure = 1
)

// keyVariable is the environment variable of the API key, which then does not appear in the list of processes.
const keyVariable = "TINKERSIM_API_KEY"

const usage = `tinkersim serves the Tinker API around a small byte-level language model that really learns.

  tinkersim --listen 127.0.0.1:8000 --data-dir ./tinkersim-data
  export TINKER_BASE_URL=http://127.0.0.1:8000 TINKER_API_KEY=tml-local

The base model is ` + tinkersim.ModelName + `: its tokens are bytes, and it answers sums. ` + tinkersim.CountdownModelName + `
solves and judges tasks of Countdown, and ` + tinkersim.SumsModelName + ` adds right: a teacher. --vocabulary Qwen/Qwen3-8B=tokenizer.json also serves the first with another
model's tokens, for clients that use that model's chat format. With HF_ENDPOINT set to the same URL, clients that
fetch their tokenizer from a Hugging Face hub find it there. Models and sessions are in memory and end with the
process; checkpoints are in the data directory and stay.

tinkersim export-base DIR writes the base model to a folder that the Python package transformers loads.

Flags:
`

func main() {
	if len(os.Args) > 1 && os.Args[1] == exportCommand {
		exit(exportBase(os.Args[2:], os.Stdout))
	}
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
	p.options.Log = p.log
	if err := p.Run(ctx); err != nil {
		p.log.Error("stopped", "err", err)
		os.Exit(exitFailure)
	}
}

// exit ends the program after a command that serves nothing.
func exit(err error) {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "tinkersim:", err)
		os.Exit(exitUsage)
	default:
		fmt.Fprintln(os.Stderr, "tinkersim:", err)
		os.Exit(exitFailure)
	}
}

// parse parses the arguments. The key is used if --api-key is not given; the help does not show it.
func parse(args []string, key string, output io.Writer) (*program, error) {
	flags := flag.NewFlagSet("tinkersim", flag.ContinueOnError)
	flags.SetOutput(output)
	flags.Usage = func() {
		fmt.Fprint(output, usage)
		flags.PrintDefaults()
	}
	p := &program{}
	var faults, config string
	flags.StringVar(&p.listen, "listen", "127.0.0.1:8000",
		"`address` to serve at; port 0 takes a free one, which is logged")
	flags.StringVar(&p.options.Dir, "data-dir", "",
		"`directory` of the checkpoints, which must be empty or tinkersim's own, and which one server at a time can use "+
			"(required)")
	flags.StringVar(&p.options.APIKey, "api-key", "",
		"the only `key` that is accepted; without it, every key that begins with tml- is accepted (default $"+keyVariable+")")
	flags.BoolVar(&p.options.Admin, "admin", false, "serve the endpoints under /admin: scripted faults, restart, counters")
	flags.StringVar(&faults, "faults", "", "`file` with scripted faults, as POST /admin/faults takes them")
	flags.DurationVar(&p.options.SessionTimeout, "session-timeout", 10*time.Minute,
		"how long a session lasts without a heartbeat or a request")
	flags.StringVar(&config, "client-config", "", "`file` with the response of client/config, which configures clients")
	flags.DurationVar(&p.options.PollPatience, "poll-patience", 30*time.Second, "how long a poll waits for a result")
	flags.IntVar(&p.options.MetadataBytes, "announce-bytes", 8<<20,
		"size in `bytes` from which the metadata of a result is sent before the result")
	flags.Float64Var(&p.options.SampleNoise, "sample-noise", 0,
		"standard deviation `sigma` of noise that is added to the logits of each sample, to simulate inexact arithmetic")
	flags.Func("latency", "give operations the times of another server: `hosted[/N]`, those of the hosted service, or "+
		"an N-th of them", p.setLatency)
	flags.Float64Var(&p.options.Limits.RequestsPerSecond, "requests-per-second", 0,
		"how many submits are permitted each second; others get 429 (default no limit)")
	flags.IntVar(&p.options.Limits.UnfinishedSamples, "unfinished-samples", 0,
		"how many requests for samples may have no result yet; others get 429 (default no limit)")
	flags.StringVar(&p.options.Dialect, "dialect", "",
		"`name` of another behaviour: json (no protobuf) or skyrl (like SkyRL 0.3.0)")
	flags.Func("alias", "a further `name` of the base model, such as Qwen/Qwen3-8B-Base; may be repeated",
		func(name string) error {
			p.options.Aliases = append(p.options.Aliases, name)
			return nil
		})
	flags.Func("vocabulary", "a further base model, `NAME=FILE`: the same network with the tokens of FILE, a "+
		"tokenizer.json or tiktoken file, under the name OWNER/NAME; may be repeated", p.addVocabulary)
	showVersion := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if *showVersion {
		fmt.Fprintln(output, version.String())
		return nil, flag.ErrHelp
	}
	p.options.APIKey = cmp.Or(p.options.APIKey, key)
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected arguments: %s", strings.Join(flags.Args(), " "))
	}
	if p.options.Dir == "" {
		return nil, errors.New("--data-dir is required")
	}
	return p, p.read(faults, config)
}

// read reads the files that the flags name.
func (p *program) read(faults, config string) error {
	var err error
	if faults != "" {
		if p.options.Faults, err = readFaults(faults); err != nil {
			return err
		}
	}
	if config == "" {
		return nil
	}
	data, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &p.options.Config); err != nil {
		return fmt.Errorf("decoding %s: %w", config, err)
	}
	return nil
}

// setLatency parses a value of --latency.
func (p *program) setLatency(value string) error {
	name, divisor, divided := strings.Cut(value, "/")
	factor := 1.0
	if divided {
		var err error
		if factor, err = strconv.ParseFloat(divisor, 64); err != nil {
			return err
		}
	}
	if name != "hosted" || !(factor > 0) {
		return errors.New("it must be hosted or hosted/N with a positive number N, such as hosted/10")
	}
	p.options.Latency = latency.Hosted.Faster(factor)
	return nil
}

// addVocabulary parses a value of --vocabulary.
func (p *program) addVocabulary(value string) error {
	name, file, ok := strings.Cut(value, "=")
	if owner, rest, two := strings.Cut(name, "/"); !ok || !two || owner == "" || rest == "" || strings.Contains(rest,
		"/") {
		return errors.New("it must be OWNER/NAME=FILE, such as Qwen/Qwen3-8B=tokenizer.json")
	}
	if _, twice := p.options.Vocabularies[name]; twice {
		return fmt.Errorf("%s is given twice", name)
	}
	v, err := vocabulary.Load(file)
	if err != nil {
		return err
	}
	if p.options.Vocabularies == nil {
		p.options.Vocabularies = map[string]*vocabulary.Vocabulary{}
	}
	p.options.Vocabularies[name] = v
	return nil
}

func readFaults(name string) ([]fault.Rule, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return fault.Decode(file)
}
