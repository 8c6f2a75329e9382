// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestCallReturnsPanicsAsFaults(t *testing.T) {
	var log bytes.Buffer
	calls := &Calls{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	_, err := Call(t.Context(), calls, "Step", func(context.Context) (int, error) { panic("index out of range") })
	var fault *Fault
	var panicked *PanicError
	if !errors.As(err, &fault) || fault.Permanent || fault.Kind != EnvironmentFault || !errors.As(err, &panicked) {
		t.Fatalf("error is %#v, want a fault of the environment that may be retried", err)
	}
	if got, want := err.Error(), "Step panicked: index out of range"; got != want {
		t.Errorf("message is %q, want %q", got, want)
	}
	if got := log.String(); !strings.Contains(got, "call_test.go") {
		t.Errorf("the log is %q, want the stack", got)
	}
}

func TestCallReturnsResults(t *testing.T) {
	refused := errors.New("refused")
	got, err := Call(t.Context(), nil, "Step", func(context.Context) (int, error) { return 3, refused })
	if got != 3 || !errors.Is(err, refused) {
		t.Errorf("result is %v, %v, want 3 and the call's error", got, err)
	}
}

// closing is an episode that counts its ends.
type closing struct {
	Episode
	closed atomic.Int64
}

func (c *closing) Close(context.Context) { c.closed.Add(1) }

func TestCallGivesUpWhatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &Calls{Logger: slog.New(slog.DiscardHandler)}
		release, running := make(chan struct{}), &closing{}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		began := time.Now()
		_, err := Call(ctx, calls, "Start", func(context.Context) (Episode, error) {
			<-release
			return running, nil
		})
		if took, want := time.Since(began), time.Minute+returnGrace; took != want {
			t.Errorf("Call returned after %v, want %v", took, want)
		}
		var overdue *OverdueError
		if !errors.As(err, &overdue) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want an *OverdueError with the context's cause", err)
		}
		if got := calls.Problem(); !strings.Contains(got, "not returned: 1, among them Start") {
			t.Errorf("problem is %q, want one that counts the call", got)
		}
		close(release)
		synctest.Wait()
		if got := calls.Problem(); got != "" {
			t.Errorf("problem is %q after the call has returned, want none", got)
		}
		if got := running.closed.Load(); got != 1 {
			t.Errorf("the late episode was closed %d times, want once", got)
		}
	})
}

// TestCallWaitsForWhatEndsWithItsContext checks that the error of a call is returned if the call ends soon after its
// context.
func TestCallWaitsForWhatEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		own := errors.New("the server was told")
		_, err := Call(ctx, nil, "Step", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			time.Sleep(returnGrace - time.Millisecond)
			return 0, own
		})
		if !errors.Is(err, own) {
			t.Errorf("error is %v, want the call's", err)
		}
	})
}
