// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command image packs static programs into a container image and writes it as a tarball that
// `docker load`, `kind load image-archive` and `ctr images import` accept. It needs no Docker, no
// base image and no registry. The same input gives the same bytes: times are fixed and entries
// sorted. It must know nothing about what it packs.
//
// Example:
//
//	image --binary bin/manager=/manager --entrypoint /manager --user 65532:65532 \
//	      --tag example.com/tinker-operator:v1 --out manager.tar
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run builds the image that the arguments describe, writes and pushes it as they ask, and prints
// its digest.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	request, err := parseFlags(args)
	if err != nil {
		return err
	}
	image, err := build(request.content)
	if err != nil {
		return fmt.Errorf("building %s: %w", request.tag, err)
	}
	if request.out != "" {
		if err := writeTarball(request.out, request.tag, image); err != nil {
			return fmt.Errorf("writing %s: %w", request.out, err)
		}
	}
	if request.push {
		if err := push(ctx, request.tag, image); err != nil {
			return fmt.Errorf("pushing %s: %w", request.tag, err)
		}
	}
	digest, err := image.Digest()
	if err != nil {
		return fmt.Errorf("computing the digest: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "%s@%s\n", request.tag, digest)
	return err
}
