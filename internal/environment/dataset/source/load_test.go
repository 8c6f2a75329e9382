// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/ref"
	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/environment"
	"github.com/tinker-operator/tinker-operator/internal/environment/dataset"
)

const rows = `{"question": "1 + 1?", "label": 2}
{"question": "2 + 2?", "label": 4}
{"question": "3 + 3?", "label": 6}
`

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// mounted returns a loader with files below its root.
func mounted(t *testing.T, files map[string]string) *Loader {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return New(Config{Root: root, Dir: t.TempDir(), Space: 1 << 30})
}

// own returns the definition of a ConfigMap with a key rows.jsonl, with changes.
func own(changes ...func(*contract.Dataset)) contract.Dataset {
	d := contract.Dataset{Dataset: settings.Dataset{
		JSONL:  &settings.JSONL{ConfigMapRef: &ref.ConfigMap{Name: "own"}},
		Fields: map[string]string{"prompt": "question", "answer": "label"},
		Splits: []settings.DataSplit{{Name: "test", Source: "rows.jsonl", Take: new(int64(1))},
			{Name: "train", Source: "rows.jsonl", Skip: 1}},
	}}
	for _, change := range changes {
		change(&d)
	}
	return d
}

func open(t *testing.T, l *Loader, definition contract.Dataset) dataset.Dataset {
	t.Helper()
	d, err := l.Open(t.Context(), definition)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestConfigMap(t *testing.T) {
	l := mounted(t, map[string]string{"configmap/own/rows.jsonl": rows})
	d := open(t, l, own())
	if l.Contents(own()) != nil {
		t.Error("something was read before it was needed")
	}
	splits, err := d.Splits(t.Context())
	if diff := cmp.Diff([]environment.Split{{Name: "test", Tasks: 1}, {Name: "train", Tasks: 2}}, splits); diff != "" ||
		err != nil {
		t.Fatalf("Splits (-want +got):\n%s, %v", diff, err)
	}
	row, err := d.Row(t.Context(), "train", 1)
	if err != nil || row.Prompt != "3 + 3?" || row.Answer != "6" {
		t.Errorf("Row = %+v, %v", row, err)
	}
	want := &contract.DataContents{Sources: []contract.DataSource{{Name: "rows.jsonl", SHA256: sha(rows), Rows: 3}}}
	if diff := cmp.Diff(want, l.Contents(own())); diff != "" {
		t.Errorf("Contents (-want +got):\n%s", diff)
	}
	left, err := os.ReadDir(l.config.Dir)
	if err != nil || len(left) != 0 {
		t.Errorf("the folder lists %v, %v: files should have no names", left, err)
	}
}

// TestChangedFile checks that pinned data is never read from another file, and that a restored file is read again.
func TestChangedFile(t *testing.T) {
	pinned := own(func(d *contract.Dataset) {
		d.Contents = &contract.DataContents{Sources: []contract.DataSource{{Name: "rows.jsonl", SHA256: sha(rows), Rows: 3}}}
	})
	l := mounted(t, map[string]string{"configmap/own/rows.jsonl": rows + `{"question": "new", "label": 1}`})
	d := open(t, l, pinned)
	_, err := d.Row(t.Context(), "train", 0)
	var fault *environment.Fault
	var wrong *Error
	if !errors.As(err, &fault) || !fault.Permanent || !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), "dataset.splits[0].source: rows.jsonl has sha256") || !strings.Contains(err.Error(),
		"restore it") {
		t.Fatalf("Row of a changed file = %v", err)
	}
	if err := os.WriteFile(filepath.Join(l.config.Root, "configmap/own/rows.jsonl"), []byte(rows), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Row(t.Context(), "train", 0); err != nil {
		t.Errorf("Row after the file was restored: %v", err)
	}
	if err := os.WriteFile(filepath.Join(l.config.Root, "configmap/own/rows.jsonl"), []byte("changed"),
		0o644); err != nil {
		t.Fatal(err)
	}
	if row, err := d.Row(t.Context(), "train", 0); err != nil || row.Prompt != "2 + 2?" {
		t.Errorf("a change after the data was read shows: %+v, %v", row, err)
	}
}

func TestBadFiles(t *testing.T) {
	files := map[string]string{"configmap/own/rows.jsonl": rows,
		"configmap/own/other.jsonl": "{\"question\": \"1\", \"label\": 1}\n\n{\"question\": \"q\"}\n",
		"configmap/own/words.jsonl": "words", "configmap/own/empty.jsonl": "\n", "configmap/own/bad.parquet": "no",
		"claim/c/a/rows.jsonl": rows, "claim/c/secret": "x"}
	source := func(name string) func(*contract.Dataset) {
		return func(d *contract.Dataset) { d.Splits = []settings.DataSplit{{Name: "train", Source: name}} }
	}
	claim := func(d *contract.Dataset) { d.JSONL = &settings.JSONL{ClaimName: "c"} }
	cases := map[string]struct {
		definition contract.Dataset
		want       string
	}{
		"a missing column in a row": {own(source("other.jsonl")),
			`dataset.fields.answer: row 3 of other.jsonl has no column "label"; its columns are question: correct the name, or the data`},
		"a name in the template": {own(func(d *contract.Dataset) { d.Prompt = "$(q)" }),
			`dataset.prompt: row 1 of rows.jsonl has no column "q"; its columns are answer, label, prompt, question: `},
		"no JSON": {own(source("words.jsonl")), "dataset: row 1 of words.jsonl cannot be read: the line is not a " +
			"JSON object"},
		"no rows":    {own(source("empty.jsonl")), "dataset: empty.jsonl has no rows"},
		"no Parquet": {own(source("bad.parquet")), "dataset: bad.parquet cannot be read: opening Parquet"},
		"nothing after skip": {own(func(d *contract.Dataset) { d.Splits[1].Skip = 3 }),
			"dataset.splits[1] (train): skip is 3, but there are only 3 rows, so that none is left: lower skip"},
		"another digest": {own(func(d *contract.Dataset) { d.Splits[1].SHA256 = sha("x") }),
			"dataset.splits[0].sha256: rows.jsonl has sha256 " + sha(rows) + ", not " + sha("x")},
		"a missing key": {own(source("none.jsonl")),
			`dataset.splits[0].source: ConfigMap "own" has no key "none.jsonl"; it has bad.parquet, empty.jsonl, `},
		"a missing ConfigMap": {own(func(d *contract.Dataset) { d.JSONL.ConfigMapRef.Name = "none" }),
			`dataset.jsonl.configMapRef: ConfigMap "none" does not exist, or is empty: create it in this namespace with key "rows.jsonl"`},
		"a missing file of a claim": {own(claim),
			`dataset.splits[0].source: the volume of claim "c" has no file "rows.jsonl"; its top folder has a, secret: add the file`},
		"a folder of a claim":   {own(claim, source("a")), "dataset.splits[0].source: a is not a file"},
		"a path out of a claim": {own(claim, source("../../configmap/own/rows.jsonl")), "dataset.splits[0].source: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := mounted(t, files)
			_, err := open(t, l, tc.definition).Splits(t.Context())
			var wrong *Error
			var fault *environment.Fault
			if !errors.As(err, &wrong) || !errors.As(err, &fault) || !fault.Permanent || !strings.HasPrefix(err.Error(),
				tc.want) {
				t.Errorf("Splits = %v, want %s", err, tc.want)
			}
			if l.used != 0 {
				t.Errorf("%d bytes are still in use", l.used)
			}
		})
	}
}

func TestClaim(t *testing.T) {
	l := mounted(t, map[string]string{"claim/c/a/rows.jsonl": rows})
	d := open(t, l, own(func(d *contract.Dataset) {
		d.JSONL, d.Splits = &settings.JSONL{ClaimName: "c"}, []settings.DataSplit{{Name: "train", Source: "a/rows.jsonl"}}
	}))
	if row, err := d.Row(t.Context(), "train", 0); err != nil || row.Prompt != "1 + 1?" {
		t.Errorf("Row = %+v, %v", row, err)
	}
}

func TestSpaceIsBounded(t *testing.T) {
	l := mounted(t, map[string]string{"configmap/own/rows.jsonl": rows})
	l.config.Space = 100
	_, err := open(t, l, own()).Splits(t.Context())
	var wrong *Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "of disk that a pod has for data") {
		t.Errorf("Splits = %v", err)
	}
}

func TestURL(t *testing.T) {
	requests := 0
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch requests++; {
		case r.URL.Path != "/folder/rows.jsonl":
			http.NotFound(w, r)
		case requests == 1:
			http.Error(w, "busy", http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, rows)
		}
	}))
	defer served.Close()
	permits := 0
	l := New(Config{Dir: t.TempDir(), Space: 1 << 30, Permit: func(context.Context) (func(), error) {
		permits++
		return func() { permits += 10 }, nil
	}})
	at := func(name string) contract.Dataset {
		return own(func(d *contract.Dataset) {
			d.JSONL, d.Splits = &settings.JSONL{URL: served.URL + "/folder"},
				[]settings.DataSplit{{Name: "train", Source: name, SHA256: sha(rows)}}
		})
	}
	d := open(t, l, at("rows.jsonl"))
	for range 2 {
		if row, err := d.Row(t.Context(), "train", 2); err != nil || row.Prompt != "3 + 3?" {
			t.Fatalf("Row = %+v, %v", row, err)
		}
	}
	if requests != 2 || permits != 11 {
		t.Errorf("%d requests, permits %d: the file should be fetched once, with a permit", requests, permits)
	}
	_, err := open(t, l, at("none.jsonl")).Splits(t.Context())
	var wrong *Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "none.jsonl answers 404 Not Found") {
		t.Errorf("Splits of a missing file = %v", err)
	}
}

func TestGeneratedTasks(t *testing.T) {
	l := New(Config{})
	d := open(t, l, contract.Dataset{Dataset: settings.Dataset{
		Countdown: &settings.CountdownData{MinNumbers: 2, MaxNumbers: 3, MaxNumber: 9, Tasks: 100},
		Prompt:    "$(nums) = $(target)",
		Splits:    []settings.DataSplit{{Name: "few", Source: "train", Take: new(int64(7))}},
	}})
	row, err := d.Row(t.Context(), "few", 6)
	if err != nil || row.Prompt == "" || strings.Contains(row.Prompt, "Using") {
		t.Errorf("Row = %+v, %v", row, err)
	}
	_, err = open(t, l, contract.Dataset{Dataset: settings.Dataset{Arithmetic: &settings.ArithmeticData{MaxOperand: 9},
		Prompt: "$(nums)"}}).Splits(t.Context())
	var wrong *Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), `dataset.prompt: the row has no column "nums"`) {
		t.Errorf("Splits of a template that names no column = %v", err)
	}
}

// TestCanceledLoad checks that the end of one caller's context is not a fault, and does not stop the next caller.
func TestCanceledLoad(t *testing.T) {
	d := open(t, mounted(t, map[string]string{"configmap/own/rows.jsonl": rows}), own())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.Splits(ctx)
	var fault *environment.Fault
	if !errors.Is(err, context.Canceled) || errors.As(err, &fault) {
		t.Errorf("Splits = %v, want the context's error", err)
	}
	if _, err := d.Splits(t.Context()); err != nil {
		t.Errorf("the next call: %v", err)
	}
}
