// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tinker-operator/tinker-operator/internal/finite"
)

// rowsAtOnce is how many rows of Parquet are decoded at once.
const rowsAtOnce = 64

// ReadParquet calls each with every row as a JSON object, which each must not keep. Dates and times are texts in ISO
// 8601. Values without a form in JSON are null: bytes that are not text, numbers that are not finite, and maps. An
// error of each is returned as a *RowError. A file that is not Parquet is a *FormatError, and so is a damaged file
// for which the library panics.
func ReadParquet(file io.ReaderAt, size int64, each func(object []byte) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &FormatError{Err: fmt.Errorf("reading Parquet: the file is damaged: %v", value)}
		}
	}()
	return readParquet(file, size, each)
}

func readParquet(file io.ReaderAt, size int64, each func(object []byte) error) error {
	opened, err := parquet.OpenFile(file, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
		parquet.ReadBufferSize(64<<10))
	if err != nil {
		return &FormatError{Err: fmt.Errorf("opening Parquet: %w", err)}
	}
	reader := parquet.NewGenericReader[any](opened)
	// The caller closes the file, and the reader has nothing else to close.
	defer func() { _ = reader.Close() }()
	convert := converterOf(opened.Schema())
	rows := make([]any, rowsAtOnce)
	for number := int64(0); ; {
		n, err := reader.Read(rows)
		for _, row := range rows[:n] {
			number++
			object, failed := json.Marshal(convert(row))
			if failed == nil {
				failed = each(object)
			}
			if failed != nil {
				return &RowError{Row: number, Err: failed}
			}
		}
		clear(rows)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &FormatError{Err: fmt.Errorf("reading Parquet after row %d: %w", number, err)}
		}
	}
}

// converter turns a value into one that JSON can express.
type converter func(value any) any

// converterOf returns the converter of a node's values, the node's own repetition included.
func converterOf(node parquet.Node) converter {
	convert := converterOfOne(node)
	if !node.Repeated() {
		return convert
	}
	return listOf(convert)
}

func listOf(convert converter) converter {
	return func(value any) any {
		list, ok := value.([]any)
		if !ok {
			return nil
		}
		for i, element := range list {
			list[i] = convert(element)
		}
		return list
	}
}

func converterOfOne(node parquet.Node) converter {
	if node.Leaf() {
		return leafConverter(logicalOf(node))
	}
	switch logicalOf(node).(type) {
	case *format.MapType:
		return func(any) any { return nil }
	case *format.ListType:
		if element := elementOf(node); element != nil {
			return listOf(converterOfOne(element))
		}
	}
	fields := map[string]converter{}
	for _, field := range node.Fields() {
		fields[field.Name()] = converterOf(field)
	}
	return func(value any) any {
		group, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		for name, convert := range fields {
			group[name] = convert(group[name])
		}
		return group
	}
}

// elementOf returns the node of a list's elements; nil if the list is written in another way than the format says.
func elementOf(list parquet.Node) parquet.Node {
	if inner := list.Fields(); len(inner) == 1 && inner[0].Repeated() && !inner[0].Leaf() {
		if element := inner[0].Fields(); len(element) == 1 {
			return element[0]
		}
	}
	return nil
}

// logicalOf returns a node's logical type; nil if it has none.
func logicalOf(node parquet.Node) format.LogicalTypeValue {
	if t := node.Type(); t != nil && t.LogicalType() != nil {
		return t.LogicalType().Value
	}
	return nil
}

func leafConverter(logical format.LogicalTypeValue) converter {
	switch t := logical.(type) {
	case *format.DateType:
		return ofInteger(func(days int64) any { return time.Unix(days*24*60*60, 0).UTC().Format(time.DateOnly) })
	case *format.TimestampType:
		layout := zoneless
		if t.IsAdjustedToUTC {
			layout = time.RFC3339Nano
		}
		unit := int64(t.Unit.Value.Duration())
		perSecond := int64(time.Second) / unit
		return ofInteger(func(n int64) any { return time.Unix(n/perSecond, n%perSecond*unit).UTC().Format(layout) })
	case *format.TimeType:
		unit := int64(t.Unit.Value.Duration())
		return ofInteger(func(n int64) any { return time.Unix(0, n*unit).UTC().Format("15:04:05.999999999") })
	case *format.IntType:
		if !t.IsSigned {
			return unsigned
		}
	}
	return plain
}

// ofInteger applies a function to an integer. Anything else is null.
func ofInteger(convert func(int64) any) converter {
	return func(value any) any {
		switch n := value.(type) {
		case int32:
			return convert(int64(n))
		case int64:
			return convert(n)
		default:
			return nil
		}
	}
}

func unsigned(value any) any {
	switch n := value.(type) {
	case int32:
		return uint32(n)
	case int64:
		return uint64(n)
	default:
		return plain(value)
	}
}

// plain keeps a value that JSON can express, and turns others into null.
func plain(value any) any {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return nil
		}
	case float64:
		if !finite.Is(v) {
			return nil
		}
	case float32:
		if !finite.Is(float64(v)) {
			return nil
		}
	case []byte:
		return nil
	case deprecated.Int96:
		return timeOf(v).Format(zoneless)
	}
	return value
}

// zoneless is the layout of times that are not declared as UTC.
const zoneless = "2006-01-02T15:04:05.999999999"

// timeOf reads a time as Spark and Impala write it: the nanoseconds of a day, and the number of that day in the Julian
// calendar.
func timeOf(v deprecated.Int96) time.Time {
	const epoch, day = 2440588, 24 * 60 * 60
	return time.Unix((int64(v[2])-epoch)*day, int64(uint64(v[1])<<32|uint64(v[0]))).UTC()
}
