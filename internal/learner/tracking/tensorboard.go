// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"context"
	"fmt"
	"maps"
	"strings"

	contracttracking "github.com/tinker-operator/tinker-operator/internal/contract/tracking"
	"github.com/tinker-operator/tinker-operator/internal/finite"
	"github.com/tinker-operator/tinker-operator/internal/learner/artifacts"
	"github.com/tinker-operator/tinker-operator/internal/learner/tracking/tfevents"
	"github.com/tinker-operator/tinker-operator/internal/problem"
)

// TensorBoardDir is the folder of the artifacts that has a folder of event files for each name of a run.
const TensorBoardDir = "tensorboard"

// maxFileLines bounds the lines of an event file, so that one at a URL, which is always written as a whole, stays
// small.
const maxFileLines = 256

// tensorBoard writes lines into event files among the artifacts. TensorBoard reads the files of a folder in the order
// of their names, and never reads a part of a file again. So each attempt writes files of its own after the files of
// earlier attempts, and removes from the earlier files the lines that the run no longer has.
type tensorBoard struct {
	open   func() *artifacts.EventFiles
	files  eventFiles
	folder string
	// attempt is part of the names of files.
	attempt int32

	// former are the names of files that were not compared yet, and comparing is the file that is being compared.
	former    []string
	comparing *formerFile
	// compared is set once lines were compared since Open, and settled once nothing is left to compare.
	compared, settled bool
	// own is the file that lines are added to; nil if the next line begins one.
	own *ownFile
}

// eventFiles are the event files of a run. *artifacts.EventFiles implements it.
type eventFiles interface {
	List(folder string) ([]string, error)
	Read(name string) ([]byte, error)
	Grow(name string, content []byte, former int) error
}

// formerFile is a file that existed when the sink was opened.
type formerFile struct {
	name    string
	data    []byte
	records []tfevents.Record
	// valid is the number of bytes of data with whole records, and same the number of records with the lines of the run.
	valid, same int
}

// ownFile is a file that this process writes.
type ownFile struct {
	name    string
	content []byte
	lines   int
}

func newTensorBoard(settings contracttracking.TensorBoard, run Run, open func() *artifacts.EventFiles) *tensorBoard {
	return &tensorBoard{open: open, folder: TensorBoardDir + "/" + settings.RunName, attempt: run.Attempt}
}

// Service implements Sink.
func (*tensorBoard) Service() string { return "tensorboard" }

// Open implements Sink. It returns -1 to receive all lines, with which the files are compared.
func (b *tensorBoard) Open(context.Context) (int64, error) {
	b.former, b.comparing, b.own, b.compared, b.settled = nil, nil, nil, false, false
	files := b.open()
	if files == nil {
		return 0, &serviceError{code: problem.ServiceNotFound,
			message: "Event files are kept among the artifacts, and the run has " +
				"none: give it spec.artifacts"}
	}
	b.files = files
	names, err := b.files.List(b.folder)
	if err != nil {
		return 0, eventFileProblem(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, tfevents.Prefix) {
			b.former = append(b.former, b.folder+"/"+name)
		}
	}
	return -1, nil
}

// eventFileProblem returns the problem of an artifact store that fails.
func eventFileProblem(err error) *serviceError {
	return &serviceError{code: problem.ServiceFailing, message: fmt.Sprintf(
		"the artifact store does not take event files (%v): repair spec.artifacts", err)}
}

// Write implements Sink.
func (b *tensorBoard) Write(_ context.Context, lines []Line) error {
	if len(lines) == 0 {
		return nil
	}
	more := len(lines) == maxLines
	lines, err := b.compare(lines)
	if err == nil && (!more || len(lines) > 0) {
		err = b.settle()
	}
	if err == nil {
		err = b.append(lines)
	}
	if err != nil {
		return eventFileProblem(err)
	}
	return nil
}

// Close implements Sink.
func (b *tensorBoard) Close(context.Context, Outcome) error {
	if !b.compared {
		return nil // The run ends before it is known which lines it has.
	}
	if err := b.settle(); err != nil {
		return eventFileProblem(err)
	}
	return nil
}

// compare returns the lines from the first on that the former files do not have.
func (b *tensorBoard) compare(lines []Line) ([]Line, error) {
	b.compared = true
	for i, line := range lines {
		for b.comparing == nil || b.comparing.isExhausted() {
			if b.settled || len(b.former) == 0 {
				return lines[i:], nil
			}
			if err := b.compareNext(); err != nil {
				return nil, err
			}
		}
		if !b.comparing.has(eventOf(line)) {
			return lines[i:], nil
		}
		b.comparing.same++
	}
	return nil, nil
}

// compareNext begins to compare the next of the former files.
func (b *tensorBoard) compareNext() error {
	name := b.former[0]
	data, err := b.files.Read(name)
	if err != nil {
		return err
	}
	b.comparing, b.former = &formerFile{name: name, data: data}, b.former[1:]
	b.comparing.records, b.comparing.valid = tfevents.Decode(data)
	return nil
}

// isExhausted reports whether all records of the file are lines of the run, and nothing else follows them.
func (f *formerFile) isExhausted() bool {
	return f.same == len(f.records) && f.valid == len(f.data)
}

// has reports whether the next record of the file is an event. Their times may differ, since the time of an evaluation
// is not recorded.
func (f *formerFile) has(e tfevents.Event) bool {
	return f.same < len(f.records) && f.records[f.same].Step == e.Step && maps.Equal(f.records[f.same].Scalars, e.Scalars)
}

// settle removes lines that the run does not have from the former files. The last kept file is rewritten, so that an
// earlier learner that was stopped and continues adds nothing to it.
func (b *tensorBoard) settle() error {
	if b.settled {
		return nil
	}
	if f := b.comparing; f != nil {
		kept := f.data[:f.valid]
		if f.same < len(f.records) {
			kept = f.data[:f.records[f.same].Start]
		}
		if err := b.files.Grow(f.name, kept, 0); err != nil {
			return err
		}
	}
	for len(b.former) > 0 {
		if err := b.compareNext(); err != nil {
			return err
		}
		if f := b.comparing; len(f.records) > 0 || !f.isExhausted() {
			if err := b.files.Grow(f.name, nil, 0); err != nil {
				return err
			}
		}
	}
	b.comparing, b.settled = nil, true
	return nil
}

// append appends lines.
func (b *tensorBoard) append(lines []Line) error {
	for len(lines) > 0 {
		if b.own == nil || b.own.lines == maxFileLines {
			name := fmt.Sprintf("%s/%s%010d.attempt-%d", b.folder, tfevents.Prefix, lines[0].Step, b.attempt)
			b.own = &ownFile{name: name}
		}
		f := b.own
		n, former := min(len(lines), maxFileLines-f.lines), len(f.content)
		if former == 0 {
			// The file is created before its lines are written, and each call of Grow looks for a later claim: either the next
			// attempt finds the file, or this attempt finds its claim.
			f.content = tfevents.Header(lines[0].Time)
			if err := b.files.Grow(f.name, f.content, 0); err != nil {
				return err
			}
			former = len(f.content)
		}
		for _, line := range lines[:n] {
			f.content = tfevents.Append(f.content, eventOf(line))
		}
		if err := b.files.Grow(f.name, f.content, former); err != nil {
			return err
		}
		f.lines, lines = f.lines+n, lines[n:]
	}
	return nil
}

// eventOf returns the event of a line: its metrics, in the precision of the format.
func eventOf(line Line) tfevents.Event {
	scalars := make(map[string]float32, len(line.Metrics))
	for name, value := range line.Metrics {
		if finite.Is(value) {
			scalars[name] = float32(value)
		}
	}
	return tfevents.Event{Step: line.Step, Time: line.Time, Scalars: scalars}
}
