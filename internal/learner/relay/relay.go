// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package relay passes the requests of a person on to the endpoint of a run, under the token of the run, which stays in
// the pod. The endpoint decides which requests the run may make.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/tinker-operator/tinker-operator/internal/learner/idle"
	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Config says where requests go.
type Config struct {
	// BaseURL is the address of the endpoint, and Token the token of the run.
	BaseURL, Token string
	// HTTP sends the requests.
	HTTP http.RoundTripper
}

// Serve passes on the requests that arrive at a listener, until there was no request for a while or the context ends.
func Serve(ctx context.Context, config Config, listener net.Listener) error {
	handler, err := New(config)
	if err != nil {
		return err
	}
	return idle.Serve(ctx, handler, listener, idle.Patience)
}

// New returns the handler that passes requests on. A GET with tinker.HeaderRelayFile fetches the file at that address,
// without the token: the endpoint returned the address, which the pod may reach even if the person does not.
func New(config Config) (http.Handler, error) {
	base, err := url.Parse(config.BaseURL)
	if err != nil || base.Host == "" {
		return nil, errors.New("passing requests on: the endpoint of the run file is no URL")
	}
	proxy := &httputil.ReverseProxy{
		Transport: config.HTTP, FlushInterval: -1, ErrorHandler: unreachable,
		Rewrite: func(r *httputil.ProxyRequest) {
			place := r.In.Header.Get(tinker.HeaderRelayFile)
			if place == "" {
				r.SetURL(base)
				r.Out.Header.Set(tinker.HeaderAPIKey, config.Token)
				return
			}
			r.Out.Header.Del(tinker.HeaderRelayFile)
			r.Out.Header.Del(tinker.HeaderAPIKey)
			r.Out.URL, _ = url.Parse(place) // it was parsed before
			r.Out.Host = ""
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if place := r.Header.Get(tinker.HeaderRelayFile); place != "" && !isFile(r.Method, place) {
			http.Error(w, "a file is fetched with GET at an http or https address", http.StatusBadRequest)
			return
		}
		proxy.ServeHTTP(w, r)
	}), nil
}

func isFile(method, place string) bool {
	address, err := url.Parse(place)
	return err == nil && method == http.MethodGet && address.Host != "" &&
		(address.Scheme == "http" || address.Scheme == "https")
}

// unreachable answers a request that the endpoint did not answer.
func unreachable(w http.ResponseWriter, _ *http.Request, err error) {
	w.WriteHeader(http.StatusBadGateway)
	_, _ = io.WriteString(w, fmt.Sprintf("the pod got no answer: %v", err))
}
