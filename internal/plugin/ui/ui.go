// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui has the command that shows runs in a browser. Its server runs on the user's machine, with the user's own
// permissions, and only the pods that read artifacts are in the cluster.
package ui

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/plugin/tokens"
	"github.com/tinker-operator/tinker-operator/internal/plugin/transcripts"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/cache"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/guard"
	"github.com/tinker-operator/tinker-operator/internal/plugin/ui/site"
)

const uiHelp = `kubectl tinker ui shows runs, curves, conversations and comparisons in a browser. The pages are
served on this machine, with your own permissions in the cluster, until Ctrl-C ends the command.

The address that it prints admits one browser. Press Enter for another address.

Conversations are read from the runs' artifacts: from a store of which the environment has keys, such as
AWS_ACCESS_KEY_ID, and else by a pod of each run, which is deleted with the command and requires Kubernetes' role edit.
Whoever lacks both sees everything else. Conversations that were read are kept below ~/.cache/tinker-operator, at most
256 MiB for 14 days without a use, unless --no-cache is given.

--listen serves to other machines, which requires a certificate: whoever has the address that is printed acts with your
permissions.`

const uiExample = `  kubectl tinker ui
  kubectl tinker ui --all-namespaces --no-browser
  kubectl tinker ui --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem`

type flags struct {
	listen    string
	cert, key string
	noBrowser bool
	noCache   bool
	all       bool
}

// New returns the command that shows runs in a browser.
func New(env cli.IO, cluster *cli.Cluster) *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use: "ui", Short: "Show runs, curves and conversations in a browser", Long: uiHelp, Example: uiExample,
		Args:              cli.NoArgs("choose runs on the page"),
		ValidArgsFunction: cobra.NoFileCompletions,
		PreRunE:           func(*cobra.Command, []string) error { return f.check() },
		RunE: func(command *cobra.Command, _ []string) error {
			connection, err := cluster.Connect()
			if err != nil {
				return err
			}
			watcher, err := client.NewWithWatch(connection.Config, client.Options{Scheme: connection.Scheme()})
			if err != nil {
				return fmt.Errorf("connecting to the cluster: %w", err)
			}
			readers := transcripts.NewReaders(env, connection)
			err = f.run(command.Context(), env, f.site(env, connection, watcher, f.kept(env, readers.Read)))
			return errors.Join(err, readers.Close(command.Context()))
		},
	}
	set := command.Flags()
	set.StringVar(&f.listen, "listen", "127.0.0.1:0", "`ADDRESS` to serve at; port 0 is a free one")
	set.StringVar(&f.cert, "tls-cert", "", "`FILE` with the certificate, for an address that other machines reach")
	set.StringVar(&f.key, "tls-key", "", "`FILE` with the key of the certificate")
	set.BoolVar(&f.noBrowser, "no-browser", false, "print the address and open no browser")
	set.BoolVar(&f.noCache, "no-cache", false, "keep no transcripts on this machine's disk")
	set.BoolVarP(&f.all, "all-namespaces", "A", false, "show the runs of all namespaces")
	_ = command.MarkFlagFilename("tls-cert")
	_ = command.MarkFlagFilename("tls-key")
	return command
}

// check refuses an address that other machines reach without TLS.
func (f flags) check() error {
	host, _, err := net.SplitHostPort(f.listen)
	switch {
	case err != nil:
		return cli.Misused("--listen is %q: give HOST:PORT, for instance 127.0.0.1:8080", f.listen)
	case (f.cert == "") != (f.key == ""):
		return cli.Misused("give both --tls-cert and --tls-key, or neither")
	case f.cert == "" && !isLoopback(host):
		return cli.Misused("--listen %s is reached by other machines: give --tls-cert and --tls-key, or listen at 127.0.0.1 "+
			"and forward the port, for instance with ssh -L", f.listen)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// kept returns a read function that keeps transcripts on this machine's disk, unless a flag forbids it or the user
// has no folder for them.
func (f flags) kept(env cli.IO, read site.ReadFunc) site.ReadFunc {
	folder := env.TranscriptCache()
	if f.noCache || folder == "" {
		return read
	}
	store, err := cache.Open(folder, time.Now)
	if err != nil {
		fmt.Fprintf(env.Stderr, "transcripts are not kept on this machine: %v\n", err)
		return read
	}
	return store.Wrap(read)
}

// site returns the pages of a cluster.
func (f flags) site(env cli.IO, connection *cli.Connection, watcher client.WithWatch,
	read site.ReadFunc) *site.Site {
	namespace := connection.Namespace
	if f.all {
		namespace = ""
	}
	return site.New(site.Config{
		Connection: connection, Watcher: watcher, Namespace: namespace, Now: env.Now, Read: read,
		Pieces: func(ctx context.Context, model string) (func([]int32) []string, error) {
			return tokens.Pieces(ctx, env, model)
		},
	})
}

// run serves the pages until the context ends.
func (f flags) run(ctx context.Context, env cli.IO, pages *site.Site) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listener, hosts, err := f.open(ctx)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return fmt.Errorf("reading the address: %w", err)
	}
	keeper := guard.New(hosts, port, f.cert != "", time.Now)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		pages.Run(ctx)
	}()
	server := &http.Server{Handler: keeper.Wrap(pages), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: log.New(discard{}, "", 0)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	f.announce(ctx, env, keeper)
	select {
	case err = <-ended:
	case <-ctx.Done():
		closing, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer stop()
		err = server.Shutdown(closing)
	}
	cancel()
	<-watched
	pages.Wait() // A pod that reads is deleted before the command ends.
	if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("serving the pages: %w", err)
	}
	return nil
}

// discard drops the server's log about connections that browsers end.
type discard struct{}

// Write implements io.Writer.
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// open listens, and returns the names of the host by which browsers may ask. The first name is the one to print.
func (f flags) open(ctx context.Context) (net.Listener, []string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return nil, nil, fmt.Errorf("listening at %s: %w: choose another address with --listen", f.listen, err)
	}
	hosts := []string{"127.0.0.1", "localhost", "::1"}
	if host, _, _ := net.SplitHostPort(f.listen); host != "" && !net.ParseIP(host).IsUnspecified() {
		hosts = append([]string{host}, hosts...)
	}
	if f.cert == "" {
		return listener, hosts, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		_ = listener.Close()
		return nil, nil, fmt.Errorf("reading the certificate: %w", err)
	}
	// Other machines reach the server by the names of the certificate.
	names := slices.DeleteFunc(slices.Clone(pair.Leaf.DNSNames), func(name string) bool {
		return strings.Contains(name, "*")
	})
	for _, ip := range pair.Leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}}), append(names, hosts...), nil
}

// announce prints the address and opens it, and prints another address for each line of the input.
func (f flags) announce(ctx context.Context, env cli.IO, keeper *guard.Guard) {
	address := keeper.Address()
	fmt.Fprintf(env.Stdout, "%s\n", address)
	fmt.Fprintln(env.Stderr, "The address admits one browser. Press Enter for another one, and Ctrl-C to end.")
	if !f.noBrowser {
		if err := transcripts.Open(ctx, address); err != nil {
			fmt.Fprintf(env.Stderr, "%v\n", err)
		}
	}
	if env.Stdin == nil {
		return
	}
	go func() {
		for lines := bufio.NewScanner(env.Stdin); lines.Scan() && ctx.Err() == nil; {
			fmt.Fprintln(env.Stdout, keeper.Address())
		}
	}()
}
