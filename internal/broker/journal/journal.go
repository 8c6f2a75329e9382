// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package journal appends records to files of a folder, and reads them again when it is opened.
//
// A journal has one writer. Records that arrive together are written and synced together, and are in force once they
// are on the disk. Records for which somebody waits are written at once, with all before them; others wait a moment for
// more. Files that are full are kept until there are several; then the records of the oldest that still count move to
// the newest.
package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
)

const (
	// segmentBytes is the size from which a segment of a journal is full.
	segmentBytes = 16 << 20
	// MaxSegments is how many full segments there are before the records of the oldest that still count move to the
	// newest.
	MaxSegments = 4
	// maxRecord limits a line of the journal in bytes.
	maxRecord = 64 << 10
	// delay is how long records wait for more when nobody waits for them.
	delay = 20 * time.Millisecond
)

// ErrClosed is the error of records that come after the end.
var ErrClosed = errors.New("the journal is closed")

// Config configures a journal. R is the type of its records, which JSON can represent.
type Config[R any] struct {
	// Dir is the folder. Name begins the names of the files, and names the records in errors.
	Dir, Name string
	// Apply is called by the writer with records that are on the disk, and the number of their segment, in order.
	Apply func(records []R, segment int)
	// Live returns the records of a segment that still count.
	Live func(segment int) []R
	// Limit is the size from which a segment is full; 16 MiB by default.
	Limit int64
	// Sync makes a file durable; nil is (*os.File).Sync.
	Sync func(*os.File) error
}

// Journal is an open journal. After an error of the disk it accepts nothing more: its records are read again once it is
// opened anew. It is safe for concurrent use.
type Journal[R any] struct {
	Config[R]

	mu      sync.Mutex
	waiting *batch[R]
	failed  error
	wake    chan struct{}
	done    chan struct{}

	// The writer alone uses the following fields.
	file          *os.File
	size          int64
	first, newest int
}

// batch is a set of records that become durable together.
type batch[R any] struct {
	records []R
	done    chan struct{}
	err     error
}

// SegmentName is the name of a file of a journal.
func SegmentName(dir, name string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%08d.jsonl", name, number))
}

// Open reads the segments of a folder, calls Apply for their records, and starts the writer.
func Open[R any](config Config[R]) (*Journal[R], error) {
	config.Limit = cmp.Or(config.Limit, segmentBytes)
	if config.Sync == nil {
		config.Sync = (*os.File).Sync
	}
	j := &Journal[R]{Config: config}
	if err := j.read(); err != nil {
		return nil, err
	}
	// A segment that a crash may have left with part of a line is not continued.
	if err := j.startSegment(); err != nil {
		return nil, err
	}
	j.wake, j.done = make(chan struct{}, 1), make(chan struct{})
	go j.write()
	return j, nil
}

func (j *Journal[R]) read() error {
	names, err := filepath.Glob(filepath.Join(j.Dir, j.Name+"-*.jsonl"))
	if err != nil {
		return fmt.Errorf("listing %s: %w", j.Name, err)
	}
	for i, name := range names {
		number := 0
		if _, err := fmt.Sscanf(filepath.Base(name), j.Name+"-%d.jsonl", &number); err != nil {
			return fmt.Errorf("reading the name of %s: %w", name, err)
		}
		if i == 0 {
			j.first = number
		}
		records, err := j.readSegment(name, i == len(names)-1)
		if err != nil {
			return err
		}
		j.Apply(records, number)
		j.newest = number
	}
	if len(names) == 0 {
		j.first = 1
	}
	return nil
}

// readSegment returns the records of a segment. A crash may leave part of a line at the end of the last segment, which
// readSegment removes: no reply passed for the record.
func (j *Journal[R]) readSegment(name string, last bool) ([]R, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", j.Name, err)
	}
	var records []R
	lines := bufio.NewReaderSize(bytes.NewReader(data), maxRecord)
	for number := 1; ; number++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			if len(line) == 0 {
				return records, nil
			}
			if !last {
				return nil, fmt.Errorf("reading %s: line %d of %s is not complete", j.Name, number, name)
			}
			if err := os.Truncate(name, int64(len(data)-len(line))); err != nil {
				return nil, fmt.Errorf("removing part of a record: %w", err)
			}
			return records, nil
		}
		var r R
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: line %d of %s: %w", j.Name, number, name, err)
		}
		records = append(records, r)
	}
}

// Append returns once the records are on the disk and in force.
func (j *Journal[R]) Append(ctx context.Context, records ...R) error {
	return j.Start(records...)(ctx)
}

// Start has the records written within a moment, after those that were given before. The function that it returns has
// them written at once, and waits until they are on the disk and in force.
func (j *Journal[R]) Start(records ...R) (wait func(context.Context) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.failed; err != nil {
		return func(context.Context) error { return err }
	}
	if j.waiting == nil {
		j.waiting = &batch[R]{done: make(chan struct{})}
		time.AfterFunc(delay, j.wakeWriter)
	}
	mine := j.waiting
	mine.records = append(mine.records, records...)
	return func(ctx context.Context) error {
		j.wakeFor(mine)
		select {
		case <-mine.done:
			return mine.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// wakeFor wakes the writer if it does not have the batch yet.
func (j *Journal[R]) wakeFor(mine *batch[R]) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.waiting == mine {
		j.wakeWriter()
	}
}

func (j *Journal[R]) wakeWriter() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// write is the writer. It ends with the journal.
func (j *Journal[R]) write() {
	defer close(j.done)
	defer func() { _ = j.file.Close() }()
	for range j.wake {
		j.mu.Lock()
		next, ending := j.waiting, j.failed
		j.waiting = nil
		j.mu.Unlock()
		if next != nil {
			// Records that wait when the journal is closed were accepted before.
			next.err = ending
			if ending == nil || errors.Is(ending, ErrClosed) {
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
func (j *Journal[R]) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil && j.failed == nil {
		j.failed = err
	}
}

// store makes records durable, puts them in force, and starts another segment where this one is full.
func (j *Journal[R]) store(records []R) error {
	if err := j.writeRecords(records); err != nil {
		return err
	}
	if j.size < j.Limit {
		return nil
	}
	return j.rotate()
}

func (j *Journal[R]) writeRecords(records []R) error {
	var lines bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", j.Name, err)
		}
		lines.Write(line)
		lines.WriteByte('\n')
	}
	n, err := j.file.Write(lines.Bytes())
	if err == nil {
		err = j.Sync(j.file)
	}
	if err != nil {
		return fmt.Errorf("recording %s: %w", j.Name, err)
	}
	j.size += int64(n)
	j.Apply(records, j.newest)
	return nil
}

// rotate starts a segment. If there are too many, it moves the live records of the oldest to the new one.
func (j *Journal[R]) rotate() error {
	if err := errors.Join(j.file.Close(), j.startSegment()); err != nil {
		return err
	}
	for ; j.newest-j.first > MaxSegments; j.first++ {
		if err := j.writeRecords(j.Live(j.first)); err != nil {
			return err
		}
		if err := os.Remove(SegmentName(j.Dir, j.Name, j.first)); err != nil {
			return fmt.Errorf("removing old %s: %w", j.Name, err)
		}
	}
	return nil
}

func (j *Journal[R]) startSegment() error {
	file, err := os.OpenFile(SegmentName(j.Dir, j.Name, j.newest+1), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("starting a file of %s: %w", j.Name, err)
	}
	if err := atomicfile.SyncDir(j.Dir); err != nil {
		return fmt.Errorf("starting a file of %s: %w", j.Name, err)
	}
	j.file, j.size = file, 0
	j.newest++
	return nil
}

// Close ends the writer after the records that wait.
func (j *Journal[R]) Close() {
	j.fail(fmt.Errorf("recording %s: %w", j.Name, ErrClosed))
	j.wakeWriter()
	<-j.done
}

// Err returns why the journal accepts nothing more, or nil.
func (j *Journal[R]) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}
