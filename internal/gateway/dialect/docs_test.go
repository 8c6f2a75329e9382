// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDocumentedTreatments checks that docs/dialects.md has the list of options of each endpoint.
func TestDocumentedTreatments(t *testing.T) {
	const page = "../../../docs/dialects.md"
	text := string(mustRead(t, page))
	begin, end := strings.Index(text, "\n- chat/completions:\n"), strings.Index(text, "\n`temperature`, `top_p` and")
	if begin < 0 || end < begin {
		t.Fatalf("the list of options begins at %d and ends at %d of the page, want both in order", begin, end)
	}
	want := optionList()
	if *update {
		if err := os.WriteFile(page, []byte(text[:begin+1]+want+text[end:]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := text[begin+1 : end]; got != want {
		t.Errorf("got the list\n%s\nwant\n%s\n-update writes it", got, want)
	}
}

func optionList() string {
	var list strings.Builder
	for _, path := range slices.SortedFunc(maps.Keys(paths),
		func(a, b string) int { return int(paths[a]) - int(paths[b]) }) {
		treatments := TreatmentOf(paths[path])
		fmt.Fprintf(&list, "- %s:\n", path)
		for _, treatment := range []Treatment{Honoured, Accepted, Overruled, Unsupported, ByField, Refused} {
			var names []string
			for _, name := range slices.Sorted(maps.Keys(treatments)) {
				if treatments[name] == treatment {
					names = append(names, "`"+name+"`")
				}
			}
			if len(names) > 0 {
				fmt.Fprintf(&list, "  - %s: %s\n", treatment, strings.Join(names, ", "))
			}
		}
	}
	return list.String()
}
