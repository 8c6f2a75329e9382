// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package isolation confines programs that a policy wrote. A confined process has no sockets. If the kernel has
// Landlock, the process writes only to its home directory, reads only the installed files of the image, and signals
// only its own descendants. Its descendants are confined in the same way, and cannot leave the confinement.
//
// The package also confines the network of programs that a user wrote. The runner makes the connections of such a
// program, to permitted addresses, and the program can open no socket itself.
package isolation

import "fmt"

// Level is a level of isolation. A higher level includes the lower ones.
type Level string

// The levels.
const (
	// Process applies the runner's limits of processes, and permits no sockets.
	Process Level = "Process"
	// Landlock also confines the files that a program reads and writes.
	Landlock Level = "Landlock"
	// RuntimeClass gives the container a kernel of its own: gVisor.
	RuntimeClass Level = "RuntimeClass"
)

var ranks = map[Level]int{Process: 1, Landlock: 2, RuntimeClass: 3}

// IsKnown reports whether there is such a level.
func (l Level) IsKnown() bool { return ranks[l] > 0 }

// Found has the means of isolation that the kernel and the container offer.
type Found struct {
	// ABI is the version of Landlock that the kernel has; 0 if it has none.
	ABI int
	// OwnKernel says that the container has a kernel of its own.
	OwnKernel bool
	// Namespaces says that each program has its own namespaces, which keep programs apart without Landlock.
	Namespaces bool
	// Notifies says that the kernel reports system calls to the runner, so that the runner can connect for a program.
	Notifies bool
}

// Level returns the highest level that these means permit.
func (f Found) Level() Level {
	switch {
	case f.OwnKernel && f.Namespaces:
		return RuntimeClass
	case f.ABI > 0:
		return Landlock
	default:
		return Process
	}
}

// scopedABI is the first version of Landlock that stops a program from signalling processes outside its domain.
const scopedABI = 6

// KeepsApart reports whether programs of one container can neither read nor end each other.
func (f Found) KeepsApart() bool { return f.ABI >= scopedABI || f.Namespaces }

// Check returns why programs that need a level cannot run; nil if they can.
func (f Found) Check(minimum Level) error {
	if f.Level().rank() >= minimum.rank() {
		return nil
	}
	why := "the kernel of the node has no Landlock, or does not enable it at its start"
	switch {
	case f.OwnKernel:
		why = "the container has a kernel of gVisor, and its programs can have no namespaces of their own: the log of the " +
			"runner says why"
	case minimum == RuntimeClass:
		why = "the container has the kernel of the node, and not one of gVisor"
	}
	return fmt.Errorf("the isolation is %s, and execution.isolation.minimum is %s: %s", f.Level(), minimum, why)
}

// domainABI is the first version of Landlock that can hide a program's memory and environment from other programs
// without changing rights to files.
const domainABI = 2

// CheckNetwork returns why programs that need a confined network and a minimum level cannot run; nil if they can. For
// a closed container, which reaches no other machine, it is enough that the container has its own kernel.
func (f Found) CheckNetwork(minimum Level, closed bool) error {
	const remedy = "set interaction.agent.network to Open, or execution.isolation.minimum to Process, which takes what " +
		"there is"
	switch err := f.Check(minimum); {
	case err != nil:
		return fmt.Errorf("%w; %s", err, remedy)
	case minimum.rank() <= Process.rank():
		return nil
	case closed && f.Level() == RuntimeClass:
		return nil
	case !f.Notifies:
		return fmt.Errorf("the kernel cannot have the runner connect in the place of a program, which needs Linux 5.9: %s",
			remedy)
	case !f.OwnKernel && f.ABI < domainABI:
		return fmt.Errorf("the kernel's Landlock has version %d, which keeps no program from the memory of others: %s",
			f.ABI, remedy)
	}
	return nil
}

func (l Level) rank() int { return ranks[l] }
