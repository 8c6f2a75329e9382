// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// adoptingAttempt is the attempt that a run claims in another run that it adopts. It is higher than every attempt of
// the adopted run, so that a learner of that run that still runs is fenced as by a later attempt.
const adoptingAttempt = math.MaxInt32

// AdoptedError says that a run cannot be adopted, because another run has adopted it.
type AdoptedError struct {
	// UID is the uid of the run to be adopted, and By the uid of the run that has adopted it.
	UID, By string
}

// Error names both runs.
func (e *AdoptedError) Error() string {
	return fmt.Sprintf("run %s continues run %s already", e.By, e.UID)
}

// Adopt claims the folder of a former run for the run of this store, and copies the rows and evaluations of the former
// run that this store lacks. Nothing but the claim is written into the folder of the former run. It returns the newest
// run file of the former run; nil if the store has no folder of it.
func (s *Store) Adopt(formerUID, by string) (spec []byte, err error) {
	former := s.files.sibling(formerUID)
	if claims, err := former.list(claimsDir); errors.Is(err, fs.ErrNotExist) || err == nil && len(claims) == 0 {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("listing claims of run %s: %w", formerUID, err)
	}
	switch claimant, err := former.claimWhole(by); {
	case err != nil:
		return nil, fmt.Errorf("claiming run %s: %w", formerUID, err)
	case claimant != by:
		return nil, &AdoptedError{UID: formerUID, By: claimant}
	}
	for _, folder := range []string{rowsDir, evaluationsDir} {
		if err := s.files.copyMissing(former, folder); err != nil {
			return nil, fmt.Errorf("copying %s of run %s: %w", folder, formerUID, err)
		}
	}
	if err := s.files.copySpending(former); err != nil {
		return nil, fmt.Errorf("copying what run %s has spent: %w", formerUID, err)
	}
	return former.newestSpec()
}

// copySpending copies the newest record of spending of another run, as the record before the first attempt of this run.
func (f *folder) copySpending(from *folder) error {
	names, err := from.list(spendingDir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".json")
	}
	newest := highest(names)
	data, err := from.original(spendingName(newest))
	if err != nil {
		return err
	}
	var record Spending
	if json.Unmarshal(data, &record) != nil || record.Priced != nil {
		return f.write(spendingName(0), data)
	}
	if err := from.price(&record, newest); err != nil {
		return err
	}
	return f.writeJSON(spendingName(0), record)
}

// claimWhole claims the folder for an adopting run. A claim without content, which is left when a learner dies while it
// writes the claim, belongs to no run.
func (f *folder) claimWhole(by string) (claimant string, err error) {
	if claimant, err = f.claim(adoptingAttempt, by); err != nil || claimant != "" {
		return claimant, err
	}
	if err := f.write(claimName(adoptingAttempt), []byte(by)); err != nil {
		return "", err
	}
	data, err := f.original(claimName(adoptingAttempt))
	return string(data), err
}

// sibling returns the folder of another run of the same store.
func (f *folder) sibling(runUID string) *folder {
	other := &folder{dir: filepath.Join(filepath.Dir(f.dir), runUID)}
	if f.remote != nil {
		other.remote = &remote{objects: f.remote.objects, prefix: path.Join(path.Dir(f.remote.prefix), runUID),
			dir: other.dir}
	}
	return other
}

// copyMissing copies the files of a folder of another run that this run lacks.
func (f *folder) copyMissing(from *folder, sub string) error {
	names, err := from.list(sub)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	own, err := f.list(sub)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var group errgroup.Group
	group.SetLimit(downloads)
	for _, name := range names {
		if !strings.HasSuffix(name, ".json") || slices.Contains(own, name) {
			continue
		}
		group.Go(func() error {
			data, err := from.original(path.Join(sub, name))
			if err != nil {
				return err
			}
			return f.write(path.Join(sub, name), data)
		})
	}
	return group.Wait()
}

// newestSpec returns the run file of the newest attempt; nil if there is none.
func (f *folder) newestSpec() ([]byte, error) {
	names, err := f.list(specsDir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing run files: %w", err)
	}
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".json")
	}
	data, err := f.original(specName(highest(names)))
	if err != nil {
		return nil, fmt.Errorf("reading run file: %w", err)
	}
	return data, nil
}

// namesDir has an entry for each run of a namespace and name, in the order in which they began. It is beside the
// folders of runs.
const namesDir = "names"

// Namesake is another run of the same namespace and name.
type Namesake struct {
	UID string
	// Step is the newest step that has a row.
	Step int64
	// Spec is its newest run file; nil if there is none.
	Spec []byte
}

// Register adds the run of this store to the runs of its namespace and name, and returns the newest other run that
// has committed a step; nil if there is none. began is the time at which the run began, in Unix seconds.
func (s *Store) Register(namespace, name string, began int64) (*Namesake, error) {
	const looked = 4 // Older runs are of no interest.
	folder := path.Join(namesDir, namespace, name)
	root := s.files.sibling("")
	entries, err := root.list(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing runs of the name: %w", err)
	}
	own := filepath.Base(s.files.dir)
	var others []string
	registered := false
	slices.Sort(entries)
	for _, entry := range slices.Backward(entries) {
		_, uid, _ := strings.Cut(entry, "-")
		if uid == own {
			registered = true
		} else if uid != "" {
			others = append(others, uid)
		}
	}
	if !registered {
		if err := root.add(path.Join(folder, fmt.Sprintf("%012d-%s", began, own))); err != nil {
			return nil, fmt.Errorf("registering the run: %w", err)
		}
	}
	for _, uid := range others[:min(len(others), looked)] {
		if found, err := s.namesake(uid); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// add creates an empty file, which may exist.
func (f *folder) add(name string) error {
	if f.remote == nil {
		if err := os.MkdirAll(filepath.Dir(f.path(name)), 0o755); err != nil {
			return err
		}
	}
	return f.publish(name, nil)
}

func (s *Store) namesake(uid string) (*Namesake, error) {
	former := s.files.sibling(uid)
	rows, err := former.list(rowsDir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(rows) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing rows of run %s: %w", uid, err)
	}
	found := &Namesake{UID: uid}
	for _, name := range rows {
		number, _, _ := strings.Cut(name, "-")
		if step, err := strconv.ParseInt(number, 10, 64); err == nil {
			found.Step = max(found.Step, step)
		}
	}
	found.Spec, err = former.newestSpec()
	return found, err
}
