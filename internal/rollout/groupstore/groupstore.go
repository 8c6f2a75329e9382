// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package groupstore stores the samples that were paid for: finished groups and tombstones, until the learner's saved
// state covers them, and replies to agents until their group is finished. It neither plays nor submits.
//
// Groups are kept in memory up to a bound, and beyond it in files, so that a container that is started again in the
// same pod finds them. When both are full, the store drops groups: first groups that the learner has in memory, then
// the groups with the highest slots, which can wait longest. A dropped group is sampled again if the learner dies
// before it has saved a state. The group that is needed most is never dropped, nor one that was not yet offered to a
// learner.
package groupstore

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/exchange"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Config bounds a Store.
type Config struct {
	// Dir is the folder of the files. If it is empty, the store uses memory only.
	Dir string
	// Version is the version of the run (contract.RunFile.Version). Defaults to contract.FormatVersion.
	Version int
	// MemoryBytes and DiskBytes bound the groups, in bytes of their messages.
	MemoryBytes, DiskBytes int64
	Logger                 *slog.Logger
}

// Store stores groups. It is safe for concurrent use.
type Store struct {
	config Config

	mu      sync.Mutex
	entries map[rl.Key]*entry
	memory  int64
	disk    int64
	// replies are the replies of groups that are not finished.
	replies    map[rl.Key]*replies
	replyBytes int64
	// broken is set while the disk accepts nothing.
	broken bool
}

// entry is one group, in memory or in a file.
type entry struct {
	exchange.StoredGroup
	digest rl.Digest
	// size of the group as a message, in bytes.
	size int64
	// message is nil when the group is in a file.
	message []byte
	// fresh is set until the group has been offered to a learner: the group is not dropped before.
	fresh bool
	// taken is set while the learner has the group in memory.
	taken bool
}

func newEntry(group exchange.EncodedGroup) *entry {
	return &entry{
		StoredGroup: exchange.StoredGroup{Key: group.Key, Outcome: group.Outcome},
		digest:      group.Digest, size: int64(len(group.Message)),
	}
}

// Open makes a store and reads the files of an earlier process in the folder. A file that is damaged is removed: its
// group counts as lost.
func Open(config Config) (*Store, error) {
	config.Version = cmp.Or(config.Version, contract.FormatVersion)
	s := &Store{config: config, entries: map[rl.Key]*entry{}, replies: map[rl.Key]*replies{}}
	if config.Dir == "" {
		s.config.DiskBytes = 0
		return s, nil
	}
	found, err := load(config)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		s.entries[e.Key] = e
		s.disk += e.size
	}
	return s, s.loadReplies()
}

// Add stores a group in place of a group with the same key, and keeps it at least until it has been offered to a
// learner. An error means that the group is not valid; then nothing has changed.
func (s *Store) Add(group rl.Group) error {
	encoded, err := exchange.EncodeGroup(group)
	if err != nil {
		return fmt.Errorf("storing group: %w", err)
	}
	e := newEntry(encoded)
	e.message, e.fresh = encoded.Message, true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(group.Key)
	s.dropReplies(group.Key)
	s.entries[group.Key] = e
	s.memory += e.size
	for s.memory > s.config.MemoryBytes && s.spillOne(s.byNeed()) {
	}
	return nil
}

// Encoded returns a stored group as it was encoded; ok is false if no group has the key. A file that
// cannot be read is an error, and the group is lost.
func (s *Store) Encoded(key rl.Key) (group exchange.EncodedGroup, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok {
		return exchange.EncodedGroup{}, false, nil
	}
	message := e.message
	if message == nil {
		if message, err = read(path(s.config.Dir, key), s.config.Version); err != nil {
			s.drop(key)
			return exchange.EncodedGroup{}, false, fmt.Errorf("reading stored group of slot %d: %w", key.Slot, err)
		}
	}
	return exchange.EncodedGroup{Key: key, Outcome: e.Outcome, Digest: e.digest, Message: message}, true, nil
}

// Group decodes a stored group; ok and err are as for Encoded.
func (s *Store) Group(key rl.Key) (group rl.Group, ok bool, err error) {
	encoded, ok, err := s.Encoded(key)
	if err != nil || !ok {
		return rl.Group{}, false, err
	}
	group, err = exchange.DecodeGroup(encoded.Message)
	return group, err == nil, err
}

// List lists the stored groups: training before evaluation, by slot.
func (s *Store) List() []exchange.StoredGroup {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]exchange.StoredGroup, 0, len(s.entries))
	for _, e := range s.byNeed() {
		list = append(list, e.StoredGroup)
	}
	slices.SortFunc(list, func(a, b exchange.StoredGroup) int { return a.Key.Compare(b.Key) })
	return list
}

// Lookup returns the group that is stored under a key.
func (s *Store) Lookup(key rl.Key) (exchange.StoredGroup, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok {
		return exchange.StoredGroup{}, false
	}
	return e.StoredGroup, true
}

// Len counts the stored groups.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

// Offered notes that the group was offered to a learner, whether or not the learner answered. taken says that the
// learner has the group in memory now. The group stays stored unless room is needed; dropped has the keys of the
// groups that were dropped.
func (s *Store) Offered(key rl.Key, taken bool) (dropped []rl.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[key]; ok {
		e.fresh, e.taken = false, taken
	}
	return s.makeRoom()
}

// ForgetTaken notes that there is a new learner, which has nothing in memory.
func (s *Store) ForgetTaken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		e.taken = false
	}
}

// Cover drops the training groups of slots below the index and the groups of the evaluations, with their replies.
func (s *Store) Cover(index int64, evaluations []exchange.Evaluation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	covered := func(key rl.Key) bool {
		if key.Kind == rl.Train {
			return key.Slot < index
		}
		return slices.Contains(evaluations, exchange.Evaluation{Digest: key.Evaluation, Lineage: key.Lineage})
	}
	for key := range s.entries {
		if covered(key) {
			s.drop(key)
		}
	}
	for key := range s.replies {
		if covered(key) {
			s.dropReplies(key)
		}
	}
}

// Flush writes everything to files, for the next process in the pod. The bounds do not apply.
func (s *Store) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.Dir == "" {
		return nil
	}
	for _, e := range s.byNeed() {
		if err := s.spill(e); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom spills the groups that are needed least, and drops groups where nothing more can be spilled, until the
// bounds hold. It does not drop a fresh group, but stops until the group has been offered: the learner may have it
// soon.
func (s *Store) makeRoom() (dropped []rl.Key) {
	for s.memory > s.config.MemoryBytes {
		order := s.byNeed()
		if s.spillOne(order) {
			continue
		}
		last := len(order) - 1
		for last > 0 && s.broken && order[last].message == nil {
			last--
		}
		if last <= 0 || order[last].fresh {
			return dropped
		}
		dropped = append(dropped, order[last].Key)
		s.drop(order[last].Key)
	}
	return dropped
}

// spillOne spills a group from memory: of the groups that fit on the disk, the group that is needed least. It returns
// false if none fits, or if the disk fails.
func (s *Store) spillOne(order []*entry) bool {
	for _, e := range slices.Backward(order) {
		if e.message == nil || s.disk+s.replyBytes+e.size > s.config.DiskBytes {
			continue
		}
		err := s.spill(e)
		if s.broken = err != nil; s.broken {
			s.config.Logger.Error("spilling a group", "slot", e.Key.Slot, "err", err)
		}
		return !s.broken
	}
	return false
}

// spill moves a group from memory into a file.
func (s *Store) spill(e *entry) error {
	if e.message == nil {
		return nil
	}
	if err := write(s.config, e.Key, e.message); err != nil {
		return err
	}
	e.message = nil
	s.memory -= e.size
	s.disk += e.size
	return nil
}

// drop removes a group.
func (s *Store) drop(key rl.Key) {
	e, ok := s.entries[key]
	if !ok {
		return
	}
	delete(s.entries, key)
	if e.message != nil {
		s.memory -= e.size
		return
	}
	s.disk -= e.size
	if err := remove(s.config.Dir, key); err != nil {
		s.config.Logger.Error("removing a spilled group", "slot", key.Slot, "err", err)
	}
}

// byNeed lists the entries. The entry that is needed most comes first.
func (s *Store) byNeed() []*entry {
	return slices.SortedFunc(maps.Values(s.entries), func(a, b *entry) int {
		if a.taken != b.taken {
			if a.taken {
				return 1
			}
			return -1
		}
		return a.Key.Compare(b.Key)
	})
}
