// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/runner/isolation"
)

// Sandbox is how the processes of a program are confined. Each call and each session has a process of its own, whose
// home directory is also its scratch directory.
type Sandbox struct {
	// Minimum is the lowest level of isolation at which the program is started. Defaults to Process.
	Minimum isolation.Level `json:"minimum,omitempty"`
}

// Network confines the network of a program's processes. They have only TCP sockets, whose connections the runner
// makes.
type Network struct {
	// Connect are the addresses that they may connect to: an IPv4 address and a port each.
	Connect []string `json:"connect,omitempty"`
	// Gateway also permits connections to the gateways of the calls that a process has.
	Gateway bool `json:"gateway,omitempty"`
	// Closed says that the container reaches no other machine, for example by a NetworkPolicy. If such a container has a
	// kernel of its own, this is enough to confine its programs, even if the kernel does not let the runner connect for
	// them.
	Closed bool `json:"closed,omitempty"`
	// Minimum is the lowest level of isolation at which the program is started. Process accepts any isolation.
	Minimum isolation.Level `json:"minimum,omitempty"`
}

// Addresses returns the addresses that may be connected to.
func (n Network) Addresses() ([]netip.AddrPort, error) {
	addresses := make([]netip.AddrPort, len(n.Connect))
	for i, text := range n.Connect {
		address, err := netip.ParseAddrPort(text)
		if err != nil || !address.Addr().Is4() {
			return nil, fmt.Errorf("%q is not an IPv4 address and a port", cut(text))
		}
		addresses[i] = address
	}
	return addresses, nil
}

// Isolation is the isolation that a runner offers, in its hello.
type Isolation struct {
	Level isolation.Level `json:"level"`
	// Landlock is the version of Landlock that the kernel has; 0 if it has none.
	Landlock int `json:"landlock,omitempty"`
}

// MethodRun is the only method of a plain program.
const MethodRun = "run"

// Run has the files, input and arguments of a process of a plain program.
type Run struct {
	// Files are written into its home directory, in addition to the files of the spec.
	Files map[string]string `json:"files,omitempty"`
	Stdin string            `json:"stdin,omitempty"`
	// Arguments follow the arguments of the command.
	Arguments []string `json:"arguments,omitempty"`
}

// Outcome is how a process of a plain program has ended: by itself, or by one of its limits.
type Outcome struct {
	Stdout string `json:"stdout"`
	Exit   *int   `json:"exit,omitempty"`
	Signal string `json:"signal,omitempty"`
	// Limit is the limit that ended it: the name of a field of Limits.
	Limit string `json:"limit,omitempty"`
}

// maxPlainOutput limits the output of a plain program: JSON may need six bytes for one byte of output.
const maxPlainOutput = 2 << 20

// validateSandbox returns an error for a program that cannot be confined as its spec says.
func (s Spec) validateSandbox() *Error {
	switch {
	case s.Sandbox != nil && s.Sandbox.Minimum != "" && !s.Sandbox.Minimum.IsKnown():
		return bad("spec.sandbox.minimum", "There is no isolation %q.", cut(string(s.Sandbox.Minimum)))
	case s.Plain && s.Sandbox == nil:
		return bad("spec.plain", "A plain program needs a sandbox.")
	case s.Sandbox != nil && s.Concurrency > 1:
		return bad("spec.concurrency", "A program in a sandbox has a process for each call: its concurrency is 1.")
	case s.Plain && s.Limits.OutputBytes > maxPlainOutput:
		return bad("spec.limits.outputBytes", "outputBytes is %d, and must be at most %d.", s.Limits.OutputBytes,
			maxPlainOutput)
	}
	return s.validateNetwork()
}

// validateNetwork returns an error for an invalid network.
func (s Spec) validateNetwork() *Error {
	switch {
	case s.Network == nil:
		return nil
	case s.Sandbox != nil:
		return bad("spec.network", "A program in a sandbox has no network: remove network.")
	case s.Network.Minimum != "" && !s.Network.Minimum.IsKnown():
		return bad("spec.network.minimum", "There is no isolation %q.", cut(string(s.Network.Minimum)))
	}
	if _, err := s.Network.Addresses(); err != nil {
		return bad("spec.network.connect", "An address cannot be read: %v.", err)
	}
	return nil
}

// RunOf returns the process for a call of a plain program: the spec with the files of the call, and the standard input.
func (s Spec) RunOf(m *Message) (Spec, string, *Error) {
	var run Run
	if m.Method != MethodRun {
		return s, "", &Error{Code: CodeUnknownMethod, Message: "A plain program has the method run alone."}
	}
	if err := json.Unmarshal(m.Params, &run); err != nil {
		return s, "", bad("params", "The call cannot be read: %v.", err)
	}
	files := make(map[string]string, len(s.Files)+len(run.Files))
	for _, from := range []map[string]string{s.Files, run.Files} {
		for name, text := range from {
			files[name] = text
		}
	}
	s.Files, s.Command = files, slices.Concat(s.Command, run.Arguments)
	if err := validateProcess(s.Command, nil); err != nil {
		return s, "", err
	}
	return s, run.Stdin, validateFiles(files)
}
