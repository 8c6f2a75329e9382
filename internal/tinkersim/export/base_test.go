// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"encoding/binary"
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

// tensorsOf returns a line with name and shape for each tensor of a file of safetensors, and the numbers of each.
func tensorsOf(t *testing.T, file []byte) (lines []string, numbers map[string][]float32) {
	t.Helper()
	tensors, begin, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	numbers = map[string][]float32{}
	for name, e := range tensors {
		lines = append(lines, fmt.Sprintf("%s %v", name, e.Shape))
		for at := begin + e.Offsets[0]; at < begin+e.Offsets[1]; at += 4 {
			numbers[name] = append(numbers[name], math.Float32frombits(binary.LittleEndian.Uint32(file[at:])))
		}
	}
	slices.Sort(lines)
	return lines, numbers
}

// TestBaseFilesAreThoseOfTransformers compares names and shapes with the files that the package transformers 5.23 saves
// for a model with the same configuration, and the numbers with the simulator's. The simulator's norms have no weights:
// they are 1.
func TestBaseFilesAreThoseOfTransformers(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "arcee.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, base := range map[string]*model.BaseModel{"sums": model.Base(), "countdown": model.CountdownBase(),
		"right sums": model.SumsBase()} {
		files, err := BaseFiles(base)
		if err != nil {
			t.Fatal(err)
		}
		got, numbers := tensorsOf(t, files[1].Data)
		if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(golden)), "\n"), got); diff != "" {
			t.Errorf("%s: names and shapes (-transformers +export):\n%s", name, diff)
		}
		for _, m := range base.Matrices() {
			if written := numbers[m.Name+".weight"]; !slices.Equal(written, m.Values) || !slices.ContainsFunc(written,
				func(v float32) bool { return v != 0 }) {
				t.Errorf("%s: the numbers of %s differ from the simulator's, or are 0", name, m.Name)
			}
			delete(numbers, m.Name+".weight")
		}
		if len(numbers) != 5 {
			t.Errorf("%s: there are %d tensors besides the matrices, want 5 norms", name, len(numbers))
		}
		for norm, values := range numbers {
			if slices.ContainsFunc(values, func(v float32) bool { return v != 1 }) {
				t.Errorf("%s: %s has numbers other than 1", name, norm)
			}
		}
	}
}
