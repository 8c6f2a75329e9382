// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// The bounds of a spec.
const (
	maxProcesses   = 256
	maxConcurrency = 4096
	maxFiles       = 1024
	maxFileBytes   = 8 << 20
	maxName        = 128
)

// CallerVersions returns the versions of the protocol between a caller and a runner that this program speaks.
func CallerVersions() []int { return []int{Version, CallerVersion} }

// Negotiate returns the newest of a caller's versions that the runner speaks too, or 0 if there is none.
func Negotiate(versions []int) int {
	newest := 0
	for _, version := range CallerVersions() {
		if slices.Contains(versions, version) {
			newest = max(newest, version)
		}
	}
	return newest
}

func bad(field, format string, args ...any) *Error {
	return &Error{Code: CodeBadRequest, Field: field, Message: fmt.Sprintf(format, args...)}
}

// MaxStreams is how many connections a call has to its gateway at once.
const MaxStreams = 256

// HelloTimeout is how long each end waits for TLS and for the other's hello.
const HelloTimeout = 30 * time.Second

// leastPlaceholder is the least length of a placeholder: no text contains one of this length by chance.
const leastPlaceholder = 16

func isPlaceholder(text string) bool {
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return len(text) >= leastPlaceholder && len(text) <= maxName
}

// WithDefaults returns the limits with the default in place of each 0, except for CPUSeconds.
func (l Limits) WithDefaults() Limits {
	l.StartSeconds = cmp.Or(l.StartSeconds, 60)
	l.CallSeconds = cmp.Or(l.CallSeconds, 60)
	l.MemoryBytes = cmp.Or(l.MemoryBytes, 1<<30)
	l.AddressSpaceBytes = cmp.Or(l.AddressSpaceBytes, 4*l.MemoryBytes)
	l.Processes = cmp.Or(l.Processes, 64)
	l.OutputBytes = cmp.Or(l.OutputBytes, 1<<20)
	l.OpenFiles = cmp.Or(l.OpenFiles, 256)
	l.FileBytes = cmp.Or(l.FileBytes, 64<<20)
	l.ScratchBytes = cmp.Or(l.ScratchBytes, 256<<20)
	l.ScratchFiles = cmp.Or(l.ScratchFiles, 10_000)
	l.LineBytes = cmp.Or(l.LineBytes, 4<<20)
	l.Questions = cmp.Or(l.Questions, 1024)
	return l
}

// Validate returns the spec with its defaults, or an error that names the invalid field.
func (s Spec) Validate() (Spec, *Error) {
	s.Processes, s.Concurrency = cmp.Or(s.Processes, 1), cmp.Or(s.Concurrency, 1)
	switch {
	case len(s.Command) == 0 || s.Command[0] == "":
		return s, bad("spec.command", "The program has no command.")
	case s.Processes < 0 || s.Processes > maxProcesses:
		return s, bad("spec.processes", "Processes are %d, and must be from 1 to %d.", s.Processes, maxProcesses)
	case s.Concurrency < 0 || s.Concurrency > maxConcurrency:
		return s, bad("spec.concurrency", "Concurrency is %d, and must be from 1 to %d.", s.Concurrency, maxConcurrency)
	case s.Limits.CPUSeconds != 0 && s.Concurrency > 1:
		return s, bad("spec.limits.cpuSeconds", "CPUSeconds needs a concurrency of 1: calls of one process share its "+
			"processor time.")
	}
	if err := validateProcess(s.Command, s.Env); err != nil {
		return s, err
	}
	if err := validateFiles(s.Files); err != nil {
		return s, err
	}
	if err := s.validateSandbox(); err != nil {
		return s, err
	}
	if err := s.Limits.validate(); err != nil {
		return s, err
	}
	s.Limits = s.Limits.WithDefaults()
	return s, nil
}

// validateProcess returns an error for a command or variables with which no process can be started.
func validateProcess(command []string, env map[string]string) *Error {
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return bad("spec.env", "The environment has a name or value that no process can be given: %q.", cut(name))
		}
	}
	for _, argument := range command {
		if strings.Contains(argument, "\x00") {
			return bad("spec.command", "The command contains a zero byte.")
		}
	}
	return nil
}

func validateFiles(files map[string]string) *Error {
	total := 0
	for name, text := range files {
		total += len(text)
		if name != path.Clean(name) || path.IsAbs(name) || strings.HasPrefix(name, "..") || name == "." ||
			strings.Contains(name, "\x00") {
			return bad("spec.files", "The file %q has no clean relative path.", cut(name))
		}
	}
	if len(files) > maxFiles || total > maxFileBytes {
		return bad("spec.files", "There are %d files of %d bytes; %d files of %d bytes are the limit.",
			len(files), total, maxFiles, maxFileBytes)
	}
	return nil
}

func (l Limits) validate() *Error {
	for name, value := range map[string]float64{
		"startSeconds": l.StartSeconds, "callSeconds": l.CallSeconds, "cpuSeconds": l.CPUSeconds,
		"memoryBytes": float64(l.MemoryBytes), "addressSpaceBytes": float64(l.AddressSpaceBytes),
		"processes": float64(l.Processes), "outputBytes": float64(l.OutputBytes), "openFiles": float64(l.OpenFiles),
		"fileBytes": float64(l.FileBytes), "scratchBytes": float64(l.ScratchBytes),
		"scratchFiles": float64(l.ScratchFiles), "questions": float64(l.Questions), "lineBytes": float64(l.LineBytes),
	} {
		if value < 0 {
			return bad("spec.limits."+name, "%s is negative.", name)
		}
	}
	if l.LineBytes > DefaultLines.Bytes/2 { // a line grows when it is passed on
		return bad("spec.limits.lineBytes", "lineBytes is %d, and must be at most %d.", l.LineBytes, DefaultLines.Bytes/2)
	}
	if l.StartSeconds > 86400 || l.CallSeconds > 86400 {
		return bad("spec.limits", "startSeconds and callSeconds must be at most 86400.")
	}
	return nil
}

// ValidateRequest returns an error for an invalid start, stop, open, call or close of a caller.
func ValidateRequest(m *Message) *Error {
	switch {
	case m.ID <= 0:
		return bad("id", "A request needs an id from 1.")
	case m.Program == "" || len(m.Program) > maxName:
		return bad("program", "A request needs the name of a program, of at most %d bytes.", maxName)
	case m.Type == TypeStart && m.Spec == nil:
		return bad("spec", "A start needs a spec.")
	case (m.Type == TypeOpen || m.Type == TypeClose) && m.Session == "" || len(m.Session) > maxName:
		return bad("session", "A session needs a name of at most %d bytes.", maxName)
	case m.Type == TypeCall && m.Method == "":
		return bad("method", "A call needs a method.")
	case m.Seed > MaxSeed:
		return bad("seed", "The seed is above 2^53-1.")
	case m.Alone && m.Session != "":
		return bad("alone", "A call of a session cannot run alone.")
	}
	return validateGateway(m)
}

// validateGateway returns an error for a request that has a gateway and must not have one, or that has an invalid
// placeholder for it.
func validateGateway(m *Message) *Error {
	switch {
	case m.Gateway == "":
	case m.Type != TypeCall || m.Session != "":
		return bad("gateway", "A call without a session has a gateway, and no other request.")
	case !isPlaceholder(m.Gateway):
		return bad("gateway", "The text that stands for the gateway has from %d to %d letters and digits.", leastPlaceholder,
			maxName)
	}
	return nil
}
