// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestErrorText(t *testing.T) {
	cause := errors.New("reset")
	e := &Error{Category: tinker.CategoryServer, Op: "optim_step", Status: 503, RequestID: "r", Message: "busy",
		Err: cause}
	const want = "optim_step: server (status 503) for r: busy: reset"
	if e.Error() != want || !errors.Is(e, cause) || !e.Temporary() {
		t.Errorf("Error = %q, temporary %v", e, e.Temporary())
	}
	wrapped := fmt.Errorf("stepping: %w", e)
	if CategoryFrom(wrapped) != tinker.CategoryServer || MayHaveRun(wrapped) {
		t.Errorf("CategoryFrom = %s, MayHaveRun = %v", CategoryFrom(wrapped), MayHaveRun(wrapped))
	}
	if CategoryFrom(cause) != "" || !MayHaveRun(cause) || MayHaveRun(nil) {
		t.Errorf("CategoryFrom = %q, MayHaveRun = %v, and %v of no error, want none, true and false",
			CategoryFrom(cause), MayHaveRun(cause), MayHaveRun(nil))
	}
	if got := asError("op", cause); got.Category != tinker.CategoryUnknown || !got.MayHaveRun || !errors.Is(got, cause) {
		t.Errorf("asError = %+v", got)
	}
}

func TestNamesInUse(t *testing.T) {
	for message, want := range map[string]tinker.Category{
		"Checkpoint 'a' already exists":      tinker.CategoryExists,
		"a checkpoint with this name exists": tinker.CategoryExists,
		"name is already in use":             tinker.CategoryExists,
		"Duplicate checkpoint name":          tinker.CategoryExists,
		"name has bad characters":            tinker.CategoryUser,
		"session does not exist":             tinker.CategoryUser,
	} {
		if got := asExists(&Error{Op: tinker.TypeSaveSampler, Category: tinker.CategoryUser,
			Message: message}); got.Category != want {
			t.Errorf("%q is %s, want %s", message, got.Category, want)
		}
		if got := asExists(&Error{Op: tinker.TypeLoadWeights, Category: tinker.CategoryUser,
			Message: message}); got.Category != tinker.CategoryUser {
			t.Errorf("%q of a load is %s", message, got.Category)
		}
	}
}

func TestLongMessages(t *testing.T) {
	long := make([]byte, 5000)
	for i := range long {
		long[i] = 0xc3
	}
	copy(long, "start")
	if got := message(long); got != "start" {
		t.Errorf("message = %q", got)
	}
	if got := message([]byte(`{"detail":"" }`)); got != "" {
		t.Errorf("message = %q", got)
	}
	if got := message([]byte(`{"error":"x"}`)); got != `{"error":"x"}` {
		t.Errorf("message = %q", got)
	}
}
