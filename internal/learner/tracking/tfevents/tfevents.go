// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Package tfevents writes and reads the event files of TensorBoard. A file has records of the format TFRecord, and each
// record is an encoded tensorflow.Event. The package supports events with the version of the file and with scalars.
package tfevents

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Prefix begins the name of each event file, by which TensorBoard finds them.
const Prefix = "events.out.tfevents."

// version is the version in the first record of a file.
const version = "brain.Event:2"

// The numbers of fields of tensorflow.Event, tensorflow.Summary and tensorflow.Summary.Value.
const (
	eventWallTime    = 1
	eventStep        = 2
	eventFileVersion = 3
	eventSummary     = 5
	summaryValue     = 1
	valueTag         = 1
	valueSimple      = 2
)

// Event has the scalars of a step.
type Event struct {
	Step    int64
	Time    time.Time
	Scalars map[string]float32
}

// Header returns the beginning of a file.
func Header(at time.Time) []byte {
	event := appendTime(nil, at)
	event = protowire.AppendTag(event, eventFileVersion, protowire.BytesType)
	return appendRecord(nil, protowire.AppendString(event, version))
}

// Append adds an event to a file. The same event always has the same bytes.
func Append(file []byte, e Event) []byte {
	var summary []byte
	for _, tag := range slices.Sorted(maps.Keys(e.Scalars)) {
		var value []byte
		value = protowire.AppendTag(value, valueTag, protowire.BytesType)
		value = protowire.AppendString(value, tag)
		value = protowire.AppendTag(value, valueSimple, protowire.Fixed32Type)
		value = protowire.AppendFixed32(value, math.Float32bits(e.Scalars[tag]))
		summary = protowire.AppendTag(summary, summaryValue, protowire.BytesType)
		summary = protowire.AppendBytes(summary, value)
	}
	event := appendTime(nil, e.Time)
	if e.Step != 0 {
		event = protowire.AppendTag(event, eventStep, protowire.VarintType)
		event = protowire.AppendVarint(event, uint64(e.Step))
	}
	event = protowire.AppendTag(event, eventSummary, protowire.BytesType)
	return appendRecord(file, protowire.AppendBytes(event, summary))
}

func appendTime(event []byte, at time.Time) []byte {
	event = protowire.AppendTag(event, eventWallTime, protowire.Fixed64Type)
	return protowire.AppendFixed64(event, math.Float64bits(float64(at.UnixMicro())/1e6))
}

// The sizes of the fields around the data of a record: its length with a checksum, and a checksum of the data.
const (
	lengthBytes   = 8
	checksumBytes = 4
	frameBytes    = lengthBytes + 2*checksumBytes
)

func appendRecord(file, data []byte) []byte {
	start := len(file)
	file = binary.LittleEndian.AppendUint64(file, uint64(len(data)))
	file = binary.LittleEndian.AppendUint32(file, checksum(file[start:]))
	file = append(file, data...)
	return binary.LittleEndian.AppendUint32(file, checksum(data))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the masked checksum of TFRecord.
func checksum(data []byte) uint32 {
	crc := crc32.Checksum(data, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// Record is an event of a file, with the place of its first byte and the place after its last byte.
type Record struct {
	Event
	Start, End int
}

// Decode returns the events of a file, except for the version, up to the first record that is cut off, damaged or not
// an event; valid is the number of bytes before that record.
func Decode(file []byte) (records []Record, valid int) {
	for {
		data, ok := nextRecord(file[valid:])
		if !ok {
			return records, valid
		}
		e, ok := decodeEvent(data)
		if !ok {
			return records, valid
		}
		end := valid + len(data) + frameBytes
		if e.Scalars != nil {
			records = append(records, Record{e, valid, end})
		}
		valid = end
	}
}

// nextRecord returns the data of the first record, and whether it is whole.
func nextRecord(file []byte) ([]byte, bool) {
	if len(file) < frameBytes || binary.LittleEndian.Uint32(file[lengthBytes:]) != checksum(file[:lengthBytes]) {
		return nil, false
	}
	length := binary.LittleEndian.Uint64(file)
	if length > uint64(len(file)-frameBytes) {
		return nil, false
	}
	rest := file[lengthBytes+checksumBytes:]
	data := rest[:length]
	return data, binary.LittleEndian.Uint32(rest[length:]) == checksum(data)
}

// decodeEvent returns an event; its scalars are nil if it has no summary.
func decodeEvent(data []byte) (Event, bool) {
	var e Event
	valid := eachField(data, func(number protowire.Number, f field) bool {
		switch number {
		case eventWallTime:
			e.Time = time.UnixMicro(int64(math.Float64frombits(f.number) * 1e6))
		case eventStep:
			e.Step = int64(f.number)
		case eventSummary:
			e.Scalars = map[string]float32{}
			return decodeSummary(f.bytes, e.Scalars)
		}
		return true
	})
	return e, valid
}

func decodeSummary(data []byte, scalars map[string]float32) bool {
	return eachField(data, func(number protowire.Number, f field) bool {
		if number != summaryValue {
			return true
		}
		tag, value, known := "", float32(0), false
		valid := eachField(f.bytes, func(number protowire.Number, f field) bool {
			switch number {
			case valueTag:
				tag = string(f.bytes)
			case valueSimple:
				value, known = math.Float32frombits(uint32(f.number)), true
			}
			return true
		})
		if known {
			scalars[tag] = value
		}
		return valid
	})
}

// field is the value of a field: a number, or bytes.
type field struct {
	number uint64
	bytes  []byte
}

// eachField calls do for each field of a message until do returns false, and reports whether the message is valid.
func eachField(data []byte, do func(protowire.Number, field) bool) bool {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return false
		}
		data = data[n:]
		var f field
		switch kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(data)
			f.number = uint64(v)
		case protowire.Fixed64Type:
			f.number, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 || !do(number, f) {
			return false
		}
		data = data[n:]
	}
	return true
}
