// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package talk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tinker-operator/tinker-operator/internal/gateway/dialect"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/serving"
)

const serveHelp = `kubectl tinker serve lets programs talk to the checkpoints of a run, as they talk to
OpenAI's and Anthropic's services: at
chat/completions, completions (with echo and logprobs), responses, messages, count_tokens and models. Without --step and
--best it serves the newest checkpoint, and each newer one while the run trains. RUN@STEP, RUN@best and RUN@base name
others in the field model. A tinker:// path of sampler weights is served without a cluster.

Requests decide on their sampling. Prompts are rendered here, as the run renders them, and the endpoint of the run
samples and bills. It listens on the loopback interface; --listen with a certificate serves other machines. The API key
is found as by kubectl tinker checkpoints download.`

const serveExample = `  kubectl tinker serve arithmetic
  kubectl tinker serve arithmetic --best --port 8000 --as gpt-4o
  OPENAI_BASE_URL=http://127.0.0.1:8000/v1 OPENAI_API_KEY=any python agent.py
  ANTHROPIC_BASE_URL=http://127.0.0.1:8000 ANTHROPIC_API_KEY=any python agent.py
  kubectl tinker serve tinker://f3a1/sampler_weights/40 --base-url https://tinker.example.com`

type serveFlags struct {
	choice
	port              int
	as                []string
	token             string
	withToken, strict bool
	listen, cert, key string
}

// NewServe returns the command that serves checkpoints.
func NewServe(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f serveFlags
	command := &cobra.Command{
		Use: "serve RUN|CHECKPOINT", Short: "Let programs talk to a checkpoint, as to OpenAI's or Anthropic's services",
		Long: serveHelp, Example: serveExample, Args: cli.Args(1, 1, "the name of a RUN or a tinker:// path"),
		ValidArgsFunction: cluster.CompleteRuns(1),
		PreRunE:           func(*cobra.Command, []string) error { return f.check() },
		RunE: func(command *cobra.Command, args []string) error {
			return f.run(command.Context(), env, cluster.Connect, args[0])
		},
	}
	flags := command.Flags()
	f.add(flags)
	flags.IntVar(&f.port, "port", 0, "`PORT` of the server; 0 for a free one")
	flags.StringSliceVar(&f.as, "as", nil, "`NAME` of the model for clients that ask for a certain one. Defaults to the "+
		"name of the run. It may be given several times")
	flags.BoolVar(&f.withToken, "with-token", false, "require a token, which is printed; it is the API key of clients, "+
		"or the beginning of the path")
	flags.StringVar(&f.token, "token", "", "require this `TOKEN`")
	flags.BoolVar(&f.strict, "strict", false, "refuse requests with options that are not followed, rather than "+
		"ignore them")
	flags.StringVar(&f.listen, "listen", "", "`ADDRESS` to listen on in place of the loopback interface; needs "+
		"--tls-cert, --tls-key and a token")
	flags.StringVar(&f.cert, "tls-cert", "", "`FILE` of the server's certificate")
	flags.StringVar(&f.key, "tls-key", "", "`FILE` of the certificate's key")
	return command
}

func (f *serveFlags) check() error {
	if err := f.choice.check(); err != nil {
		return err
	}
	if (f.cert == "") != (f.key == "") {
		return cli.Misused("--tls-cert and --tls-key belong together: give both")
	}
	if f.withToken && f.token == "" {
		f.token = serving.RandomToken()
	}
	if ip := net.ParseIP(f.listen); f.listen != "" && (ip == nil || !ip.IsLoopback()) && (f.cert == "" || f.token == "") {
		return cli.Misused("--listen %s lets other machines ask, and spend what the API key may spend: give --tls-cert, "+
			"--tls-key and --with-token", f.listen)
	}
	return nil
}

func (f *serveFlags) run(ctx context.Context, env cli.IO, connect func() (*cli.Connection, error),
	name string) (err error) {
	from, err := f.open(ctx, env, connect, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.close(ctx)) }()
	models := newCatalog(from, f.as)
	first, err := models.Model(ctx, models.names[0])
	if err != nil {
		return err
	}
	models.describe(env, first.Weights)
	return f.serve(ctx, env, models, from.defaults)
}

// serve listens until the command is interrupted.
func (f *serveFlags) serve(ctx context.Context, env cli.IO, models *catalog, defaults serving.Defaults) error {
	address := f.listen
	if address == "" {
		address = "127.0.0.1"
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(f.port)))
	if err != nil {
		return fmt.Errorf("listening: %w: choose another port with --port", err)
	}
	scheme := "http"
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			listener.Close()
			return fmt.Errorf("reading the certificate: %w", err)
		}
		scheme = "https"
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	}
	ip := net.ParseIP(address)
	config := serving.Config{Catalog: models, Defaults: defaults, Token: f.token,
		Remote: ip == nil || !ip.IsLoopback(), Logger: slog.New(slog.NewTextHandler(env.Stderr, nil))}
	if f.strict {
		config.Unsupported = dialect.Refuse
	}
	url := scheme + "://" + listener.Addr().String()
	f.introduce(env, url, models.Names()[0])
	const headers, idle = time.Minute, 10 * time.Minute
	server := &http.Server{Handler: serving.NewServer(config), ReadHeaderTimeout: headers, IdleTimeout: idle,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // Requests end with ctx.
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// introduce prints the settings of clients. Only the address is on the standard output.
func (f *serveFlags) introduce(env cli.IO, url, model string) {
	key := f.token
	if key == "" {
		key = "any"
	}
	fmt.Fprintf(env.Stderr, "OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=%s\nANTHROPIC_BASE_URL=%s ANTHROPIC_API_KEY=%s\n"+
		"model: %s\n", url, key, url, key, model)
	if f.token != "" {
		fmt.Fprintf(env.Stderr, "with the token in the address: %s/%s/v1\n", url, f.token)
	}
	fmt.Fprintln(env.Stdout, url)
}
