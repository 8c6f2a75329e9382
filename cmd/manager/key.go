// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// minKeyBytes is the minimum length of a manager key.
const minKeyBytes = 32

// keyCheckInterval is the time between two looks at the file of the manager key.
const keyCheckInterval = 10 * time.Second

// errKeyChanged ends a manager, so that the next process has the new key.
var errKeyChanged = errors.New("the manager key has changed: the manager starts again with the new one")

func readKey(file string) ([]byte, error) {
	if file == "" {
		return nil, errors.New("--manager-key-file is required: a file of at least 32 random bytes")
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading manager key: %w", err)
	}
	if len(key) < minKeyBytes {
		return nil, fmt.Errorf("reading manager key: %s has %d bytes, at least %d are needed", file, len(key), minKeyBytes)
	}
	return key, nil
}

// keyWatch ends the manager when the file of its key, which is mounted from a Secret, has another key. Replicas that
// started before and after a change would otherwise derive different credentials, and each would restart the learners
// of the other.
type keyWatch struct {
	file     string
	key      []byte
	interval time.Duration
}

// Start implements manager.Runnable. A file that cannot be read, or has no key, changes nothing.
func (w keyWatch) Start(ctx context.Context) error {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if key, err := readKey(w.file); err == nil && !bytes.Equal(key, w.key) {
				return errKeyChanged
			}
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: all replicas watch.
func (w keyWatch) NeedLeaderElection() bool { return false }
