// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe is the program of the self-test's pods: it asks of the cluster, from inside, what
// any pod may. It exits 0 when the cluster did what was asked.
//
//	probe sleep               wait for a signal to stop
//	probe serve TEXT          answer every HTTP request on port 8080 with TEXT
//	probe lookup NAME WANT    resolve NAME and expect the address WANT
//	probe get URL WANT        fetch URL and expect the body WANT
//	probe write FILE TEXT     write TEXT to FILE
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// timeout is how long a question is repeated: the rules of a new Service take a moment.
const timeout = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	args = append(args, "", "", "") // absent words are empty
	switch args[0] {
	case "sleep":
		<-ctx.Done()
		return nil
	case "serve":
		return serve(ctx, args[1])
	case "lookup":
		return repeat(ctx, func(ctx context.Context) error { return lookup(ctx, args[1], args[2]) })
	case "get":
		return repeat(ctx, func(ctx context.Context) error { return get(ctx, args[1], args[2]) })
	case "write":
		return os.WriteFile(args[1], []byte(args[2]), 0o600)
	}
	return fmt.Errorf("unknown verb %q", args[0])
}

func serve(ctx context.Context, text string) error {
	server := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, text)
		}),
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

// repeat asks until the answer is right or the timeout has passed, and returns the last error.
func repeat(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func lookup(ctx context.Context, host, want string) error {
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return fmt.Errorf("looking up %s: %w", host, err)
	}
	if !slices.Contains(addresses, want) {
		return fmt.Errorf("looking up %s: got %v, want %s", host, addresses, want)
	}
	return nil
}

func get(ctx context.Context, url, want string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("building the request: %w", err)
	}
	client := &http.Client{Timeout: 3 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("fetching: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading %s: %w", url, err)
	}
	if string(body) != want {
		return fmt.Errorf("fetching %s: got %q, want %q", url, body, want)
	}
	return nil
}
