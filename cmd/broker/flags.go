// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"log/slog"
)

// options are the command line of the broker.
type options struct {
	endpoint, namespace string
	// dir has the records, tlsDir the certificate of the server, and keyDir the keys.
	dir, tlsDir, keyDir string
	// listen is the address for runs, and healthListen the address for probes and metrics.
	listen, healthListen string
	// caFile has authorities of the Tinker endpoint, and clientCertDir the certificate that the endpoint requires.
	caFile, clientCertDir string
	kubeconfig            string
	logLevel              slog.Level
}

func parse(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("broker", flag.ContinueOnError)
	set.StringVar(&o.endpoint, "endpoint", "", "`name` of the TinkerEndpoint. Required.")
	set.StringVar(&o.namespace, "namespace", "", "`namespace` of settings, report and Lease: the operator's. Required.")
	set.StringVar(&o.dir, "dir", "", "`folder` of the records. Required.")
	set.StringVar(&o.tlsDir, "tls-dir", "", "`folder` with tls.crt and tls.key, which are read again when they change. Required.")
	set.StringVar(&o.keyDir, "key-dir", "",
		"`folder` with api-key, the key of the Tinker endpoint, and token-key, from which the tokens of runs are derived; they "+
			"are read again when they change. Required.")
	set.StringVar(&o.listen, "listen", ":8443", "`address` for runs, with TLS 1.3; it has /healthz and /readyz, too")
	set.StringVar(&o.healthListen, "health-listen", ":8081", "`address` of /healthz, /readyz and /metrics, without TLS; "+
		"empty for none")
	set.StringVar(&o.caFile, "ca-file", "", "`file` with authorities of the Tinker endpoint, "+
		"besides the system's authorities")
	set.StringVar(&o.clientCertDir, "client-cert-dir", "",
		"`folder` with tls.crt and tls.key, the client certificate for the Tinker endpoint")
	set.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server; empty within a cluster")
	set.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "least `level` to log: debug, info, warn or error")
	if err := set.Parse(args); err != nil {
		return options{}, err
	}
	for name, value := range map[string]string{"endpoint": o.endpoint, "namespace": o.namespace, "dir": o.dir,
		"tls-dir": o.tlsDir, "key-dir": o.keyDir} {
		if value == "" {
			return options{}, errors.New("--" + name + " is required")
		}
	}
	return o, nil
}
