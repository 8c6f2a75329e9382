// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/openreward"
	"github.com/tinker-operator/tinker-operator/internal/problem"
	"github.com/tinker-operator/tinker-operator/internal/rl"
	"github.com/tinker-operator/tinker-operator/internal/wait"
)

// These bound the waiting rollouts. maxWaitingEvents is the bound of the package openreward.
const (
	maxWaitingEvents = 100_000
	maxWaitingBytes  = 64 << 20
	maxBatchBytes    = 64 << 20
)

// Uploads are the rollouts of a run that wait until their step is committed, and then until a service has received
// them. With an artifact store they wait there, so that a later attempt sends rollouts that this one could not send.
type Uploads struct {
	run     openreward.Run
	service *openReward
	files   func() *artifacts.UploadFiles
	logger  *slog.Logger
	// most limits the waiting messages.
	most int

	mu sync.Mutex
	// made are the batches of steps that are not committed, and committed the batches of committed steps, in their order.
	made, committed []*waitingBatch
	// sent are the steps that need not be sent again, as far as this process knows.
	sent map[rl.Version]bool
	// resumed are the steps that led to the version which was loaded, until it is known which of them have rollouts.
	resumed []rl.Version
	// dropped counts the rollouts that were dropped for lack of room, or that the service refused.
	dropped atomic.Int64
	changes wait.Signal
}

// waitingBatch has the rollouts of a step.
type waitingBatch struct {
	rl.Version
	// encoded are the rollouts; nil if they are in the store.
	encoded []byte
	// rollouts and messages count them; both are 0 if an earlier attempt stored them.
	rollouts, messages int
	// progress is the progress of sending the step, and refused counts the rollouts and requests of messages that were
	// refused. The goroutine that sends uses them.
	progress *progress
	refused  int
}

func (b *waitingBatch) key() string { return artifacts.EpisodesKey(b.Step, b.Lineage.String()) }

func newUploads(run openreward.Run, service *openReward, files func() *artifacts.UploadFiles,
	logger *slog.Logger) *Uploads {
	return &Uploads{run: run, service: service, files: files, logger: logger, most: maxWaitingEvents,
		sent: map[rl.Version]bool{}}
}

// change changes the waiting batches, and wakes the goroutines that wait for a change.
func (u *Uploads) change(do func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	do()
	u.changes.Notify()
}

// Add adds the rollouts of a step that is not committed.
func (u *Uploads) Add(batch openreward.Batch) {
	if u == nil {
		return
	}
	rollouts := u.run.Rollouts(batch)
	encoded, omitted, messages, err := openreward.Encode(rollouts, maxBatchBytes)
	if err != nil {
		u.logger.Warn("rollouts are not sent", "step", batch.Version.Step, "err", err)
		return
	}
	u.change(func() {
		u.dropped.Add(int64(omitted))
		u.made = append(u.made, &waitingBatch{
			Version: batch.Version, encoded: encoded, rollouts: len(rollouts) - omitted, messages: messages,
		})
	})
}

// Store writes added batches into the artifact store, before the state of their step is saved. Batches that the store
// does not take wait in memory, as far as there is room.
func (u *Uploads) Store() {
	if u == nil {
		return
	}
	files := u.files()
	if files == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, batch := range u.made {
		if batch.encoded == nil {
			continue
		}
		if err := files.Write(batch.key(), batch.encoded); err != nil {
			u.logger.Warn("rollouts are not in the artifact store and would be lost with the learner", "step", batch.Step, "err",
				err)
			u.bound()
			return
		}
		batch.encoded = nil
	}
}

// commit makes a step's rollouts ready to be sent.
func (u *Uploads) commit(version rl.Version) {
	if u == nil {
		return
	}
	u.change(func() {
		i := slices.IndexFunc(u.made, func(b *waitingBatch) bool { return b.Version == version })
		if i < 0 {
			return
		}
		batch := u.made[i]
		u.made = slices.Delete(u.made, i, i+1)
		if u.sent[version] || slices.ContainsFunc(u.committed, func(b *waitingBatch) bool { return b.Version == version }) {
			return // The run had returned to an earlier version, and has made the same step again.
		}
		u.committed = append(u.committed, batch)
		u.bound()
	})
}

// bound drops the oldest steps, but never the newest one, if more events wait than there is room for.
func (u *Uploads) bound() {
	all := slices.Concat(u.committed, u.made)
	messages, bytes, kept := 0, 0, 0
	for _, batch := range slices.Backward(all) {
		messages, bytes = messages+batch.messages, bytes+len(batch.encoded)
		if kept > 0 && (messages > u.most || bytes > maxWaitingBytes) {
			break
		}
		kept++
	}
	dropped := all[:len(all)-kept]
	for _, old := range dropped {
		u.dropped.Add(int64(old.rollouts))
	}
	for _, old := range dropped[:min(len(dropped), len(u.committed))] {
		u.sent[old.Version] = true
	}
	u.made = slices.Delete(u.made, 0, max(0, len(dropped)-len(u.committed)))
	u.committed = slices.Delete(u.committed, 0, min(len(dropped), len(u.committed)))
}

// resume drops the batches of steps that the run has returned from. It makes restore search the store for batches
// that earlier attempts left, of the steps that led to the loaded version.
func (u *Uploads) resume(at rl.Version, chain []artifacts.Row) {
	if u == nil {
		return
	}
	versions := make([]rl.Version, 0, len(chain))
	for _, row := range slices.Backward(chain) {
		versions = append(versions, row.Version)
	}
	u.change(func() {
		u.made, u.resumed = nil, versions
		u.committed = slices.DeleteFunc(u.committed, func(b *waitingBatch) bool {
			return b.Step > at.Step || len(chain) > 0 && !slices.Contains(versions, b.Version)
		})
	})
}

// restore finds the rollouts that earlier attempts left.
func (u *Uploads) restore() error {
	u.mu.Lock()
	resumed := u.resumed
	u.mu.Unlock()
	files := u.files()
	if len(resumed) == 0 || files == nil {
		return nil
	}
	waiting, err := files.Waiting()
	if err != nil {
		return &serviceError{code: problem.ServiceFailing,
			message: "The artifact store does not say which rollouts wait: it is " +
				"asked again"}
	}
	u.change(func() {
		var found []*waitingBatch
		for _, version := range resumed {
			batch := &waitingBatch{Version: version}
			known := slices.ContainsFunc(u.committed, func(b *waitingBatch) bool { return b.Version == version })
			if waiting[batch.key()] && !known && !u.sent[version] {
				found = append(found, batch)
			}
		}
		u.committed = append(found, u.committed...)
		if slices.Equal(u.resumed, resumed) {
			u.resumed = nil
		}
	})
	return nil
}

// next returns the oldest step that waits, or nil if there is none, and a channel that is closed when there may be
// more.
func (u *Uploads) next() (*waitingBatch, <-chan struct{}) {
	changed := u.changes.Changed()
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.committed) == 0 {
		return nil, changed
	}
	return u.committed[0], changed
}

// isWaiting reports whether a step is still to be sent.
func (u *Uploads) isWaiting(batch *waitingBatch) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Contains(u.committed, batch)
}

// read returns the rollouts of a step.
func (u *Uploads) read(batch *waitingBatch) ([]openreward.Rollout, error) {
	u.mu.Lock()
	encoded := batch.encoded
	u.mu.Unlock()
	if encoded == nil {
		data, err := u.files().Read(batch.key())
		if err != nil {
			return nil, &serviceError{code: problem.ServiceFailing,
				message: "The artifact store does not return rollouts: it is asked again"}
		}
		encoded = data
	}
	var rollouts []openreward.Rollout
	if err := json.Unmarshal(encoded, &rollouts); err != nil {
		return nil, fmt.Errorf("decoding rollouts: %w", err)
	}
	return rollouts, nil
}

// finish removes a step that is sent in full.
func (u *Uploads) finish(batch *waitingBatch) {
	u.change(func() {
		u.dropped.Add(int64(batch.refused))
		u.sent[batch.Version] = true
		u.committed = slices.DeleteFunc(u.committed, func(b *waitingBatch) bool { return b == batch })
	})
}

// send sends waiting batches until the run has ended and nothing is left. connected is called once the key is read, and
// whenever the service has received a step.
func (u *Uploads) send(ctx context.Context, ended func() bool, wait func(<-chan struct{}) bool,
	connected func(received bool)) error {
	if err := u.service.authenticate(); err != nil {
		return err
	}
	for first := true; ; first = false {
		// The run ends after it was resumed for the last time, so restore finds everything that an ended run has left.
		isLast := ended()
		if err := u.restore(); err != nil {
			return err
		}
		if first {
			connected(false)
		}
		batch, changed := u.next()
		if batch == nil {
			if isLast {
				return nil
			}
			if !wait(changed) {
				return context.Cause(ctx)
			}
			continue
		}
		err := u.sendBatch(ctx, batch)
		if errors.Is(err, artifacts.ErrSuperseded) {
			return nil
		}
		if err != nil {
			return err
		}
		connected(true)
	}
}
