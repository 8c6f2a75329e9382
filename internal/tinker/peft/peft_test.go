// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package peft

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/safetensors"
	"github.com/tinker-operator/tinker-operator/internal/tinker/archive"
)

// lists are the names and shapes of an adapter that testdata/record.py has recorded.
type lists struct {
	Tinker  map[string][]int `json:"tinker"`
	PEFT    map[string][]int `json:"peft"`
	Modules []string         `json:"target_modules"`
}

func golden(t *testing.T) map[string]lists {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var models map[string]lists
	if err := json.Unmarshal(text, &models); err != nil {
		t.Fatal(err)
	}
	return models
}

// number is the value of a tensor's first element: each tensor has its own values.
func number(name string) uint32 {
	sum := sha256.Sum256([]byte(name))
	return binary.LittleEndian.Uint32(sum[:])
}

// writeAdapter writes an adapter with tensors of the given shapes, whose elements count from number, and returns the
// folder.
func writeAdapter(t *testing.T, shapes map[string][]int, config string) string {
	t.Helper()
	tensors := map[string]safetensors.Tensor{}
	for name, shape := range shapes {
		size := 4
		for _, n := range shape {
			size *= n
		}
		tensors[name] = safetensors.Tensor{Type: "F32", Shape: shape, Offsets: [2]int64{0, int64(size)}}
	}
	file, names, err := safetensors.EncodeHeader(tensors)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		first := number(name)
		for i := range uint32(tensors[name].Size() / 4) {
			file = binary.LittleEndian.AppendUint32(file, first+i)
		}
	}
	folder := t.TempDir()
	for name, content := range map[string][]byte{archive.TensorsFile: file, archive.ConfigFile: []byte(config)} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

const config = `{"r": 2, "lora_alpha": 32, "use_rslora": false}`

// readAdapter returns the tensors of a folder and their elements.
func readAdapter(t *testing.T, folder string) (map[string]safetensors.Tensor, map[string][]byte) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(folder, archive.TensorsFile))
	if err != nil {
		t.Fatal(err)
	}
	tensors, begin, err := safetensors.ReadHeader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	elements := map[string][]byte{}
	for name, tensor := range tensors {
		elements[name] = file[begin+tensor.Offsets[0] : begin+tensor.Offsets[1]]
	}
	return tensors, elements
}

// TestConvertAdapters compares names and shapes for models of three families with the recorded lists, and the elements
// with the elements of the Tinker tensors that they come from.
func TestConvertAdapters(t *testing.T) {
	for model, want := range golden(t) {
		t.Run(model, func(t *testing.T) {
			folder := writeAdapter(t, want.Tinker, config)
			files, notice, err := Convert(folder, model+":peft:131072")
			if err != nil || notice != nil || len(files) != 2 {
				t.Fatalf("Convert = %v, %v, %v", files, notice, err)
			}
			tensors, elements := readAdapter(t, folder)
			shapes := map[string][]int{}
			for name, tensor := range tensors {
				shapes[name] = tensor.Shape
				checkElements(t, want.Tinker, name, elements[name])
			}
			if diff := cmp.Diff(want.PEFT, shapes); diff != "" {
				t.Errorf("names and shapes (-recorded +converted):\n%s", diff)
			}
			checkConfig(t, folder, model, want.Modules)
			checkFiles(t, files)
		})
	}
}

// checkElements compares the elements of a converted tensor with the elements of its source.
func checkElements(t *testing.T, source map[string][]int, name string, got []byte) {
	t.Helper()
	from, skip := strings.Replace(name, "model.lm_head.", "model.model.unembed_tokens.", 1), 0
	if before, after, ok := strings.Cut(name, ".experts."); ok {
		expert, layer, _ := strings.Cut(after, ".")
		for tinker, transformers := range expertLayers {
			layer = strings.Replace(layer, transformers+".", tinker+".", 1)
		}
		from = before + ".experts." + layer
		if source[from][0] > 1 {
			skip = len(got) / 4 * int(expert[0]-'0')
		}
	}
	for i := range len(got) / 4 {
		if have, want := binary.LittleEndian.Uint32(got[4*i:]), number(from)+uint32(skip+i); have != want {
			t.Fatalf("element %d of %s is %d, want %d of %s", i, name, have, want, from)
		}
	}
}

func checkConfig(t *testing.T, folder, model string, modules []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, archive.ConfigFile))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	var layers []any
	for _, module := range modules {
		layers = append(layers, module)
	}
	want := map[string]any{
		"r": 2.0, "lora_alpha": 32.0, "use_rslora": false, "peft_type": "LORA", "task_type": "CAUSAL_LM",
		"base_model_name_or_path": model,
		"bias":                    "none", "fan_in_fan_out": false, "inference_mode": true, "lora_dropout": 0.0,
		"target_modules": layers,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// checkFiles compares digests with the files.
func checkFiles(t *testing.T, files []archive.File) {
	t.Helper()
	for _, file := range files {
		content, err := os.ReadFile(file.Path)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if file.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%+v does not describe the file of %d bytes", file, len(content))
		}
	}
}

func matrix(name string, a, b []int) map[string][]int {
	return map[string][]int{prefix + name + matrices[0]: a, prefix + name + matrices[1]: b}
}

func TestConvertLeavesOtherAdapters(t *testing.T) {
	layer := matrix("model.layers.0.self_attn.q_proj", []int{2, 4}, []int{4, 2})
	output := matrix(unembedding, []int{2, 4}, []int{4, 2})
	cases := map[string]struct {
		model   string
		tensors map[string][]int
		notice  error
	}{
		"names of PEFT":              {"tinkersim/byte-136k", layer, nil},
		"names of PEFT, known model": {"Qwen/Qwen3-8B", layer, nil},
		"unknown model":              {"openai/gpt-oss-20b", output, ErrNotConverted},
		"vision":                     {"Qwen/Qwen3-VL-30B-A3B-Instruct", output, ErrNotConverted},
		"another generation":         {"Qwen/Qwen3.5-4B", output, ErrNotConverted},
		"linear attention":           {"Qwen/Qwen3-Next-80B-A3B", output, ErrNotConverted},
		"vision of Llama":            {"meta-llama/Llama-3.2-11B-Vision", output, ErrNotConverted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := writeAdapter(t, tc.tensors, config)
			before := read(t, folder)
			files, notice, err := Convert(folder, tc.model)
			if err != nil || !errors.Is(notice, tc.notice) || files != nil {
				t.Fatalf("Convert = %v, %v, %v, want the notice %v", files, notice, err, tc.notice)
			}
			if diff := cmp.Diff(before, read(t, folder)); diff != "" {
				t.Errorf("files (-before +after):\n%s", diff)
			}
		})
	}
}

// read returns the files of a folder.
func read(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{archive.ConfigFile, archive.TensorsFile} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(content)
	}
	return files
}

func TestConvertLeavesInvalidAdapters(t *testing.T) {
	const layer = "model.layers.0.mlp.experts.w1"
	cases := map[string]struct {
		tensors map[string][]int
		config  string
		want    string
	}{
		"experts that differ": {matrix(layer, []int{2, 2, 4}, []int{3, 4, 2}), config, "2 and 3 experts"},
		"an unknown layer": {matrix("model.layers.0.mlp.experts.w4", []int{1, 2, 4}, []int{3, 4, 2}), config,
			`unknown layer "w4"`},
		"one matrix of a pair": {map[string][]int{prefix + layer + matrices[0]: {1, 2, 4}}, config,
			"not three dimensions each"},
		"a tensor of no matrix": {map[string][]int{prefix + "model.unembed_tokens.bias": {4}}, config,
			"is not a matrix of an adapter"},
		"three dimensions": {matrix("model.layers.0.mlp.up_proj", []int{1, 2, 4}, []int{1, 4, 2}), config,
			"not that of a matrix"},
		"only empty experts": {matrix(layer, []int{3, 2, 0}, []int{3, 0, 2}), config, "has no matrices"},
		"no rank":            {matrix(unembedding, []int{2, 4}, []int{4, 2}), `{"lora_alpha": 32}`, `no number "r"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := writeAdapter(t, tc.tensors, tc.config)
			before := read(t, folder)
			files, notice, err := Convert(folder, "Qwen/Qwen3-30B-A3B")
			if err != nil || files != nil || !errors.Is(notice, ErrNotConverted) || !strings.Contains(notice.Error(), tc.want) {
				t.Errorf("Convert = %v, %v, %v, want the notice %q", files, notice, err, tc.want)
			}
			if diff := cmp.Diff(before, read(t, folder)); diff != "" {
				t.Errorf("files (-before +after):\n%s", diff)
			}
		})
	}
}
