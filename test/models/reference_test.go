// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models

package models

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// python returns an interpreter that has the reference packages.
var python = sync.OnceValues(func() (string, error) {
	output, err := exec.Command(root + "/hack/models/python.sh").Output()
	if err != nil {
		return "", fmt.Errorf("installing the reference packages: %w\n%s", err, stderr(err))
	}
	return strings.TrimSpace(string(output)), nil
})

func stderr(err error) []byte {
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return failed.Stderr
	}
	return nil
}

func interpreter(t testing.TB) string {
	t.Helper()
	name, err := python()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// run runs the reference once.
func run(t testing.TB, arguments ...string) {
	t.Helper()
	if output, err := exec.Command(interpreter(t), arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", arguments, err, output)
	}
}

// ask asks the reference all questions, in their order, and calls check with each answer.
func ask[Q, A any](t testing.TB, arguments []string, questions func(yield func(Q) bool), check func(Q, A)) {
	t.Helper()
	askProgram(t, append([]string{"reference.py"}, arguments...), questions, check)
}

// askProgram asks a program of this folder.
func askProgram[Q, A any](t testing.TB, arguments []string, questions func(yield func(Q) bool), check func(Q, A)) {
	t.Helper()
	command := exec.Command(interpreter(t), arguments...)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// As many questions are in flight as the pipes and this channel hold.
	asked := make(chan Q, 1000)
	go func() {
		defer in.Close()
		defer close(asked)
		lines := json.NewEncoder(in)
		lines.SetEscapeHTML(false)
		for q := range questions {
			asked <- q
			if lines.Encode(q) != nil {
				return // the reference has died: the test reports its missing answer
			}
		}
	}()
	answers := json.NewDecoder(bufio.NewReaderSize(out, 1<<20))
	for q := range asked {
		var a A
		if err := answers.Decode(&a); err != nil {
			t.Errorf("reading the reference's answer to %.200v: %v", q, err)
			_ = command.Process.Kill()
			for range asked {
				continue // the questions must end for their writer to end
			}
			break
		}
		check(q, a)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the reference: %v", err)
	}
}
