// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestFileFlagTakesOneFile(t *testing.T) {
	parse := func(args ...string) (path string, err error) {
		flags := pflag.NewFlagSet("try", pflag.ContinueOnError)
		FileFlag(flags, &path, "`FILE` to read")
		return path, flags.Parse(args)
	}
	if _, err := parse("-f", "run.yaml"); err != nil {
		t.Error(err)
	}
	if _, err := parse("-f", "run.yaml", "-f", "environment.yaml"); err == nil ||
		!strings.Contains(err.Error(), "put all objects into it, separated by ---") {
		t.Errorf("two files give %v", err)
	}
}
