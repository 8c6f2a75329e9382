// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
)

const (
	// segmentBytes is the size from which a segment of a journal is full.
	segmentBytes = 16 << 20
	// maxSegments is how many full segments there are before the records of the oldest that still count move to the
	// newest.
	maxSegments = 4
	// maxRecord limits a line of the journal in bytes.
	maxRecord = 64 << 10
)

// errClosed is the error of records that come after the end.
var errClosed = errors.New("recording owners: the journal is closed")

// journal appends records to files, and has one writer. Records that arrive together are written and synced together.
// After an error of the disk the journal accepts nothing more: its records are read again once it is opened anew.
type journal struct {
	dir string
	// limit is segmentBytes, or less in tests.
	limit int64
	// apply is called by the writer with records that are on the disk, and the number of their segment.
	apply func(records []record, segment int)
	// live returns the records of a segment that still count.
	live func(segment int) []record
	// sync makes a file durable.
	sync func(*os.File) error

	mu      sync.Mutex
	waiting *batch
	failed  error
	wake    chan struct{}
	done    chan struct{}

	// The writer alone uses the following fields.
	file          *os.File
	size          int64
	first, newest int
}

// batch is a set of records that become durable together.
type batch struct {
	records []record
	done    chan struct{}
	err     error
}

func segmentName(dir string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("owners-%08d.jsonl", number))
}

// openJournal reads the segments of a folder, calls apply for their records, and starts the writer.
func openJournal(j *journal) error {
	names, err := filepath.Glob(filepath.Join(j.dir, "owners-*.jsonl"))
	if err != nil {
		return fmt.Errorf("listing owners: %w", err)
	}
	for i, name := range names {
		number := 0
		if _, err := fmt.Sscanf(filepath.Base(name), "owners-%d.jsonl", &number); err != nil {
			return fmt.Errorf("reading the name of %s: %w", name, err)
		}
		if i == 0 {
			j.first = number
		}
		records, err := readSegment(name, i == len(names)-1)
		if err != nil {
			return err
		}
		j.apply(records, number)
		j.newest = number
	}
	if len(names) == 0 {
		j.first = 1
	}
	// A segment that a crash may have left with part of a line is not continued.
	if err := j.startSegment(); err != nil {
		return err
	}
	j.wake, j.done = make(chan struct{}, 1), make(chan struct{})
	go j.write()
	return nil
}

// readSegment returns the records of a segment. A crash may leave part of a line at the end of the last segment, which
// readSegment removes: no reply passed for the record.
func readSegment(name string, last bool) ([]record, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading owners: %w", err)
	}
	var records []record
	lines := bufio.NewReaderSize(bytes.NewReader(data), maxRecord)
	for number := 1; ; number++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			if len(line) == 0 {
				return records, nil
			}
			if !last {
				return nil, fmt.Errorf("reading owners: line %d of %s is not complete", number, name)
			}
			if err := os.Truncate(name, int64(len(data)-len(line))); err != nil {
				return nil, fmt.Errorf("removing part of an owner: %w", err)
			}
			return records, nil
		}
		var r record
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("reading owners: line %d of %s: %w", number, name, err)
		}
		records = append(records, r)
	}
}

// append returns once the records are on the disk and in force.
func (j *journal) append(ctx context.Context, records ...record) error {
	j.mu.Lock()
	if j.failed != nil {
		j.mu.Unlock()
		return j.failed
	}
	if j.waiting == nil {
		j.waiting = &batch{done: make(chan struct{})}
	}
	mine := j.waiting
	mine.records = append(mine.records, records...)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// write is the writer. It ends with the journal.
func (j *journal) write() {
	defer close(j.done)
	defer func() { _ = j.file.Close() }()
	for range j.wake {
		j.mu.Lock()
		next, ending := j.waiting, j.failed
		j.waiting = nil
		j.mu.Unlock()
		if next != nil {
			next.err = ending
			if ending == nil {
				next.err = j.store(next.records)
			}
			j.fail(next.err)
			close(next.done)
		}
		if ending != nil {
			return
		}
	}
}

// fail has the journal accept nothing more after an error.
func (j *journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil && j.failed == nil {
		j.failed = err
	}
}

// store makes records durable, puts them in force, and starts another segment where this one is full.
func (j *journal) store(records []record) error {
	if err := j.writeRecords(records); err != nil {
		return err
	}
	if j.size < j.limit {
		return nil
	}
	return j.rotate()
}

func (j *journal) writeRecords(records []record) error {
	var lines bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encoding an owner: %w", err)
		}
		lines.Write(line)
		lines.WriteByte('\n')
	}
	n, err := j.file.Write(lines.Bytes())
	if err == nil {
		err = j.sync(j.file)
	}
	if err != nil {
		return fmt.Errorf("recording owners: %w", err)
	}
	j.size += int64(n)
	j.apply(records, j.newest)
	return nil
}

// rotate starts a segment. If there are too many, it moves the live records of the oldest to the new one.
func (j *journal) rotate() error {
	if err := errors.Join(j.file.Close(), j.startSegment()); err != nil {
		return err
	}
	for ; j.newest-j.first > maxSegments; j.first++ {
		if err := j.writeRecords(j.live(j.first)); err != nil {
			return err
		}
		if err := os.Remove(segmentName(j.dir, j.first)); err != nil {
			return fmt.Errorf("removing old owners: %w", err)
		}
	}
	return nil
}

func (j *journal) startSegment() error {
	file, err := os.OpenFile(segmentName(j.dir, j.newest+1), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("starting a file of owners: %w", err)
	}
	if err := atomicfile.SyncDir(j.dir); err != nil {
		return fmt.Errorf("starting a file of owners: %w", err)
	}
	j.file, j.size = file, 0
	j.newest++
	return nil
}

// close ends the writer after the records that wait.
func (j *journal) close() {
	j.fail(errClosed)
	select {
	case j.wake <- struct{}{}:
	default:
	}
	<-j.done
}

// error returns why the journal accepts nothing more, or nil.
func (j *journal) error() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}
