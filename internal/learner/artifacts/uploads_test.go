// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/learner/bucket/buckettest"
)

// TestUploadFiles writes the rollouts of two attempts in a folder and in a bucket.
func TestUploadFiles(t *testing.T) {
	dir, url := t.TempDir(), buckettest.Start(t, nil).URL("")
	for name, open := range map[string]func() *Store{
		"a folder": func() *Store { return openStore(t, dir) },
		"a bucket": func() *Store { s, _ := openObjects(t, url); return s },
	} {
		t.Run(name, func(t *testing.T) {
			first, second := open(), open()
			a, b := first.UploadFiles(1), second.UploadFiles(2)
			must(t, first.Claim(1, "a"), a.Write("1-l", []byte(`["x"]`)), a.Write("2-l", []byte(`["y"]`)),
				a.Write("3-l", []byte(`["z"]`)))
			must(t, a.SetProgress("2-l", 5), a.SetProgress("1-l", 1), a.SetSent("1-l"), second.Claim(2, "b"))
			waiting, err := b.Waiting()
			if diff := cmp.Diff(map[string]bool{"2-l": true, "3-l": true}, waiting); diff != "" || err != nil {
				t.Errorf("steps with rollouts that wait (-want +got; %v):\n%s", err, diff)
			}
			for key, want := range map[string]bool{"1-l": true, "2-l": false, "4-l": false} {
				if sent, err := b.IsSent(key); sent != want || err != nil {
					t.Errorf("IsSent(%s) = %t, %v", key, sent, err)
				}
			}
			progress := 0
			must(t, b.Progress("2-l", &progress))
			if progress != 5 {
				t.Errorf("the progress is %d, want 5", progress)
			}
			must(t, b.Progress("3-l", &progress))
			if data, err := b.Read("2-l"); string(data) != `["y"]` || err != nil || progress != 5 {
				t.Errorf("the rollouts are %s (%v), and the progress of a step without one changes to %d", data, err, progress)
			}
			if err := a.SetProgress("3-l", 1); !errors.Is(err, ErrSuperseded) {
				t.Errorf("an attempt that is superseded gets %v, want ErrSuperseded", err)
			}
			must(t, b.SetProgress("3-l", 1))
		})
	}
}
