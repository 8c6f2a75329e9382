// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

func TestReadObjectRefusesWhatOthersReadDifferently(t *testing.T) {
	for name, text := range map[string]string{
		"a name twice":                     `{"model_id":"a","model_id":"b"}`,
		"a name twice, escaped":            `{"model_id":"a","model\u005fid":"b"}`,
		"capitals":                         `{"MODEL_ID":"a","model_id":"b"}`,
		"a letter that folds":              "{\"\u017fession_id\":\"a\"}",
		"something after":                  `{"model_id":"a"} {"model_id":"b"}`,
		"a list":                           `[{"model_id":"a"}]`,
		"no end":                           `{"model_id":"a"`,
		"a text":                           `"model_id"`,
		"a comma before the end":           `{"model_id":"a",}`,
		"no comma between fields":          `{"model_id":"a" "seq_id":1}`,
		"a zero before a number":           `{"tokens":[1,02,3]}`,
		"a comma before the end of a list": `{"tokens":[1,2,]}`,
		"two commas":                       `{"tokens":[1,,2]}`,
		"a list without its end":           `{"tokens":[1,2`,
	} {
		if got, err := readObject([]byte(text)); err == nil {
			t.Errorf("%s: %s is read as %v, want an error", name, text, got.names)
		}
	}
}

func TestBodiesKeepTheirValues(t *testing.T) {
	const text = `{"seq_id":9007199254740993,"prompt":{"chunks":[{"Tokens":[1,2.50]}]},"user_metadata":null}`
	read, err := readObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := read.encode()
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != text {
		t.Errorf("body = %s, want %s", got, text)
	}
	if err := read.set("user_metadata", map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	read.remove("prompt")
	if got, err = read.encode(); err != nil || string(got) != `{"seq_id":9007199254740993,"user_metadata":{"a":"b"}}` {
		t.Errorf("body = %s, %v", got, err)
	}
}

// dataOf encodes a request of one datum for a model.
func dataOf(t *testing.T, id string) []byte {
	t.Helper()
	encoded, err := tinker.EncodeForwardBackward(tinker.ForwardBackwardRequest{ModelID: id, SeqID: 3,
		Loss: tinker.Loss{Name: "cross_entropy", Config: map[string]float64{"x": 1}},
		Data: []tinker.Datum{{ModelInput: tinker.Text([]int32{1, 2, 3}), LossFnInputs: map[string]tinker.Tensor{}}}})
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func compressed(t *testing.T, data []byte) []byte {
	t.Helper()
	out, err := tinker.Compress(data)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReadModelID(t *testing.T) {
	mine, other := dataOf(t, "mine"), dataOf(t, "other")
	for name, row := range map[string]struct {
		encoding string
		data     []byte
		want     string
	}{
		"plain":                    {"", mine, "mine"},
		"compressed":               {"zstd", compressed(t, mine), "mine"},
		"one model in two frames":  {"zstd", slices.Concat(compressed(t, mine), compressed(t, mine)), "mine"},
		"no model":                 {"", dataOf(t, ""), ""},
		"two models":               {"", slices.Concat(other, mine), "error"},
		"two models in two frames": {"zstd", slices.Concat(compressed(t, other), compressed(t, mine)), "error"},
		"cut within a field":       {"", mine[:len(mine)-1], "error"},
		"compressed and cut":       {"zstd", compressed(t, mine)[:20], "error"},
		"a model that is a number": {"", []byte{1 << 3, 7}, "error"},
		"a group":                  {"", []byte{2<<3 | 3, 1<<3 | 2, 1, 'a', 2<<3 | 4}, "error"},
		"an unknown encoding":      {"gzip", mine, "error"},
		"a long id":                {"", dataOf(t, strings.Repeat("a", maxID+1)), "error"},
	} {
		got, err := readModelID(row.encoding, bytes.NewReader(row.data), io.Discard)
		if err != nil {
			got = "error"
		}
		if got != row.want {
			t.Errorf("%s: model = %q (%v), want %q", name, got, err, row.want)
		}
	}
}

func FuzzReadModelID(f *testing.F) {
	f.Add([]byte{1<<3 | 2, 1, 'a'})
	f.Fuzz(func(t *testing.T, data []byte) {
		id, err := readModelID("", bytes.NewReader(data), io.Discard)
		if err != nil {
			return
		}
		// In a body that the broker accepts, every reader of protobuf finds the model that the broker found.
		if request, err := tinker.DecodeForwardBackward(data); err == nil && request.ModelID != id {
			t.Errorf("model = %q, want %q of %s", id, request.ModelID, bytes.ToUpper(data))
		}
	})
}

func FuzzReadObject(f *testing.F) {
	for _, text := range []string{`{"a":[1,-0.5e+7,"\u00e9\n",true,false,null,{"b":{}}],"c":""}`, `{ } `, `{"a":01}`, `{"a":1.}`,
		`{"a":-}`, `{"a":1e}`, `{"a":tru}`, `{"a":[1,]}`, `{"a":"` + "\x01" + `"}`, `{"a":"\x"}`, `{"a":1,"a":2}`, `{"a":1}x`,
		`{"a":[1,20, 3,-4,5.5,6],"b":7}`, `{"a":[1,02,3]}`, `{"a":[1,2,]}`, `{"a":[1,,2]}`, `{"a":[1, 2, ]}`, `{"a":[1,2`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		got, err := readObject(data)
		var want map[string]json.RawMessage
		valid := json.Unmarshal(data, &want) == nil && want != nil
		if err == nil && !valid {
			t.Fatalf("%q is read as %v, and is not valid", data, got.values)
		}
		slow, slowErr := scanObject(iotest.OneByteReader(bytes.NewReader(data)), len(data))
		if (err == nil) != (slowErr == nil) || !cmp.Equal(got.names, slow.names) || !cmp.Equal(got.values, slow.values) {
			t.Errorf("%q is read as %v (%v), and byte by byte as %v (%v)", data, got.values, err, slow.values, slowErr)
		}
		if err != nil {
			return
		}
		if len(want) != len(got.names) {
			t.Errorf("%q has the names %v, want the names of %v", data, got.names, want)
		}
		for name, value := range got.values {
			if !bytes.Equal(bytes.TrimSpace(want[name]), value) {
				t.Errorf("%q: %s = %q, want %q", data, name, value, want[name])
			}
		}
	})
}

func TestReadObjectTakesWhatIsValid(t *testing.T) {
	for _, text := range []string{`{}`, " {\n}\t", `{"a":0}`, `{"a":-0.50e-7}`, `{"a":1E+2}`, `{"a":"\"\\\/\b\f\n\r\t\ud83d\ude00"}`,
		`{"a":[],"b":{},"c":[[[]]],"d":{"E":[{}]}}`, `{"a" : [ 1 , 2 ] , "b" : null }`, `{"a":true,"b":false}`} {
		if _, err := readObject([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLargeValuesAreNotKept(t *testing.T) {
	text := `{"model_id":"m","prompt":"` + strings.Repeat("a", 100) + `","seq_id":5}`
	got, err := scanObject(strings.NewReader(text), 20)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.values["prompt"]) != "{}" || string(got.values["model_id"]) != `"m"` || string(got.values["seq_id"]) != "5" {
		t.Errorf("values = %s", got.values)
	}
}
