// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

const uploadsDir = "uploads"

// ErrSuperseded says that a later attempt has claimed the run.
var ErrSuperseded = errors.New("a later attempt has claimed the run")

// UploadFiles are the rollouts of steps that wait until a service has received them, by the names of EpisodesKey.
// They are written before the state of their step is saved, so that a learner that resumes from that state finds them.
type UploadFiles struct {
	store   *Store
	attempt int32
}

// UploadFiles returns the files with rollouts, for an attempt that has claimed the run.
func (s *Store) UploadFiles(attempt int32) *UploadFiles {
	return &UploadFiles{store: s, attempt: attempt}
}

func uploadName(key string) string   { return path.Join(uploadsDir, key+".json") }
func progressName(key string) string { return path.Join(uploadsDir, key+".progress") }
func sentName(key string) string     { return path.Join(uploadsDir, key+".sent") }

// Write makes the rollouts of a step durable.
func (r *UploadFiles) Write(key string, encoded []byte) error {
	if err := r.store.files.publish(uploadName(key), encoded); err != nil {
		return fmt.Errorf("writing rollouts: %w", err)
	}
	return nil
}

// Read returns the rollouts of a step.
func (r *UploadFiles) Read(key string) ([]byte, error) {
	data, err := r.store.files.original(uploadName(key))
	if err != nil {
		return nil, fmt.Errorf("reading rollouts: %w", err)
	}
	return data, nil
}

// Waiting returns the names of the steps whose rollouts are not all sent.
func (r *UploadFiles) Waiting() (map[string]bool, error) {
	names, err := r.store.files.list(uploadsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing rollouts: %w", err)
	}
	waiting := map[string]bool{}
	for _, name := range names {
		if key, ok := strings.CutSuffix(name, ".json"); ok {
			waiting[key] = true
		}
	}
	for _, name := range names {
		if key, ok := strings.CutSuffix(name, ".sent"); ok {
			delete(waiting, key)
		}
	}
	return waiting, nil
}

// SetProgress records the parts of a step that are about to be sent. It fails with ErrSuperseded if a later attempt has
// claimed the run: either that attempt reads the record, or this one sees the claim and sends nothing.
func (r *UploadFiles) SetProgress(key string, progress any) error {
	data, err := json.Marshal(progress)
	if err != nil {
		return fmt.Errorf("encoding the progress of an upload: %w", err)
	}
	if err := r.store.files.publish(progressName(key), data); err != nil {
		return fmt.Errorf("recording the progress of an upload: %w", err)
	}
	highest, err := r.store.HighestClaim()
	if err == nil && highest > r.attempt {
		err = ErrSuperseded
	}
	return err
}

// Progress reads the last record of SetProgress. It leaves progress unchanged if there is none.
func (r *UploadFiles) Progress(key string, progress any) error {
	data, err := r.store.files.original(progressName(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, progress)
	}
	if err != nil {
		return fmt.Errorf("reading the progress of an upload: %w", err)
	}
	return nil
}

// IsSent reports whether nothing of a step is left to be sent.
func (r *UploadFiles) IsSent(key string) (bool, error) {
	_, err := r.store.files.original(sentName(key))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading whether rollouts are sent: %w", err)
	}
	return true, nil
}

// SetSent records that nothing of a step is left to be sent, and frees the space of its rollouts.
func (r *UploadFiles) SetSent(key string) error {
	files := r.store.files
	if err := files.publish(sentName(key), []byte("{}\n")); err != nil {
		return fmt.Errorf("recording that rollouts are sent: %w", err)
	}
	for _, name := range []string{uploadName(key), progressName(key)} {
		if err := files.empty(name); err != nil {
			return fmt.Errorf("removing rollouts that are sent: %w", err)
		}
	}
	return nil
}

// original returns the current content of a file, not the content of a copy.
func (f *folder) original(name string) ([]byte, error) {
	if f.remote != nil {
		return f.remote.get(name)
	}
	return os.ReadFile(f.path(name))
}

// empty frees the space of a file. An object remains, without content.
func (f *folder) empty(name string) error {
	if f.remote != nil {
		return f.remote.put(name, nil)
	}
	if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
