// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/safetensors"
	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model"
)

// shapesOf returns a line with name and shape for each tensor of a file of safetensors, and how many numbers there are.
func shapesOf(t *testing.T, file []byte) (lines []string, numbers int) {
	t.Helper()
	tensors, begin, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range tensors {
		lines = append(lines, fmt.Sprintf("%s %v", name, e.Shape))
	}
	slices.Sort(lines)
	return lines, (len(file) - int(begin)) / 4
}

// TestBaseFilesAreThoseOfTransformers compares names and shapes with what the package transformers 5.23 saves of a model with the same
// configuration, and the numbers with those of the simulator.
func TestBaseFilesAreThoseOfTransformers(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "arcee.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, base := range map[string]*model.BaseModel{"sums": model.Base(), "countdown": model.CountdownBase()} {
		files, err := BaseFiles(base)
		if err != nil {
			t.Fatal(err)
		}
		got, numbers := shapesOf(t, files[1].Data)
		if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(golden)), "\n"), got); diff != "" {
			t.Errorf("%s: names and shapes (-transformers +export):\n%s", name, diff)
		}
		sum := 0.0
		for _, m := range base.Matrices() {
			numbers -= len(m.Values)
			for _, v := range m.Values {
				sum += math.Abs(float64(v))
			}
		}
		if norms := 5 * 64; numbers != norms || sum == 0 {
			t.Errorf("%s: there are %d numbers besides the matrices, want %d of norms", name, numbers, norms)
		}
	}
}
