// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slow yields a megabyte with each read, after two seconds.
type slow struct{ left int }

func (s *slow) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	s.left--
	time.Sleep(2 * time.Second)
	return 1e6, nil
}

func TestReaderLogsHowMuchHasArrived(t *testing.T) {
	for total, want := range map[int64][]string{
		16e6: {"13.0 of 16.0 MB", "16.0 of 16.0 MB"},
		-1:   {"13.0 MB", "16.0 MB"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			r := NewReader(&slow{6}, slog.New(slog.NewTextHandler(&log, nil)), "downloading", "model.bin", 10e6, total)
			for {
				if _, err := r.Read(make([]byte, 1e6)); errors.Is(err, io.EOF) {
					break
				}
			}
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			if len(lines) != len(want) {
				t.Fatalf("there are %d lines, want %d:\n%s", len(lines), len(want), log.String())
			}
			for i, line := range lines {
				if !strings.Contains(line, `msg=downloading file=model.bin read="`+want[i]+`"`) {
					t.Errorf("line %d is %s, want it to have %q", i, line, want[i])
				}
			}
		})
	}
}

func TestReaderIsSilentWithoutLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if n, err := NewReader(&slow{9}, nil, "downloading", "model.bin", 0, -1).Read(make([]byte, 1e6)); n != 1e6 ||
			err != nil {
			t.Errorf("Read = %d, %v", n, err)
		}
	})
}
