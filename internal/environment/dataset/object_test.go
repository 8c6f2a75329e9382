// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

// storedRows are rows as they were read.
type storedRows []string

func (r storedRows) Count() int64 { return int64(len(r)) }

func (r storedRows) Columns(_ context.Context, index int64) (columns map[string]any, err error) {
	return columns, json.Unmarshal([]byte(r[index]), &columns)
}

func (r storedRows) Object(_ context.Context, index int64) ([]byte, error) {
	return []byte(r[index]), nil
}

// columnsOnly are rows that have columns alone.
type columnsOnly struct{ Rows }

func TestObject(t *testing.T) {
	const row = `{"tools": [{"z": 1, "a": 2}], "q": "2+2?", "a": "4", "empty": null}`
	for name, tc := range map[string]struct {
		rows       Rows
		fields     map[string]string
		want, fail string
	}{
		"a row as it was read":           {rows: storedRows{row}, want: row},
		"a row of columns":               {rows: columnsOnly{storedRows{`{"b": 1, "a": "x"}`}}, want: `{"a":"x","b":1}`},
		"fields that are mapped":         {rows: storedRows{row}, fields: map[string]string{"prompt": "q", "completion": "a"}, want: `{"completion":"4","empty":null,"prompt":"2+2?","tools":[{"z":1,"a":2}]}`},
		"two fields of one column":       {rows: storedRows{row}, fields: map[string]string{"prompt": "q", "text": "q"}, want: `{"a":"4","empty":null,"prompt":"2+2?","text":"2+2?","tools":[{"z":1,"a":2}]}`},
		"a column that is missing":       {rows: storedRows{row}, fields: map[string]string{"prompt": "question"}, fail: `dataset.fields.prompt: the row has no column "question"; its columns are a, q, tools`},
		"a column that is null":          {rows: storedRows{row}, fields: map[string]string{"prompt": "empty"}, fail: "dataset.fields.prompt"},
		"a row that the split does lack": {rows: storedRows{}, fail: "no row"},
	} {
		t.Run(name, func(t *testing.T) {
			table, err := NewTable(NewFormat(settings.Dataset{Fields: tc.fields}), map[string]Rows{"train": tc.rows}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := table.Object(t.Context(), "train", 0)
			if tc.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fail) {
					t.Errorf("Object: %v, want %q", err, tc.fail)
				}
				return
			}
			if err != nil || string(got) != tc.want {
				t.Errorf("Object = %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}
