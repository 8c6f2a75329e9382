// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// Store is a directory of runs and checkpoints with its index in memory. It is safe for concurrent use. A
// lock on the directory keeps other stores away until Close, or until the process ends.
type Store struct {
	dir  layout
	now  func() time.Time
	lock *flock.Flock

	mu          sync.Mutex
	runs        map[string]*Run
	checkpoints map[tinker.Path]Checkpoint
	nextExpiry  time.Time // when to look for expired checkpoints again; zero: never
}

// Close releases the directory. The store must not be used afterwards.
func (s *Store) Close() error {
	if err := s.lock.Close(); err != nil {
		return fmt.Errorf("unlocking the checkpoints: %w", err)
	}
	return nil
}

// CreateRun records a run. The id must be new.
func (s *Store) CreateRun(run Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.runs[run.ID]; taken {
		return fmt.Errorf("creating run %s: %w", run.ID, ErrExists)
	}
	if err := s.dir.writeRun(run); err != nil {
		return fmt.Errorf("creating run %s: %w", run.ID, err)
	}
	run.LastRequest = run.Created
	s.runs[run.ID] = &run
	return nil
}

// Touch sets the time of the last request of a run.
func (s *Store) Touch(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.runs[run]; ok {
		r.LastRequest = s.now()
	}
}

// Run returns a run, or ErrNotFound.
func (s *Store) Run(id string) (Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.runs[id]
	if !ok {
		return Run{}, fmt.Errorf("looking up run %s: %w", id, ErrNotFound)
	}
	return *r, nil
}

// Runs returns all runs, the newest first.
func (s *Store) Runs() []Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Run, 0, len(s.runs))
	for _, r := range s.runs {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b Run) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Checkpoints returns the listed checkpoints of a run, or of all runs when it is empty, the newest first.
func (s *Store) Checkpoints(run string) []Checkpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return s.list(func(ref tinker.Path) bool { return ref.Kind != Ephemeral && (run == "" || ref.Run == run) })
}

// list returns the wanted checkpoints, the newest first. The caller holds the lock.
func (s *Store) list(wanted func(tinker.Path) bool) []Checkpoint {
	list := []Checkpoint{}
	for ref, c := range s.checkpoints {
		if wanted(ref) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b Checkpoint) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.String(), b.String()))
	})
	return list
}

// Checkpoint returns the description of a checkpoint, or ErrNotFound.
func (s *Store) Checkpoint(ref tinker.Path) (Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(ref)
}

// Read returns the data of a checkpoint. It returns ErrNotFound, or ErrCorrupt if they differ from the saved data.
func (s *Store) Read(ref tinker.Path) ([]byte, error) {
	s.mu.Lock()
	r, err := s.find(ref)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(s.dir.kindDir(ref), r.File))
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("reading %s: its data file: %w", ref.String(), ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref.String(), err)
	}
	if digest(data) != r.Digest {
		return nil, fmt.Errorf("reading %s: %w", ref.String(), ErrCorrupt)
	}
	return data, nil
}

// Save describes a checkpoint to save.
type Save struct {
	tinker.Path
	Data []byte
	// TTL is the lifetime of the checkpoint; 0 means no limit.
	TTL time.Duration
	// Overwrite replaces a checkpoint of the same name, with its metadata.
	Overwrite    bool
	UserMetadata map[string]string
}

// Save writes a checkpoint. If it returns nil, the checkpoint is listed and can be read. After an error,
// such as ErrExists, ErrNotFound for the run or the context's error, nothing has changed.
func (s *Store) Save(ctx context.Context, save Save) (Checkpoint, error) {
	if err := validate(save.Name); err != nil {
		return Checkpoint{}, err
	}
	if err := s.admit(save); err != nil {
		return Checkpoint{}, err
	}
	sum := digest(save.Data)
	file := save.Name + "." + sum[:16] + ".bin"
	if err := writeFile(filepath.Join(s.dir.kindDir(save.Path), file), save.Data); err != nil {
		return Checkpoint{}, fmt.Errorf("saving %s: %w", save.String(), err)
	}
	c := Checkpoint{Path: save.Path, File: file, Size: int64(len(save.Data)), Digest: sum, UserMetadata: save.UserMetadata}
	return s.commit(ctx, save, c)
}

// admit checks whether the save may begin.
func (s *Store) admit(save Save) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if _, ok := s.runs[save.Run]; !ok {
		return fmt.Errorf("saving %s: run: %w", save.String(), ErrNotFound)
	}
	if _, taken := s.checkpoints[save.Path]; taken && !save.Overwrite {
		return fmt.Errorf("saving %s: %w", save.String(), ErrExists)
	}
	return nil
}

// commit adds a checkpoint whose data were written.
func (s *Store) commit(ctx context.Context, save Save, c Checkpoint) (Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, taken := s.checkpoints[c.Path]
	err := ctx.Err()
	if err == nil && taken && !save.Overwrite {
		err = ErrExists
	}
	c.Time = s.now().UTC()
	if save.TTL > 0 {
		c.Expires = c.Time.Add(save.TTL)
	}
	if err == nil {
		err = s.put(c)
	}
	if err != nil {
		s.discard(c, old)
		return Checkpoint{}, fmt.Errorf("saving %s: %w", save.String(), err)
	}
	if taken {
		s.discard(old, c)
	}
	if save.Kind == Ephemeral {
		s.trim(save.Run, ephemeralKept)
	}
	return c, nil
}

// discard removes the data file of a checkpoint unless the other checkpoint has the same file. If that fails, the
// next Open removes the file.
func (s *Store) discard(c, other Checkpoint) {
	if c.File != other.File {
		_ = os.Remove(filepath.Join(s.dir.kindDir(c.Path), c.File))
	}
}

// put writes the JSON file and then updates the index.
func (s *Store) put(c Checkpoint) error {
	if err := writeJSON(s.dir.recordFile(c.Path), record{c.Name, c}); err != nil {
		return err
	}
	s.checkpoints[c.Path] = c
	s.schedule(c.Expires)
	return nil
}

// RemoveEphemeral removes the ephemeral checkpoints of a run.
func (s *Store) RemoveEphemeral(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trim(run, 0)
}

// trim keeps the newest ephemeral checkpoints of a run, and removes the others.
func (s *Store) trim(run string, kept int) {
	list := s.list(func(ref tinker.Path) bool { return ref.Run == run && ref.Kind == Ephemeral })
	for _, c := range list[min(len(list), kept):] {
		_ = s.remove(c.Path) // the next Open removes files that are left
	}
}

// find returns a checkpoint that has not expired. The caller holds the lock.
func (s *Store) find(ref tinker.Path) (Checkpoint, error) {
	s.expire()
	c, ok := s.checkpoints[ref]
	if !ok {
		return Checkpoint{}, fmt.Errorf("looking up %s: %w", ref.String(), ErrNotFound)
	}
	return c, nil
}

// Delete removes a checkpoint, or returns ErrNotFound.
func (s *Store) Delete(ref tinker.Path) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(ref); err != nil {
		return err
	}
	return s.remove(ref)
}

// remove removes a checkpoint from the index first, so that it does not exist even if removing its files fails.
func (s *Store) remove(ref tinker.Path) error {
	c := s.checkpoints[ref]
	delete(s.checkpoints, ref)
	if err := os.Remove(s.dir.recordFile(ref)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("removing %s: %w", ref.String(), err)
	}
	s.discard(c, Checkpoint{})
	return nil
}

// SetTTL makes a checkpoint expire after ttl, or never if ttl is 0.
func (s *Store) SetTTL(ref tinker.Path, ttl time.Duration) error {
	return s.change(ref, func(c *Checkpoint) {
		c.Expires = time.Time{}
		if ttl > 0 {
			c.Expires = s.now().UTC().Add(ttl)
		}
	})
}

// SetPublic sets whether a checkpoint is public.
func (s *Store) SetPublic(ref tinker.Path, public bool) error {
	return s.change(ref, func(c *Checkpoint) { c.Public = public })
}

func (s *Store) change(ref tinker.Path, edit func(*Checkpoint)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.find(ref)
	if err != nil {
		return err
	}
	edit(&c)
	return s.put(c)
}

// Damage flips a bit of the data, for tests.
func (s *Store) Damage(ref tinker.Path) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(ref)
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir.kindDir(ref), r.File)
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("damaging %s: %w", ref.String(), err)
	}
	data[len(data)/2] ^= 1
	return writeFile(file, data)
}

// schedule updates the time of the next expiry.
func (s *Store) schedule(expires time.Time) {
	if !expires.IsZero() && (s.nextExpiry.IsZero() || expires.Before(s.nextExpiry)) {
		s.nextExpiry = expires
	}
}

// expire removes expired checkpoints. The caller holds the lock.
func (s *Store) expire() {
	now := s.now()
	if s.nextExpiry.IsZero() || now.Before(s.nextExpiry) {
		return
	}
	s.nextExpiry = time.Time{}
	for _, ref := range slices.Collect(maps.Keys(s.checkpoints)) {
		expires := s.checkpoints[ref].Expires
		if !expires.IsZero() && !now.Before(expires) {
			_ = s.remove(ref)
			continue
		}
		s.schedule(expires)
	}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
