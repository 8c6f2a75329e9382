// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestManagerEndsWhenItsKeyChanges compares the key in the file after a while with the key at the start.
func TestManagerEndsWhenItsKeyChanges(t *testing.T) {
	write := func(n int) func(t *testing.T, file string) {
		return func(t *testing.T, file string) {
			t.Helper()
			if err := os.WriteFile(file, make([]byte, n), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := map[string]struct {
		change func(t *testing.T, file string)
		want   error
	}{
		"another key": {write(40), errKeyChanged},
		"the same":    {write(32), nil},
		"no key":      {write(0), nil},
		"no file": {func(t *testing.T, file string) {
			t.Helper()
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := t.TempDir() + "/key"
			write(32)(t, file)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				time.AfterFunc(25*time.Second, func() { tc.change(t, file) })
				err := keyWatch{file: file, key: make([]byte, 32), interval: keyCheckInterval}.Start(ctx)
				if !errors.Is(err, tc.want) {
					t.Errorf("Start = %v, want %v", err, tc.want)
				}
			})
		})
	}
}
