// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestMemoDropsUnusedTexts(t *testing.T) {
	m := &memo{}
	large := strings.Repeat("x", mostRemembered/4)
	m.put("kept", []int32{1})
	m.put("dropped", []int32{2})
	for i := range 20 {
		m.put(fmt.Sprint(i, large), nil)
		if got, ok := m.get([]byte("kept")); !ok || !slices.Equal(got, []int32{1}) {
			t.Fatalf("after %d large texts, a text that is asked for is forgotten", i+1)
		}
	}
	if _, ok := m.get([]byte("dropped")); ok {
		t.Error("a text that nobody asks for is remembered")
	}
	if len(m.young)+len(m.old) > 10 {
		t.Errorf("%d texts are remembered", len(m.young)+len(m.old))
	}
}
