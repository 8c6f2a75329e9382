// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// Adopt claims the folder of a former run, whose learners then stop, and copies its rows and evaluations. It returns
// the newest run file of the former run; nil if the store has none. It waits for the store, and fails with a
// *AdoptedError if another run has adopted the former one.
func (j *Journal) Adopt(ctx context.Context, formerUID string) ([]byte, error) {
	if j.store == nil {
		return nil, nil
	}
	specs := make(chan []byte, 1)
	err := j.insist(ctx, "adopting the earlier run", func() error {
		spec, err := j.store.Adopt(formerUID, j.config.RunUID)
		if err == nil {
			err = j.store.Refresh()
		}
		if err == nil {
			specs <- spec
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-specs, nil
}

// Register enters the run among the runs of its namespace and name, and returns the newest other run that has
// committed a step; nil if there is none.
func (j *Journal) Register(namespace, name string, began int64) *Namesake {
	if j.store == nil {
		return nil
	}
	found, err := j.store.Register(namespace, name, began)
	if err != nil {
		j.config.Logger.Warn("earlier runs of the name are not known", "err", err)
	}
	return found
}

// Origin returns the lineage of the version 0 that a version descends from, if rows lead there.
func (j *Journal) Origin(v rl.Version) (lineage rl.Lineage, ok bool) {
	if j.store == nil {
		return rl.Lineage{}, false
	}
	unknown := func(rl.Version) (rl.Lineage, bool) { return rl.Lineage{}, false }
	for ancestor := range j.store.Chain(v, unknown) {
		lineage, ok = ancestor.Lineage, ancestor.Step == 0
	}
	return lineage, ok
}
