// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package journal appends records to files of a folder, and reads them again when it is opened.
//
// A journal has one writer. Records that arrive together are written and synced together, and are in force once they
// are on the disk. Records for which a caller waits are written at once, with all records before them; other records
// wait a moment for more. Full files are kept until there are several. Then those records of the oldest file that
// still count move to the newest file.
//
// A file is extended with zeros ahead of its records: syncing a record within the size of the file takes one write to
// the disk, but a file that grows also takes a transaction of the file system.
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
	// MaxSegments is the number of full segments that are kept. If there are more, those records of the oldest segment
	// that still count move to the newest segment.
	MaxSegments = 4
	// roomBytes is the number of zeros by which a segment grows.
	roomBytes = 1 << 20
	// maxRecord limits a line of the journal in bytes.
	maxRecord = 64 << 10
	// delay is how long records wait for more if no caller waits for them.
	delay = 20 * time.Millisecond
)

// ErrClosed is the error of records that come after the end.
var ErrClosed = errors.New("the journal is closed")

// Config configures a journal. R is the type of its records, which JSON can represent.
type Config[R any] struct {
	// Dir is the folder. Name begins the names of the files, and names the records in errors.
	Dir, Name string
	// Apply is called with records that are on the disk, and the number of their segment, in order.
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

	// writing holds a value while a goroutine writes. Only that goroutine uses the following fields.
	writing       chan struct{}
	file          *os.File
	first, newest int
	// size is the size of the newest segment's records, and room that of its file.
	size, room int64
}

// batch is a set of records that become durable together.
type batch[R any] struct {
	records []R
	done    chan struct{}
	err     error
}

// SegmentName returns the path of a file of a journal.
func SegmentName(dir, name string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%08d.jsonl", name, number))
}

// Open reads the segments of a folder, and calls Apply for their records.
func Open[R any](config Config[R]) (*Journal[R], error) {
	config.Limit = cmp.Or(config.Limit, segmentBytes)
	if config.Sync == nil {
		config.Sync = (*os.File).Sync
	}
	j := &Journal[R]{Config: config, writing: make(chan struct{}, 1)}
	if err := j.read(); err != nil {
		return nil, err
	}
	// A segment that a crash may have left with part of a line is not continued.
	if err := j.startSegment(); err != nil {
		return nil, err
	}
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

// readSegment returns the records of a segment. A crash may leave zeros behind the records of the last segment, and
// among them parts of the lines of one write. readSegment removes both: no reply has passed for the records of that
// write.
func (j *Journal[R]) readSegment(name string, last bool) ([]R, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", j.Name, err)
	}
	whole := len(data)
	data = bytes.TrimRight(data, "\x00")
	if zero := bytes.IndexByte(data, 0); last && zero >= 0 {
		data = data[:zero]
	}
	var records []R
	lines := bufio.NewReaderSize(bytes.NewReader(data), maxRecord)
	for number := 1; ; number++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			if len(line) != 0 && !last {
				return nil, fmt.Errorf("reading %s: line %d of %s is not complete", j.Name, number, name)
			}
			if size := len(data) - len(line); size < whole {
				if err := os.Truncate(name, int64(size)); err != nil {
					return nil, fmt.Errorf("removing part of a record: %w", err)
				}
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

// Start arranges for the records to be written within a moment, after the records of earlier calls. wait writes them
// at once, and returns once they are on the disk and in force.
func (j *Journal[R]) Start(records ...R) (wait func(context.Context) error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.failed; err != nil {
		return func(context.Context) error { return err }
	}
	if j.waiting == nil {
		j.waiting = &batch[R]{done: make(chan struct{})}
		time.AfterFunc(delay, func() {
			j.writing <- struct{}{}
			j.write()
		})
	}
	mine := j.waiting
	mine.records = append(mine.records, records...)
	return func(ctx context.Context) error { return j.wait(ctx, mine) }
}

// wait returns once a batch is on the disk. The first goroutine that waits writes the batch, with all records given
// until then, so that no other goroutine has to be woken.
func (j *Journal[R]) wait(ctx context.Context, mine *batch[R]) error {
	select {
	case <-mine.done:
		return mine.err
	default:
	}
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case j.writing <- struct{}{}:
	}
	j.write()
	<-mine.done // another goroutine may have written it before
	return mine.err
}

// write writes the batch that waits, if there is one. The caller has put a value into writing, which write takes out.
func (j *Journal[R]) write() {
	defer func() { <-j.writing }()
	j.mu.Lock()
	next, failed := j.waiting, j.failed
	j.waiting = nil
	j.mu.Unlock()
	if next == nil {
		return
	}
	// Records that wait when the journal is closed were accepted before.
	next.err = failed
	if failed == nil || errors.Is(failed, ErrClosed) {
		next.err = j.store(next.records)
	}
	j.fail(next.err)
	close(next.done)
}

// fail makes the journal accept nothing more after an error.
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
	err := j.makeRoom(j.size + int64(lines.Len()))
	if err == nil {
		_, err = j.file.WriteAt(lines.Bytes(), j.size)
	}
	if err == nil {
		err = j.Sync(j.file)
	}
	if err != nil {
		return fmt.Errorf("recording %s: %w", j.Name, err)
	}
	j.size += int64(lines.Len())
	j.Apply(records, j.newest)
	return nil
}

// makeRoom extends the file of the newest segment to at least size bytes.
func (j *Journal[R]) makeRoom(size int64) error {
	if size <= j.room {
		return nil
	}
	zeros := make([]byte, size-j.room+min(roomBytes, j.Limit))
	if _, err := j.file.WriteAt(zeros, j.room); err != nil {
		return err
	}
	j.room += int64(len(zeros))
	return j.Sync(j.file)
}

// closeSegment closes the newest segment without the room behind its records.
func (j *Journal[R]) closeSegment() error {
	return errors.Join(j.file.Truncate(j.size), j.file.Close())
}

// rotate starts a segment. If there are too many, it moves the live records of the oldest to the new one.
func (j *Journal[R]) rotate() error {
	if err := errors.Join(j.closeSegment(), j.startSegment()); err != nil {
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
	file, err := os.OpenFile(SegmentName(j.Dir, j.Name, j.newest+1), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("starting a file of %s: %w", j.Name, err)
	}
	if err := atomicfile.SyncDir(j.Dir); err != nil {
		return fmt.Errorf("starting a file of %s: %w", j.Name, err)
	}
	j.file, j.size, j.room = file, 0, 0
	j.newest++
	return nil
}

// Close writes the records that wait, and ends the journal.
func (j *Journal[R]) Close() {
	j.fail(fmt.Errorf("recording %s: %w", j.Name, ErrClosed))
	j.writing <- struct{}{}
	j.write()
	j.writing <- struct{}{}
	_ = j.closeSegment()
	<-j.writing
}

// Err returns why the journal accepts nothing more, or nil.
func (j *Journal[R]) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}
