// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
)

// collector collects the objects that it is given.
type collector []string

func (c *collector) add(object []byte) error {
	*c = append(*c, string(object))
	return nil
}

func TestReadJSONL(t *testing.T) {
	const text = "\ufeff{\"a\": 1}\r\n\n  {\"b\": \"\u00e9\"}  \n{\"c\": 9007199254740993}"
	want := collector{`{"a": 1}`, `{"b": "é"}`, `{"c": 9007199254740993}`}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write([]byte(text))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"rows.jsonl": text, "rows.JSONL.GZ": zipped.String(),
		"rows.jsonl.zst": string(encoder.EncodeAll([]byte(text), nil))} {
		var got collector
		if err := ReadJSONL(name, strings.NewReader(file), got.add); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestReadJSONLErrors(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"no JSON": {"{\"a\": 1}\n\nwords",
			"row 3: the line is not a JSON object (invalid character 'w' looking for beginning of value): write each object " +
				"on one line"},
		"an array": {`[{"a": 1}]`, "row 1: the line is a JSON array"},
		"a number": {"7", "row 1: the line is not a JSON object"},
		"several lines": {"{\n\"a\": 1}", "row 1: the line is not a JSON object (unexpected end of JSON input): write " +
			"each object on one line"},
		"no UTF-8":         {"{\"a\": \"\xff\"}", "row 1: the line is not valid UTF-8"},
		"a very long line": {"{}\n" + strings.Repeat(" ", maxLine+1), "row 2: the line has over 16 MiB"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := ReadJSONL("rows.jsonl", strings.NewReader(tc.text), func([]byte) error { return nil })
			var row *RowError
			if !errors.As(err, &row) || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("ReadJSONL = %v, want %s", err, tc.want)
			}
		})
	}
	refused := errors.New("refused")
	err := ReadJSONL("rows.jsonl", strings.NewReader("{}\n{}"), func([]byte) error { return refused })
	if !errors.Is(err, refused) || err.Error() != "row 1: refused" {
		t.Errorf("ReadJSONL = %v, want the error of the callback", err)
	}
	var wrong *FormatError
	if err := ReadJSONL("rows.jsonl.gz", strings.NewReader("{}"), nil); !errors.As(err, &wrong) {
		t.Errorf("a file that is not compressed: %v", err)
	}
}

// TestReadParquet reads files that testdata/write.py has written with pyarrow.
func TestReadParquet(t *testing.T) {
	cases := map[string]collector{
		"testdata/types.parquet": {
			`{"bin":null,"d":"2024-01-02","dec":"12.34","extra":{"a":1,"b":[{"c":"x"},{"c":null}]},"f":0.1,"f32":0.1,"i8":-3,"large":"l1",` +
				`"messages":[{"content":"hi","role":"user"}],"none":null,"nums":[44,19,35],"ok":true,"q":"what?","target":98,` +
				`"u64":9223372036854775809,"w":1.5,"when":"2024-01-02T03:04:05"}`,
			`{"bin":"","d":null,"dec":"-0.05","extra":{"a":null,"b":[]},"f":2.5,"f32":2.5,"i8":4,"large":"l2","messages":[],"none":null,` +
				`"nums":[],"ok":false,"q":"é","target":null,"u64":1,"w":-2,"when":null}`,
		},
		"testdata/types2.parquet": {
			`{"d256":"12","dict":"a","f16":null,"img":{"bytes":null,"path":"x"},"ll":[[1],[2,3]],"m":null,"mi":null,"n":null,"nan":null,` +
				`"t":"00:00:00.001","ts":["2024-01-02T03:04:05.123"],"tz":"2024-01-02T03:04:05.123456789Z"}`,
			`{"d256":"34","dict":"b","f16":null,"img":null,"ll":[],"m":null,"mi":null,"n":null,"nan":1,"t":null,"ts":["1970-01-01T00:00:00"],"tz":"1970-01-01T00:00:00Z"}`,
		},
	}
	for name, want := range cases {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var got collector
		if err := ReadParquet(bytes.NewReader(data), int64(len(data)), got.add); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		refused := errors.New("refused")
		if err := ReadParquet(bytes.NewReader(data), int64(len(data)), func([]byte) error { return refused }); !errors.Is(err,
			refused) || err.Error() != "row 1: refused" {
			t.Errorf("%s: ReadParquet = %v, want the error of the callback", name, err)
		}
	}
}

func TestReadParquetOfDamagedFiles(t *testing.T) {
	whole, err := os.ReadFile("testdata/types.parquet")
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	for i := 4; i < 600; i++ {
		damaged[i] ^= 0x5a
	}
	for name, data := range map[string][]byte{"text": []byte("not Parquet"), "half": whole[:len(whole)/2], "nothing": nil,
		"damaged pages": damaged} {
		err := ReadParquet(bytes.NewReader(data), int64(len(data)), func([]byte) error { return nil })
		var wrong *FormatError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: ReadParquet = %v, want a *FormatError", name, err)
		}
	}
}

func TestFormatOf(t *testing.T) {
	for name, want := range map[string]Format{
		"a.jsonl": JSONL, "a/b.json.gz": JSONL, "a.NDJSON": JSONL, "a.jsonl.zst": JSONL,
		"data/train-00000-of-00001.parquet": Parquet,
		"a.csv":                             Unknown, "README.md": Unknown, "jsonl": Unknown,
	} {
		if got := FormatOf(name); got != want {
			t.Errorf("FormatOf(%s) = %v, want %v", name, got, want)
		}
	}
}

// TestReadParquetOfSpark reads a time as Spark writes it by default, in 96 bits.
func TestReadParquetOfSpark(t *testing.T) {
	type row struct {
		At deprecated.Int96 `parquet:"at"`
	}
	var file bytes.Buffer
	// In such files, day 2460001 is 25 February 2023.
	nanos := uint64(11*time.Hour + 30*time.Minute + 1500*time.Millisecond)
	if err := parquet.Write(&file, []row{{deprecated.Int96{uint32(nanos), uint32(nanos >> 32), 2460001}}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := ReadParquet(bytes.NewReader(file.Bytes()), int64(file.Len()), func(object []byte) error {
		got = append(got, string(object))
		return nil
	})
	if want := []string{`{"at":"2023-02-25T11:30:01.5"}`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("ReadParquet() = %q (%v), want %q", got, err, want)
	}
}
