// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package survival

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain serves an environment if a test has started the process for that. Otherwise it lets more tests run at the
// same time than there are processors: they mostly wait.
func TestMain(m *testing.M) {
	if os.Getenv(environmentAddress) != "" {
		fmt.Fprintln(os.Stderr, serveEnvironment())
		os.Exit(1)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	code := m.Run()
	if programs.dir != "" {
		_ = os.RemoveAll(programs.dir)
	}
	os.Exit(code)
}
