// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"cmp"
	_ "embed" // for the text of the program
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed prefork.py
var preforkText string

// The bounds of imports before the first call: the default of Config.ImportSeconds, and how many rounds may find
// modules that forks cannot share. All processes of a program import at the same time.
const (
	importSeconds = 40
	preforkRounds = 3
)

// forks is a process that has imported the modules of a command, and forks for each call. It inherits the confinement
// and the limits of this process, and so do its forks.
type forks struct {
	process *exec.Cmd
	control *net.UnixConn
}

// protect keeps the memory and the files of this process from the commands that it starts.
func protect() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("protecting the program that starts commands: %w", err)
	}
	return nil
}

// prefork starts the process for a command in Python. It returns nil for any other command, and for imports that
// cannot be shared; Start.Afresh then says why.
func prefork(c Config) (*forks, Start) {
	start := Start{Entry: Method}
	config, isPython := readPython(c)
	if !isPython {
		return nil, start
	}
	patience := time.Duration(cmp.Or(c.ImportSeconds, importSeconds) * float64(time.Second))
	deadline := time.Now().Add(patience)
	for range preforkRounds {
		f, said, err := begin(config, deadline)
		if f != nil {
			start.Modules = said.Modules
			return f, start
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			start.Afresh = fmt.Sprintf("its imports take more than %v", patience)
			return nil, start
		case err != nil:
			start.Afresh = err.Error()
			return nil, start
		case len(said.Left) == 0:
			start.Afresh = "it imports nothing at its top that can be shared"
			return nil, start
		}
		if start.Left == nil {
			start.Left = map[string]string{}
		}
		maps.Copy(start.Left, said.Left)
		config.Exclude = slices.Sorted(maps.Keys(start.Left))
	}
	start.Afresh = "too many of its imports cannot be shared"
	return nil, start
}

// saying is the process's report of its imports.
type saying struct {
	Modules []string          `json:"modules"`
	Left    map[string]string `json:"left"`
	Failed  string            `json:"failed"`
}

// begin starts the process and waits for its imports. It returns no forks if modules are left or none was imported.
func begin(config preforked, deadline time.Time) (*forks, saying, error) {
	var said saying
	text, err := json.Marshal(config)
	if err != nil {
		return nil, said, fmt.Errorf("encoding what to import: %w", err)
	}
	ours, theirs, err := controlSockets()
	if err != nil {
		return nil, said, err
	}
	defer theirs.Close()
	cmd := exec.Command(config.Command[0], slices.Concat(config.flags, //nolint:noctx // It lives as long as this process.
		[]string{"-c", preforkText, string(text)})...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stderr, os.Stderr, []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return nil, said, fmt.Errorf("starting %s: %w", config.Command[0], err)
	}
	theirs.Close()
	f := &forks{process: cmd, control: ours}
	if said, err = f.imported(deadline); err != nil || len(said.Left) > 0 || len(said.Modules) == 0 {
		f.end()
		return nil, said, err
	}
	return f, said, nil
}

// imported waits for the imports.
func (f *forks) imported(deadline time.Time) (saying, error) {
	var said saying
	buffer := make([]byte, 1<<16)
	if err := f.control.SetReadDeadline(deadline); err != nil {
		return said, fmt.Errorf("waiting for the imports: %w", err)
	}
	n, err := f.control.Read(buffer)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return said, err
	case err != nil || n == 0:
		return said, errors.New("an import has ended the interpreter, or the interpreter cannot fork")
	}
	if err := json.Unmarshal(buffer[:n], &said); err != nil {
		return said, fmt.Errorf("reading what was imported: %w", err)
	}
	if said.Failed != "" {
		return said, errors.New(said.Failed)
	}
	return said, f.control.SetReadDeadline(time.Time{})
}

// end ends the process.
func (f *forks) end() {
	_ = f.control.Close()
	_ = f.process.Process.Kill()
	_ = f.process.Wait() // it was killed
}

func controlSockets() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening a pair of sockets: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("opening a pair of sockets: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil //nolint:forcetypeassert // It is a pair of Unix sockets.
}

// errNoFork means that no part of the call has begun.
var errNoFork = errors.New("the process that forks has ended")

// run forks for a call, and returns its exit code. An error other than errNoFork means that the call may have begun,
// and that its end is unknown.
func (f *forks) run(dir string, env []string, output, errs io.Writer) (int, error) {
	files, err := openFiles()
	if err != nil {
		return 0, err
	}
	defer files.close()
	call := struct {
		Dir string            `json:"dir"`
		Env map[string]string `json:"env"`
	}{Dir: dir, Env: map[string]string{}}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		call.Env[name] = value
	}
	rights := unix.UnixRights(int(files.theirs[0].Fd()), int(files.theirs[1].Fd()), int(files.theirs[2].Fd()),
		int(files.theirs[3].Fd()))
	if _, _, err := f.control.WriteMsgUnix([]byte{0}, rights, nil); err != nil {
		return 0, errNoFork
	}
	files.closeTheirs()
	var copies sync.WaitGroup
	copies.Go(func() { _, _ = io.Copy(output, files.output) })
	copies.Go(func() { _, _ = io.Copy(errs, files.errs) })
	err = json.NewEncoder(files.request).Encode(call)
	files.request.Close()
	if err != nil {
		return 0, fmt.Errorf("telling a fork its call: %w", err)
	}
	answer := make([]byte, 16)
	n, err := f.control.Read(answer)
	if err != nil {
		return 0, fmt.Errorf("waiting for a fork: %w", err)
	}
	deadline := time.Now().Add(outputPatience)
	_ = files.output.SetReadDeadline(deadline)
	_ = files.errs.SetReadDeadline(deadline)
	copies.Wait()
	return strconv.Atoi(string(answer[:n]))
}

// callFiles are the files of a call. theirs are the ends of the fork: standard input, output and error, and the
// request. The other fields are the ends of this process.
type callFiles struct {
	theirs                []*os.File
	output, errs, request *os.File
}

func openFiles() (*callFiles, error) {
	files := &callFiles{}
	input, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("opening the input of a call: %w", err)
	}
	files.theirs = append(files.theirs, input)
	for _, ours := range []**os.File{&files.output, &files.errs, &files.request} {
		read, write, err := os.Pipe()
		if err != nil {
			files.close()
			return nil, fmt.Errorf("opening the pipes of a call: %w", err)
		}
		if ours == &files.request {
			read, write = write, read
		}
		if err := unix.SetNonblock(int(write.Fd()), false); err != nil { // as programs expect of their files
			read.Close()
			write.Close()
			files.close()
			return nil, fmt.Errorf("opening the pipes of a call: %w", err)
		}
		*ours = read
		files.theirs = append(files.theirs, write)
	}
	return files, nil
}

func (f *callFiles) closeTheirs() {
	for _, file := range f.theirs {
		file.Close()
	}
	f.theirs = nil
}

func (f *callFiles) close() {
	f.closeTheirs()
	for _, file := range []*os.File{f.output, f.errs, f.request} {
		if file != nil {
			file.Close()
		}
	}
}
