// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestAsk(t *testing.T) {
	for answer, ok := range map[string]bool{"y\n": true, "Yes\n": true, "n\n": false, "\n": false, "": false} {
		var asked bytes.Buffer
		if err := Ask(t.Context(), &asked, strings.NewReader(answer), "Continue?"); (err == nil) != ok {
			t.Errorf("the answer %q: got %v", answer, err)
		}
		if asked.String() != "Continue? [y/N] " {
			t.Errorf("it asks %q", asked.String())
		}
	}
}

// TestInterruptEndsTheQuestion interrupts a question that has no answer yet.
func TestInterruptEndsTheQuestion(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	silent, writer := io.Pipe()
	defer writer.Close()
	ended := make(chan error, 1)
	go func() { ended <- Ask(ctx, io.Discard, silent, "Continue?") }()
	interrupt()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Ask() = %v, want that it was interrupted", err)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("Ask() has not returned 5 minutes after the interrupt")
	}
}
