// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// pythonName matches the file names of Python interpreters. Only commands of these interpreters can be forked.
var pythonName = regexp.MustCompile(`^python[0-9.]*$`)

// pythonFlags are the flags of an interpreter that a command may have to be forked: forks inherit their effect.
var pythonFlags = []string{"-u", "-B"}

// preforked is the configuration of prefork.py: a script, a module or inline code, with its arguments.
type preforked struct {
	Command   []string `json:"command"`
	Script    string   `json:"script,omitempty"`
	Module    string   `json:"module,omitempty"`
	Code      string   `json:"code,omitempty"`
	Arguments []string `json:"arguments"`
	// Variables are the names of the environment variables that differ between calls.
	Variables []string `json:"variables"`
	// Exclude are modules that each forked process imports itself.
	Exclude []string `json:"exclude"`

	flags []string
}

// readPython returns the configuration of prefork.py for a command. It reports false unless the command is python
// FILE, python -m MODULE or python -c CODE. FILE must be an absolute path, since a command begins in an empty
// directory.
func readPython(c Config) (preforked, bool) {
	p := preforked{Command: c.Command, Variables: append([]string{}, c.Variables...), Exclude: []string{},
		Arguments: []string{}}
	if !pythonName.MatchString(filepath.Base(c.Command[0])) {
		return p, false
	}
	rest := c.Command[1:]
	for len(rest) > 0 && slices.Contains(pythonFlags, rest[0]) {
		p.flags, rest = append(p.flags, rest[0]), rest[1:]
	}
	switch {
	case len(rest) > 1 && rest[0] == "-m":
		p.Module, rest = rest[1], rest[2:]
	case len(rest) > 1 && rest[0] == "-c" && rest[1] != "":
		p.Code, rest = rest[1], rest[2:]
	case len(rest) > 0 && filepath.IsAbs(rest[0]) && strings.HasSuffix(rest[0], ".py"):
		p.Script, rest = rest[0], rest[1:]
	default:
		return p, false
	}
	p.Arguments = append(p.Arguments, rest...)
	return p, true
}

// Start reports how the processes of calls begin: forked, or afresh.
type Start struct {
	Entry string `json:"entry"`
	// Modules are the modules that were imported before the first call. Left has the modules that each call imports
	// itself, with the reasons.
	Modules []string          `json:"modules,omitempty"`
	Left    map[string]string `json:"left,omitempty"`
	// Afresh is why the processes of a command in Python are not forked.
	Afresh string `json:"afresh,omitempty"`
}
