// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
)

// kubectl runs kubectl in the namespace of the tests.
func kubectl(arguments ...string) (string, error) {
	c := exec.Command("kubectl", append([]string{"--namespace", namespace}, arguments...)...)
	c.Dir = root
	c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	output, err := c.CombinedOutput()
	return string(output), err
}
