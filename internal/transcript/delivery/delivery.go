// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery is the format in which a pod prints the transcript of a step, so that a reader of the pod's log
// gets either the whole transcript or an error.
package delivery

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Delivery has the artifacts of a run that a pod was asked for and has found.
type Delivery struct {
	// Steps are the steps that have a transcript, in order.
	Steps []int64 `json:"steps"`
	// Transcript is the transcript of the requested step, as JSON; it is empty for a list of steps.
	Transcript json.RawMessage `json:"transcript,omitempty"`
	// Metrics and Evaluations are lines of metrics.jsonl and evaluations.jsonl, if these were asked for.
	Metrics     []json.RawMessage `json:"metrics,omitempty"`
	Evaluations []json.RawMessage `json:"evaluations,omitempty"`
	// Files lists the files of the run, if these were asked for.
	Files []File `json:"files,omitempty"`
	// Part is a part of a file. The parts of a file follow one another, each in a delivery of its own.
	Part *Part `json:"part,omitempty"`
	// More says that another delivery follows.
	More bool `json:"more,omitempty"`
	// Problem says why there is no transcript.
	Problem string `json:"problem,omitempty"`
}

// File is a file of a run. Its name is its path below the folder of the run, with slashes.
type File struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// Part is a part of a file, from Offset on. The file is complete after the part that ends at its size.
type Part struct {
	File

	Offset int64  `json:"offset"`
	Data   []byte `json:"data,omitempty"`
}

// Range is a range of files: the names of the first and the last.
type Range [2]string

// FormatRanges returns ranges as an argument of a container, in which Kubernetes finds nothing to expand.
func FormatRanges(ranges []Range) string {
	data, err := json.Marshal(ranges)
	if err != nil {
		panic(err) // Texts can always be encoded.
	}
	return base64.StdEncoding.EncodeToString(data)
}

// ParseRanges reads the text that FormatRanges returns.
func ParseRanges(text string) (ranges []Range, err error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &ranges)
	}
	return ranges, err
}

// The first line of a delivery is the header, with the number of encoded bytes that follow, and their digest.
const (
	header = "tinker-operator-transcript %d %x"
	// lineBytes bounds a line: container runtimes split long ones.
	lineBytes = 8 << 10
	// maxBytes bounds the size of an unpacked delivery.
	maxBytes = 128 << 20
)

// ErrMissing reports that a log has no delivery.
var ErrMissing = errors.New("the log has no transcript")

// Write writes a delivery.
func Write(w io.Writer, d Delivery) error {
	var packed bytes.Buffer
	compressor := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(compressor).Encode(d), compressor.Close()); err != nil {
		return fmt.Errorf("encoding a transcript: %w", err)
	}
	text := base64.StdEncoding.EncodeToString(packed.Bytes())
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, header+"\n", len(text), sha256.Sum256([]byte(text)))
	for len(text) > 0 {
		line := text[:min(len(text), lineBytes)]
		text = text[len(line):]
		fmt.Fprintln(out, line)
	}
	return out.Flush()
}

// Read reads a delivery from a log, which may have other lines before it.
func Read(r io.Reader) (Delivery, error) { return NewReader(r).Next() }

// Reader reads one delivery of a log after another.
type Reader struct{ lines *bufio.Reader }

// NewReader returns a reader of a log.
func NewReader(r io.Reader) *Reader { return &Reader{bufio.NewReader(r)} }

// Next reads the next delivery.
func (r *Reader) Next() (Delivery, error) {
	lines := r.lines
	var size int
	var digest []byte
	for {
		line, err := lines.ReadString('\n')
		if n, _ := fmt.Sscanf(line, header, &size, &digest); n == 2 {
			break
		}
		if err != nil {
			return Delivery{}, errors.Join(ErrMissing, ignoreEnd(err))
		}
	}
	if size < 0 || size > maxBytes {
		return Delivery{}, fmt.Errorf("reading a transcript: its size of %d bytes is invalid", size)
	}
	var text strings.Builder
	for text.Len() < size {
		line, err := lines.ReadString('\n')
		text.WriteString(strings.TrimRight(line, "\r\n"))
		if err != nil && text.Len() < size {
			return Delivery{}, fmt.Errorf("reading a transcript: the log ends after %d of %d bytes: %w", text.Len(), size, err)
		}
	}
	if sum := sha256.Sum256([]byte(text.String())); !bytes.Equal(sum[:], digest) {
		return Delivery{}, errors.New("reading a transcript: the log is damaged: try again")
	}
	return unpack(text.String())
}

func unpack(text string) (Delivery, error) {
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		return Delivery{}, fmt.Errorf("unpacking a transcript: %w", err)
	}
	var d Delivery
	if err := json.NewDecoder(io.LimitReader(packed, maxBytes)).Decode(&d); err != nil {
		return Delivery{}, fmt.Errorf("unpacking a transcript: %w", err)
	}
	return d, nil
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
