// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"testing"

	settings "github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
)

func TestFindDuplicates(t *testing.T) {
	row := func(id string) string { return `{"prompt": "p", "id": "` + id + `"}` }
	for name, tc := range map[string]struct {
		train storedRows
		want  string
	}{
		"unique":      {storedRows{row("a"), row("b"), row("c")}, ""},
		"without ids": {storedRows{`{"prompt": "p"}`, `{"prompt": "p"}`}, ""},
		"one without": {storedRows{row("a"), `{"prompt": "p"}`, `{"prompt": "p"}`}, ""},
		"numbers":     {storedRows{`{"prompt": "p", "id": 1}`, `{"prompt": "p", "id": 2}`}, ""},
		"equal numbers": {storedRows{`{"prompt": "p", "id": 1}`, `{"prompt": "q", "id": 1}`},
			`1 rows of split "train" have the id of an earlier row, such as row 2, which has the id "1" of row 1`},
		"several": {storedRows{row("a"), row("b"), row("c"), row("b"), row("c"), row("b"), row("a")},
			`4 rows of split "train" have the id of an earlier row, such as row 4, which has the id "b" of row 2`},
	} {
		// Rows of different splits may have the same id.
		table, err := NewTable(NewFormat(settings.Dataset{}), map[string]Rows{"train": tc.train,
			"test": storedRows{row("a"), row("b")}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		found, err := FindDuplicates(t.Context(), table)
		got := ""
		if found != nil {
			got = found.String()
		}
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tc.want)
		}
	}
	broken, err := NewTable(NewFormat(settings.Dataset{}), map[string]Rows{"train": storedRows{row("a"), `{`}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := FindDuplicates(t.Context(), broken); err == nil || found != nil {
		t.Errorf("a row that cannot be read: %v, %v", found, err)
	}
}
