// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package artifacts keeps the files of a run: the claims of its attempts, a row for each step and evaluation, and
// metrics.jsonl. It does not depend on Tinker or on training. A Store has the files. A Journal decides when they are
// written, and waits for a store that does not answer; without a store it writes nothing and knows of nothing.
//
// Layout below the folder of the run's uid:
//
//	attempts/<n>                              claim of attempt n
//	specs/<n>.json                            run file of attempt n
//	rows/<step>-<lineage>.json                row of the step that led to that version
//	episodes/<step>-<lineage>.jsonl.gz        episodes of that step, a line for each
//	evaluations/<step>-<lineage>-<plan>.json  result of one evaluation; <plan> is the digest of its settings
//	uploads/<step>-<lineage>.json, .progress  rollouts that OpenReward has not received, and which of them were begun
//	uploads/<step>-<lineage>.sent             the rollouts of that version need not be sent any more
//	tensorboard/<name>/events.out.tfevents.*  event files of TensorBoard, in the order of their steps
//	spending/<n>.json                         the spending of the run, as the learner of attempt n knows it
//	models/<n>.json                           which models the learner of attempt n has made, and known checkpoints
//	session                                   rollout session that samples were asked for in
//	workers.json                              workers that are connected to the newest learner
//	unloaded.json                             models that the attempts of the run have unloaded
//	metrics.jsonl                             the metrics of each step that the newest state descends from
//	evaluations.jsonl                         the evaluations of these versions, in the order in which they ended
//	rows.jsonl                                the rows of these versions without manifests, for a quick resume
//	chunks/<file>-<first>.jsonl               at a URL: 128 lines each of these files
//
// Beside the folders of runs is one more:
//
//	names/<namespace>/<name>/<began>-<uid>    empty; one for each run that had this name
//
// A run that continues a deleted one claims its folder by attempts/2147483647, whose content is the uid of the run that
// continues it.
//
// The files are in a folder, or they are objects below a URL. In the latter case the folder is a copy that serves
// reads.
//
// A row and its episodes are written before its state is saved and may belong to a state that was never
// saved. Only the chain of parents says which rows count. Files appear whole or not at all, and survive a power failure
// once the call that wrote them has returned.
package artifacts

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
)

// ErrClaimed says that another process has claimed the attempt.
var ErrClaimed = errors.New("the attempt is claimed by another process")

const (
	claimsDir      = "attempts"
	rowsDir        = "rows"
	evaluationsDir = "evaluations"
	specsDir       = "specs"
	sessionFile    = "session"
	workersFile    = "workers.json"
	unloadedFile   = "unloaded.json"
)

// Store is the folder of one run. It is safe for concurrent use by the parts of one learner, and its
// claims by several learners.
type Store struct {
	files *folder
	lines lineFiles
}

// OpenStore makes the folders of the run below dir as needed.
func OpenStore(dir, runUID string) (*Store, error) {
	files := &folder{dir: filepath.Join(dir, runUID)}
	for _, sub := range []string{claimsDir, rowsDir, episodesDir, evaluationsDir, specsDir, uploadsDir,
		spendingDir, modelsDir} {
		if err := os.MkdirAll(files.path(sub), 0o755); err != nil {
			return nil, fmt.Errorf("making artifact folders: %w", err)
		}
	}
	return &Store{files: files, lines: newLineFiles(files)}, nil
}

// OpenBucketStore returns the store of a run among objects. Reads are served from a copy in dir, which Claim and
// Refresh make.
func OpenBucketStore(objects Objects, dir, runUID string) (*Store, error) {
	if err := os.RemoveAll(filepath.Join(dir, runUID)); err != nil {
		return nil, fmt.Errorf("removing an old copy of the artifacts: %w", err)
	}
	s, err := OpenStore(dir, runUID)
	if err != nil {
		return nil, err
	}
	s.files.remote = &remote{objects: objects, prefix: runUID, dir: s.files.dir}
	return s, nil
}

// Claim marks the attempt as begun by the process that by identifies. The same process may claim again, in case the
// answer to its first call was lost. Claim fails with ErrClaimed if another process was first.
func (s *Store) Claim(attempt int32, by string) error {
	claimant, err := s.files.claim(attempt, by)
	if err == nil && claimant != by {
		err = ErrClaimed
	}
	if err != nil {
		return fmt.Errorf("claiming attempt %d: %w", attempt, err)
	}
	return s.Refresh()
}

// HighestClaim returns the highest attempt that was ever claimed, or 0 if there is none.
func (s *Store) HighestClaim() (int32, error) {
	claims, err := s.files.list(claimsDir)
	if err != nil {
		return 0, fmt.Errorf("listing claims: %w", err)
	}
	return highest(claims), nil
}

// Refresh copies files that other learners have written since, if the folder is a copy.
func (s *Store) Refresh() error {
	if s.files.remote == nil {
		return nil
	}
	return s.files.remote.refresh()
}

// highest returns the highest attempt among the names of claims.
func highest(claims []string) int32 {
	var highest int32
	for _, name := range claims {
		if n, err := strconv.ParseInt(name, 10, 32); err == nil {
			highest = max(highest, int32(n))
		}
	}
	return highest
}

// WriteSpec records the run file of an attempt.
func (s *Store) WriteSpec(attempt int32, file []byte) error {
	return s.files.write(specName(attempt), file)
}

func specName(attempt int32) string { return path.Join(specsDir, strconv.Itoa(int(attempt))+".json") }

// SetWorkers records the workers for the attempt after this one.
func (s *Store) SetWorkers(names []string) error {
	return s.files.writeJSON(workersFile, names)
}

// Workers returns the workers that were recorded last; nil if none were recorded.
func (s *Store) Workers() []string {
	var names []string
	if s.files.readJSON(workersFile, &names) != nil {
		return nil
	}
	return names
}

// SetSession records the rollout session for the attempt after this one.
func (s *Store) SetSession(session string) error {
	return s.files.write(sessionFile, []byte(session))
}

// Session returns the rollout session that was recorded last; empty if none was recorded.
func (s *Store) Session() string {
	data, err := os.ReadFile(s.files.path(sessionFile))
	if err != nil {
		return ""
	}
	return string(data)
}
