// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
)

// lineFile is a file that grows by whole lines and is read from its end.
//
// The file that this process continued last is kept open. A later attempt that continues the file first replaces it
// with a copy, so that a learner that was stopped and resumes adds nothing to the copy.
type lineFile struct {
	files *folder
	name  string
	file  *os.File
	// size is the end of the last whole line. The bytes after it are the rest of a line that could not be written.
	size int64
	// torn says that bytes may follow the last whole line, and lacks that a line could not be written.
	torn, lacks bool
	upload      chunks
}

// isOpen reports whether this process has continued the file, and no later attempt has done so since.
func (l *lineFile) isOpen() bool {
	if l.file == nil {
		return false
	}
	ours, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(l.files.path(l.name))
	return err == nil && os.SameFile(ours, there)
}

// add appends lines durably. It does nothing if the file is not open: the attempt that continued the file has the rows
// of the lines.
func (l *lineFile) add(lines []byte) error {
	if len(lines) == 0 || !l.isOpen() {
		return nil
	}
	if err := l.write(lines); err != nil {
		l.torn, l.lacks = true, true
		return fmt.Errorf("adding to %s: %w", l.name, err)
	}
	l.size += int64(len(lines))
	return nil
}

func (l *lineFile) write(lines []byte) error {
	if l.torn {
		if err := l.file.Truncate(l.size); err != nil {
			return err
		}
		l.torn = false
	}
	if _, err := l.file.WriteAt(lines, l.size); err != nil {
		return err
	}
	return l.file.Sync()
}

// proceed makes the file consist of its first kept bytes, followed by lines. It copies the file unless this process has
// it open and the file has no more than these bytes.
func (l *lineFile) proceed(kept int64, lines []byte) error {
	if l.isOpen() && kept == l.size {
		err := l.add(lines)
		l.lacks = err != nil
		return err
	}
	former, err := os.Open(l.files.path(l.name))
	if err != nil && (kept > 0 || !errors.Is(err, fs.ErrNotExist)) {
		return fmt.Errorf("reading %s: %w", l.name, err)
	}
	content := []io.Reader{bytes.NewReader(lines)}
	if former != nil {
		content = slices.Insert(content, 0, io.LimitReader(former, kept))
		defer func() { _ = former.Close() }()
	}
	file, err := atomicfile.ReplaceDurableBy(l.files.path(l.name), fileMode, io.MultiReader(content...))
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	*l = lineFile{files: l.files, name: l.name, file: file, size: kept + int64(len(lines)), upload: l.upload}
	return l.upload.keep(l, kept)
}

// backward reads lines from the end of a file. A file that cannot be read has no lines.
type backward struct {
	file *os.File
	// bytes were read from the place start on, and their lines were not returned yet. The next line is the last line in
	// them.
	start int64
	bytes []byte
}

const backwardBlock = 256 << 10

// backwardLines returns the lines of a file, the last one first.
func (f *folder) backwardLines(name string) *backward {
	b := &backward{}
	file, err := os.Open(f.path(name))
	if err != nil {
		return b
	}
	if info, err := file.Stat(); err == nil {
		b.file, b.start = file, info.Size()
	}
	return b
}

func (b *backward) close() {
	if b.file != nil {
		_ = b.file.Close()
	}
}

// next returns a line without its newline, and the end of the line including its newline. If the file does not end with
// a newline, its last line was cut, and is returned as not whole.
func (b *backward) next() (line []byte, end int64, whole, ok bool) {
	for {
		end = b.start + int64(len(b.bytes))
		text, isWhole := bytes.CutSuffix(b.bytes, []byte("\n"))
		if at := bytes.LastIndexByte(text, '\n'); at >= 0 || b.start == 0 {
			line = text[at+1:]
			if b.bytes = text[:at+1]; len(line) == 0 && !isWhole && len(b.bytes) == 0 {
				return nil, 0, false, false
			}
			return line, end, isWhole, true
		}
		if !b.fill() {
			return nil, 0, false, false
		}
	}
}

// fill reads the block before the bytes that were read.
func (b *backward) fill() bool {
	if b.file == nil {
		return false
	}
	block := make([]byte, min(b.start, backwardBlock))
	if _, err := b.file.ReadAt(block, b.start-int64(len(block))); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	b.start -= int64(len(block))
	b.bytes = append(block, b.bytes...)
	return true
}
