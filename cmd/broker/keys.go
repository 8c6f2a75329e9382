// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The files of a key directory.
const (
	apiKeyFile   = "api-key"
	tokenKeyFile = "token-key"
)

// keys are the values of a broker's Secret.
type keys struct {
	api   string
	token []byte
}

// readKeys reads the keys from a mounted Secret.
func readKeys(dir string) (keys, error) {
	var k keys
	text, err := os.ReadFile(filepath.Join(dir, apiKeyFile))
	if err != nil {
		return k, fmt.Errorf("reading the API key: %w", err)
	}
	if k.api = string(bytes.TrimSpace(text)); k.api == "" {
		return k, errors.New("reading the API key: the file is empty")
	}
	if k.token, err = os.ReadFile(filepath.Join(dir, tokenKeyFile)); err != nil {
		return k, fmt.Errorf("reading the key of the tokens: %w", err)
	}
	return k, nil
}

func (k keys) equal(other keys) bool { return k.api == other.api && bytes.Equal(k.token, other.token) }
