// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager runs the controllers of tinker-operator; with the argument apply-crds it creates or updates the CRDs
// and ends. It reads no environment variables but those that the Go runtime and client-go know: GOMEMLIMIT, and in a
// cluster KUBERNETES_SERVICE_HOST and _PORT; outside of one, KUBECONFIG or --kubeconfig.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/internal/controller"
	runmetrics "github.com/tinker-operator/tinker-operator/internal/controller/metrics"
	"github.com/tinker-operator/tinker-operator/internal/desired"
	"github.com/tinker-operator/tinker-operator/internal/version"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == applyCRDs {
		log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
		ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
		exit(runApplyCRDs(ctrl.SetupSignalHandler(), log))
		return
	}
	// The default set has --kubeconfig, which controller-runtime reads.
	o, err := parse(flag.CommandLine, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: o.logLevel})))
		err = run(ctrl.SetupSignalHandler(), o)
	}
	exit(err)
}

// exit ends the program with an error.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if err := o.readTables(); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	config.UserAgent = version.UserAgent("tinker-operator")
	// The API server's own fairness limits the manager; a limit here would only add to its delays.
	config.QPS = -1
	managerOptions, err := o.manager()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	err = controller.Setup(ctx, mgr, controller.Options{
		ManagerKey: o.managerKey,
		Identity:   o.identity(),
		Namespaces: o.namespaces,
		Endpoints:  o.endpoints,
		WarmPools:  o.warmPools,
		Settings: desired.Settings{
			Namespace: o.operatorNamespace(), Broker: o.broker,
			Image: o.image, PythonImage: o.pythonImage, PackageIndex: o.packageIndex,
			DefaultBaseURL: o.defaultBaseURL, PodDefaults: o.podDefaults,
			SharedServers: o.sharedServers, AssignedUsers: o.assignedUsers,
		},
	})
	if err != nil {
		return err
	}
	reads, _ := o.endpoints.Reader(mgr)
	endpoints := runmetrics.Endpoints{Reader: reads, Names: o.endpoints.Names, Namespace: o.operatorNamespace(),
		Now: time.Now}
	if err := metrics.Registry.Register(runmetrics.NewCollector(mgr.GetClient(), endpoints, mgr.Elected())); err != nil {
		return fmt.Errorf("registering the metrics of runs: %w", err)
	}
	if err := mgr.Add(keyWatch{file: o.managerKeyFile, key: o.managerKey, interval: keyCheckInterval}); err != nil {
		return fmt.Errorf("watching the manager key: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding readiness check: %w", err)
	}
	slog.New(logr.ToSlogHandler(ctrl.Log)).Info("starting", "version", version.String(), "namespaces", o.namespaces,
		"image", o.image)
	return mgr.Start(ctx)
}

// manager returns the options of the manager that the command line sets.
func (o options) manager() (ctrl.Options, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	cacheOptions, err := controller.CacheOptions(o.namespaces, o.sharedServers)
	if err != nil {
		return ctrl.Options{}, err
	}
	server := metricsserver.Options{BindAddress: o.metricsAddress}
	if !o.metricsInsecure {
		server.SecureServing = true
		server.CertDir = o.metricsCertDir
		server.FilterProvider = runmetrics.Filter
		server.TLSOpts = []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS13
			// Scraping needs no HTTP/2, which has had many vulnerabilities.
			c.NextProtos = []string{"http/1.1"}
		}}
	}
	// A standby leads once it has seen no renewal for leaseDuration: within 13 s of the end of a manager that could not
	// release the lease.
	leaseDuration, renewDeadline, retryPeriod := 10*time.Second, 7*time.Second, time.Second
	return ctrl.Options{
		Scheme:                  scheme,
		Cache:                   cacheOptions,
		Metrics:                 server,
		HealthProbeBindAddress:  o.probeAddress,
		LeaderElection:          o.leaderElect,
		LeaderElectionID:        "tinker-operator." + v1alpha1.SchemeGroupVersion.Group,
		LeaderElectionNamespace: o.leaderElectionNamespace,
		// The lease is released at once, so that the next manager need not wait for it to run out.
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &leaseDuration,
		RenewDeadline:                 &renewDeadline,
		RetryPeriod:                   &retryPeriod,
	}, nil
}
