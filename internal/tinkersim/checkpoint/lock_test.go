// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/checkpoint"
)

// lockedDir is the environment variable that makes the test binary open a directory until it is killed.
const lockedDir = "TINKERSIM_TEST_LOCKED_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(lockedDir); dir != "" {
		_, err := checkpoint.Open(dir, time.Now, discard)
		_, _ = fmt.Fprintln(os.Stdout, "opened:", err)
		select {}
	}
	os.Exit(m.Run())
}

// TestSecondOpenIsRefused checks that opening a directory that is in use changes nothing, while saves continue.
func TestSecondOpenIsRefused(t *testing.T) {
	s, c, dir := newStore(t)
	save(t, s, checkpoint.Save{Path: ref(checkpoint.Ephemeral, "0"), Data: []byte("weights")})
	for i := range 30 {
		path := ref(tinker.KindState, fmt.Sprint("s", i))
		save(t, s, checkpoint.Save{Path: path, Data: []byte(path.Name)})
		second, err := checkpoint.Open(dir, c.Now, discard)
		if !errors.Is(err, checkpoint.ErrLocked) {
			t.Fatalf("the second Open = %v, %v, want ErrLocked", second, err)
		}
		if holder := fmt.Sprintf("process %d on host", os.Getpid()); !strings.Contains(err.Error(), holder) {
			t.Fatalf("the second Open = %v, want an error that names the holder", err)
		}
		for _, saved := range []tinker.Path{path, ref(checkpoint.Ephemeral, "0")} {
			if _, err := s.Read(saved); err != nil {
				t.Fatalf("after the second Open: %v", err)
			}
		}
	}
	reopen(t, s, dir, c)
}

// TestOpenAfterKill checks that a process that is killed leaves no lock behind.
func TestOpenAfterKill(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), lockedDir+"="+dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "opened: <nil>\n" {
		t.Fatalf("the other process printed %q, %v", line, err)
	}
	if _, err := checkpoint.Open(dir, time.Now, discard); !errors.Is(err, checkpoint.ErrLocked) {
		t.Errorf("Open = %v while the other process runs, want ErrLocked", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	open(t, dir, newClock())
}
