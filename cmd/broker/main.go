// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command broker passes on the Tinker requests of the runs of one TinkerEndpoint under the API key, which no run has.
// Of several processes, the holder of the Lease serves; the others wait for the Lease.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	// The CA certificates are built in, since images contain only the programs.
	_ "golang.org/x/crypto/x509roots/fallback"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tinker-operator/tinker-operator/internal/broker"
	"github.com/tinker-operator/tinker-operator/internal/tinker/transport"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

func main() {
	broker.ReserveHeap()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, which is no error.
func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: o.logLevel}))
	p, err := newProcess(o, log)
	if err != nil {
		return err
	}
	log.Info("starting", "version", version.String(), "endpoint", o.endpoint, "identity", p.lease.Identity())
	return p.run(ctx)
}

// process is a broker's process: a standby until it holds the Lease.
type process struct {
	options
	log      *slog.Logger
	core     corev1client.CoreV1Interface
	lease    *lease
	claim    *claim
	settings *settingsStore
	metrics  *metrics
	// current is the open broker, ready says that it serves, and draining that it admits nothing more.
	current         atomic.Pointer[broker.Broker]
	ready, draining atomic.Bool
	// inProgress is the number of requests without an answer.
	inProgress atomic.Int64
	// sender has the client for the newest proxy.
	sender sender
}

func newProcess(o options, log *slog.Logger) (*process, error) {
	config, err := restConfig(o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	config.UserAgent = version.UserAgent("tinker-operator-broker")
	p := &process{options: o, log: log, settings: newSettingsStore(o.endpoint, log)}
	if p.core, err = corev1client.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	leases, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	if p.lease, err = newLease(o, leases); err != nil {
		return nil, err
	}
	p.claim = &claim{endpoint: o.endpoint, namespace: o.namespace, now: time.Now,
		read: func(ctx context.Context) ([]byte, error) {
			return p.core.RESTClient().Get().AbsPath(endpointsPath, o.endpoint).DoRaw(ctx)
		}}
	p.metrics = newMetrics(p)
	return p, nil
}

// endpointsPath is the path of the TinkerEndpoints at the API server.
const endpointsPath = "/apis/rl.tinker-operator.dev/v1alpha1/tinkerendpoints"

// holds returns why the broker may not act, or nil. The broker has to hold the Lease, and its release has to serve
// the endpoint.
func (p *process) holds() error {
	if err := p.lease.valid(); err != nil {
		return err
	}
	return p.claim.valid()
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// run serves as a standby, waits for settings and for the Lease, and leads until ctx ends or the Lease is lost.
func (p *process) run(ctx context.Context) error {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	closeServers, err := p.serve(following)
	if err != nil {
		return err
	}
	defer closeServers()
	go p.settings.watch(following, p.core, p.namespace)
	go p.claim.follow(following, p.log)
	select {
	case <-p.settings.known:
	case <-ctx.Done():
		return nil
	}
	var led error
	err = p.lease.elect(ctx, func(held context.Context) { led = p.lead(ctx, held) })
	return errors.Join(err, led)
}

// sender is the client of the Tinker endpoint for one proxy.
type sender struct {
	proxy  string
	client *http.Client
}

// clientFor returns the client for a proxy, or for no proxy if it is empty. The client stays the same while the proxy
// does.
func (p *process) clientFor(proxy string) (*http.Client, error) {
	if p.sender.client != nil && p.sender.proxy == proxy {
		return p.sender.client, nil
	}
	options := transport.Options{ProxyURL: proxy, CAFile: p.caFile}
	if p.clientCertDir != "" {
		options.CertificateFile = filepath.Join(p.clientCertDir, "tls.crt")
		options.KeyFile = filepath.Join(p.clientCertDir, "tls.key")
	}
	made, err := transport.New(options)
	if err != nil {
		return nil, err
	}
	p.sender = sender{proxy, &http.Client{Transport: made}}
	return p.sender.client, nil
}
