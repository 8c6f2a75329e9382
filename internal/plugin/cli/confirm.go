// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// errDeclined ends a command whose question was not answered with yes.
var errDeclined = errors.New("nothing was changed")

// Confirm asks a question at a terminal. It fails if there is no terminal, or if the answer is not yes.
func Confirm(ctx context.Context, env IO, question string) error {
	file, ok := env.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Misused("the standard input is not a terminal, so that nobody can be asked: confirm with --yes")
	}
	return Ask(ctx, env.Stderr, file, question)
}

// Ask writes a question and reads its answer, until ctx ends. It fails unless the answer is yes.
func Ask(ctx context.Context, w io.Writer, r io.Reader, question string) error {
	fmt.Fprintf(w, "%s [y/N] ", question)
	answered := make(chan error, 1)
	go func() { answered <- agreed(r) }() // A read of a terminal cannot be canceled.
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errDeclined, ctx.Err())
	}
}

// agreed reads an answer, and fails unless it is yes.
func agreed(r io.Reader) error {
	answer, err := bufio.NewReader(r).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errDeclined
	}
	return nil
}
