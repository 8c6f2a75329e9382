// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"strings"
	"testing"
)

// TestProgramsDoNotReachEachOther checks the imports of a program through other packages: the manager cannot reach the
// Tinker API, and the programs of the pods do not contain Kubernetes. The linter depguard bans direct imports.
func TestProgramsDoNotReachEachOther(t *testing.T) {
	banned := map[string][]string{
		"cmd/manager":   {"internal/tinker", "internal/learner", "internal/rollout", "internal/tinkersim"},
		"cmd/broker":    {"internal/controller", "internal/learner", "internal/rollout", "internal/tinkersim"},
		"cmd/learner":   {"k8s.io", "sigs.k8s.io", "internal/rollout", "internal/controller", "internal/tinkersim"},
		"cmd/rollout":   {"k8s.io", "sigs.k8s.io", "internal/learner", "internal/controller", "internal/tinkersim"},
		"cmd/tinkersim": {"k8s.io", "sigs.k8s.io", "internal/learner", "internal/rollout", "internal/contract"},
		// The runner is put into any image, beside code that must gain nothing from it: it knows no endpoint, no key and
		// no run. It has crypto/tls for its callers in other pods.
		"cmd/runner": {
			"k8s.io", "sigs.k8s.io", "google.golang.org", "net/http", "internal/contract", "internal/tinker",
			"internal/exchange",
			"internal/environment", "internal/rollout", "internal/learner", "internal/controller", "internal/tinkersim",
			"internal/runner/client",
		},
	}
	graph := imports(t)
	for program, packages := range banned {
		if len(graph[program]) == 0 {
			t.Errorf("%s does not exist", program)
		}
		for name, path := range reachable(graph, program) {
			for _, b := range packages {
				if name == b || strings.HasPrefix(name, b+"/") {
					t.Errorf("%s reaches %s: %s", program, name, path)
				}
			}
		}
	}
}

// reachable maps everything that a package imports, directly or through others, to a path of imports that leads there.
// Packages of this module are named by their path below it.
func reachable(graph map[string][]string, from string) map[string]string {
	paths := map[string]string{}
	var visit func(dir, path string)
	visit = func(dir, path string) {
		for _, name := range graph[dir] {
			name = strings.TrimPrefix(name, module)
			if _, known := paths[name]; !known {
				paths[name] = path + " -> " + name
				visit(name, paths[name])
			}
		}
	}
	visit(from, from)
	return paths
}
