// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDeliveryIsReadFromALog(t *testing.T) {
	noise := make([]byte, 40<<10)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte('a' + random.IntN(26))
	}
	for name, d := range map[string]Delivery{
		"list":       {Steps: []int64{1, 2, 7}},
		"problem":    {Problem: "the claim is empty"},
		"transcript": {Steps: []int64{1}, Transcript: json.RawMessage(fmt.Sprintf(`{"text":%q}`, noise))},
	} {
		var log bytes.Buffer
		log.WriteString("{\"level\":\"INFO\"}\n")
		if err := Write(&log, d); err != nil {
			t.Fatal(err)
		}
		got, err := Read(bytes.NewReader(log.Bytes()))
		if diff := cmp.Diff(d, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		whole := log.String()
		if _, err := Read(strings.NewReader(strings.TrimSuffix(whole, "\n"))); err != nil {
			t.Errorf("%s: a log without its last line break: %v", name, err)
		}
		if _, err := Read(strings.NewReader(whole[:len(whole)-3])); err == nil {
			t.Errorf("%s: a log that is cut is read", name)
		}
		at := len(whole) - 10
		damaged := whole[:at] + string(whole[at]^1) + whole[at+1:]
		if _, err := Read(strings.NewReader(damaged)); err == nil {
			t.Errorf("%s: a damaged log is read", name)
		}
	}
	if _, err := Read(strings.NewReader("flag provided but not defined: -dir\n")); !errors.Is(err, ErrMissing) {
		t.Errorf("a log without a delivery: %v", err)
	}
}

func TestReaderReadsOneDeliveryAfterAnother(t *testing.T) {
	var log bytes.Buffer
	want := []Delivery{
		{More: true, Part: &Part{File: File{Name: "a", Size: 5}, Data: []byte("abc")}},
		{Part: &Part{File: File{Name: "a", Size: 5}, Offset: 3, Data: []byte("de")}},
	}
	for _, d := range want {
		log.WriteString("{\"level\":\"INFO\"}\n")
		if err := Write(&log, d); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(&log)
	for _, d := range want {
		got, err := r.Next()
		if diff := cmp.Diff(d, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if _, err := r.Next(); !errors.Is(err, ErrMissing) {
		t.Errorf("the end of the log: %v", err)
	}
}
