// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"net/http"
	"os"
	"os/exec"
	"testing"
)

// TestServicesAreBehindNoProxy checks that the Services of the cluster, such as a broker, are reached without the proxy
// of the environment. A process reads that setting once, so the test runs itself again with a proxy.
func TestServicesAreBehindNoProxy(t *testing.T) {
	const proxy = "http://proxy.internal:3128"
	if os.Getenv("HTTPS_PROXY") != proxy {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), "HTTPS_PROXY="+proxy, "NO_PROXY=")
		if output, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	for address, want := range map[string]string{
		"https://tinker-endpoint-prod.tinker-operator-system.svc:8443/api/v1/asample": "",
		"https://tinker.example.com/api/v1/asample":                                   proxy,
		"https://svc/api/v1/asample":                                                  proxy,
	} {
		for name, options := range map[string]Options{"environment": {}, "setting": {ProxyURL: "http://own:1"}} {
			transport, err := New(options)
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, nil)
			if err != nil {
				t.Fatal(err)
			}
			used, err := transport.Proxy(request)
			if err != nil {
				t.Fatal(err)
			}
			got, expected := "", want
			if used != nil {
				got = used.String()
			}
			if options.ProxyURL != "" {
				expected = options.ProxyURL
			}
			if got != expected {
				t.Errorf("%s, by the %s: the proxy is %q, want %q", address, name, got, expected)
			}
		}
	}
}
