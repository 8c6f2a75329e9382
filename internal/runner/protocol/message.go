// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol is the runner's protocol: JSON lines between a caller and the runner, and between the runner and a
// program that it runs. It encodes, decodes and bounds lines, and starts nothing. docs/runner.md describes the
// protocol.
package protocol

import "encoding/json"

// Version is the only version of the protocol between a runner and a program.
const Version = 1

// CallerVersion is the newest version of the protocol between a caller and a runner. Version 1 has no gateways.
const CallerVersion = 2

// MaxSeed is the largest seed: every language reads an integer up to it exactly.
const MaxSeed = 1<<53 - 1

// Type is the type of a message.
type Type string

// The types of messages. Both layers have the types from TypeOpen to TypeError with the same meaning.
const (
	TypeHello   Type = "hello"   // the first message of both ends of a connection, and the first to a program
	TypeStart   Type = "start"   // start a program
	TypeStarted Type = "started" // the program's first process is ready
	TypeStop    Type = "stop"    // end a program
	TypeStopped Type = "stopped"
	// A program has connected to the gateway of its call: the caller connects to the runner for it.
	TypeConnected Type = "connected"

	TypeReady  Type = "ready"  // a program has loaded and takes calls
	TypeFailed Type = "failed" // a program cannot take calls; it ends

	TypeOpen   Type = "open"   // begin a session: several calls with one process and one scratch directory
	TypeCall   Type = "call"   // one call, in a session or by itself
	TypeClose  Type = "close"  // end a session
	TypeCancel Type = "cancel" // end a request that is still open
	TypeAsk    Type = "ask"    // a question of a program to the caller, as a part of a call
	TypeAnswer Type = "answer" // the answer to it
	TypeResult Type = "result" // the request of this id has succeeded
	TypeError  Type = "error"  // the request of this id has failed
)

// The types that each direction has. Every other type is refused with CodeUnknownType.
var (
	FromCaller  = set(TypeHello, TypeStart, TypeStop, TypeOpen, TypeCall, TypeClose, TypeCancel, TypeAnswer)
	ToCaller    = set(TypeHello, TypeStarted, TypeStopped, TypeAsk, TypeConnected, TypeResult, TypeError)
	ToProgram   = set(TypeHello, TypeOpen, TypeCall, TypeClose, TypeCancel, TypeAnswer)
	FromProgram = set(TypeReady, TypeFailed, TypeAsk, TypeResult, TypeError)
)

func set(types ...Type) map[Type]bool {
	all := make(map[Type]bool, len(types))
	for _, t := range types {
		all[t] = true
	}
	return all
}

// Message is one line. Its type decides which fields it has. Readers ignore fields that they do not know.
type Message struct {
	Type Type `json:"type"`
	// ID is a number from 1 that the sender of a request chooses, and never uses twice on a connection. The answer has
	// the ID of its request.
	ID int64 `json:"id,omitempty"`

	// Versions are the versions that the sender of a hello speaks; Version is the version that the other end has chosen.
	Versions []int  `json:"versions,omitempty"`
	Version  int    `json:"version,omitempty"`
	Bounds   *Lines `json:"bounds,omitempty"`
	// Token is the token of a caller over TCP, in its hello.
	Token string `json:"token,omitempty"`
	// Stream is the key of a program's connection: in a message that offers the connection, and in the hello that takes
	// it. After the runner's hello the stream carries the bytes of the program's connection.
	Stream string `json:"stream,omitempty"`
	// Runner is the version of the runner's program, in its hello, and Isolation is how it can confine programs.
	Runner    string     `json:"runner,omitempty"`
	Isolation *Isolation `json:"isolation,omitempty"`

	// Program names a program of the connection.
	Program string `json:"program,omitempty"`
	Spec    *Spec  `json:"spec,omitempty"`
	// Config is for the program, in its hello.
	Config json.RawMessage `json:"config,omitempty"`
	// Cancels says, in a ready, that the program answers a cancel while it works. A program without it is killed instead.
	Cancels bool `json:"cancels,omitempty"`
	// Concurrency is, in a ready, how many calls the process takes at once, if it takes fewer than its spec says.
	Concurrency int `json:"concurrency,omitempty"`

	// Forks says, in a ready, that each call of the program is a fork of a process that the program has started: pages
	// that the forks share count once.
	Forks bool `json:"forks,omitempty"`

	// Session names a session of a program.
	Session string `json:"session,omitempty"`
	Seed    uint64 `json:"seed,omitempty"`
	// Scratch is the directory of the session, or of the call if it has no session.
	Scratch string          `json:"scratch,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	// Alone runs a call in a process that runs nothing else before or after it.
	Alone bool `json:"alone,omitempty"`
	// Gateway is, in a call, a text that stands for the address of the caller's gateway in Params. The runner puts an
	// address of its own loopback interface in its place, and offers the caller each connection that is made there.
	Gateway string `json:"gateway,omitempty"`
	// Call is the id of the call that a question, or a connection, is a part of.
	Call int64 `json:"call,omitempty"`

	Value    json.RawMessage `json:"value,omitempty"`
	Error    *Error          `json:"error,omitempty"`
	Evidence *Evidence       `json:"evidence,omitempty"`
}

// Spec is a program as a caller starts it.
type Spec struct {
	// Kind names the language of the program, for messages.
	Kind    string   `json:"kind,omitempty"`
	Command []string `json:"command"`
	// Env is the whole environment of its processes, except for HOME, TMPDIR and PWD and the variables that InheritEnv
	// adds.
	Env map[string]string `json:"env,omitempty"`
	// InheritEnv adds the environment of the runner, which has the variables of the image and the container, to its
	// processes. Env replaces variables of the same name.
	InheritEnv bool `json:"inheritEnv,omitempty"`
	// Files are written anew into the home directory of each process before it starts, by their relative paths.
	Files  map[string]string `json:"files,omitempty"`
	Config json.RawMessage   `json:"config,omitempty"`
	// Processes is how many processes there are. Defaults to 1.
	Processes int `json:"processes,omitempty"`
	// Concurrency is how many calls a process has at once. Defaults to 1.
	Concurrency int    `json:"concurrency,omitempty"`
	Limits      Limits `json:"limits"`
	// Sandbox confines the processes; a program that a policy wrote has one. Such a program has no process until it is
	// called.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	// Network confines the network of the processes. If it is absent, they have their container's network.
	Network *Network `json:"network,omitempty"`
	// Plain says that the processes do not speak the protocol. A call of the method run has a Run as its parameters, and
	// an Outcome as its value. It needs a Sandbox.
	Plain bool `json:"plain,omitempty"`
}

// Limits bound a program. A limit of 0 means the default.
type Limits struct {
	// StartSeconds is the time from the start of a process to its ready. Defaults to 60.
	StartSeconds float64 `json:"startSeconds,omitempty"`
	// CallSeconds is the time of an open, a call or a close. The clock stands while a question is open. Defaults to 60.
	CallSeconds float64 `json:"callSeconds,omitempty"`
	// CPUSeconds is the processor time of a process tree during a call. It needs a concurrency of 1. Defaults to none.
	CPUSeconds float64 `json:"cpuSeconds,omitempty"`
	// MemoryBytes is the resident memory of a process tree. Defaults to 1 GiB.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// AddressSpaceBytes is the address space of each process. Defaults to four times MemoryBytes.
	AddressSpaceBytes int64 `json:"addressSpaceBytes,omitempty"`
	// Processes is how many processes a tree has, including the first process and zombies. Defaults to 64.
	Processes int `json:"processes,omitempty"`
	// OutputBytes limits the output of a process tree while it has a call or a session. Defaults to 1 MiB.
	OutputBytes int64 `json:"outputBytes,omitempty"`
	// OpenFiles is how many files each process may have open at once. Defaults to 256.
	OpenFiles int64 `json:"openFiles,omitempty"`
	// FileBytes is the size of a file. Defaults to 64 MiB.
	FileBytes int64 `json:"fileBytes,omitempty"`
	// ScratchBytes and ScratchFiles are sums over all scratch directories of a process. They default to 256 MiB and
	// 10,000.
	ScratchBytes int64 `json:"scratchBytes,omitempty"`
	ScratchFiles int64 `json:"scratchFiles,omitempty"`
	// LineBytes is the length of a line of the program. Defaults to 4 MiB.
	LineBytes int `json:"lineBytes,omitempty"`
	// Questions is how many questions a process has open at once. Defaults to 1,024.
	Questions int `json:"questions,omitempty"`
}

// Evidence has observations about a request that has ended.
type Evidence struct {
	// Seconds is the time of the request without its questions, CPUSeconds the processor time of its process tree.
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds,omitempty"`
	// PeakBytes is the largest resident memory of the tree that was seen.
	PeakBytes int64 `json:"peakBytes,omitempty"`
	// Exit is the exit status, and Signal the name of the signal that ended the process.
	Exit   *int   `json:"exit,omitempty"`
	Signal string `json:"signal,omitempty"`
	// Limit is the limit that was hit: the name of a field of Limits, with its value and the value that was seen.
	Limit string  `json:"limit,omitempty"`
	Value float64 `json:"value,omitempty"`
	Seen  float64 `json:"seen,omitempty"`
	// Breach is the code of the rule of the protocol that the program has broken.
	Breach Code `json:"breach,omitempty"`
	// Left is how many processes outlived their session, and were killed.
	Left int `json:"left,omitempty"`
	// Shared says that the process also had other requests when it ended.
	Shared bool `json:"shared,omitempty"`
	// Stderr is the end of the process's standard error.
	Stderr string `json:"stderr,omitempty"`
}
