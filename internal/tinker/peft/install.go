// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package peft

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/atomicfile"
	"github.com/tinker-operator/tinker-operator/internal/safetensors"
	"github.com/tinker-operator/tinker-operator/internal/tinker/archive"
)

// families are the models whose layers convert names; variants are those among them whose layers have other names.
var (
	families = regexp.MustCompile(`(?i)^(qwen2\.5|qwen3|llama-[23](\.\d)?|deepseek-(v3|v3\.1|r1))(-|$)`)
	variants = regexp.MustCompile(`(?i)-(vl|vision|next|omni)(-|$)`)
)

// ErrUnknownNames reports that an adapter is one of a model whose layers are not known here.
var ErrUnknownNames = errors.New("the tensors have the endpoint's own names, since those of this model in PEFT are not known; " +
	"build_lora_adapter of the Python package tinker-cookbook may convert them")

// Install writes the adapter of a model from one folder to another, for PEFT: an adapter with the names of hosted Tinker is
// converted, another one is copied. An adapter with the names of Tinker whose model is not known is copied as it is, and the
// notice is ErrUnknownNames.
func Install(from, to, model string) (files []archive.File, notice, err error) {
	tensors, err := os.Open(filepath.Join(from, archive.TensorsFile))
	if err != nil {
		return nil, nil, err
	}
	defer tensors.Close()
	config, err := os.ReadFile(filepath.Join(from, archive.ConfigFile))
	if err != nil {
		return nil, nil, err
	}
	installed, notice, err := convertFiles(tensors, config, model)
	if err != nil {
		return nil, nil, fmt.Errorf("converting the adapter: %w", err)
	}
	for _, file := range []struct {
		name    string
		content io.Reader
	}{{archive.ConfigFile, bytes.NewReader(installed.config)}, {archive.TensorsFile, installed.tensors}} {
		written, err := write(filepath.Join(to, file.name), file.content)
		if err != nil {
			for _, earlier := range files {
				err = errors.Join(err, os.Remove(earlier.Path))
			}
			return nil, nil, err
		}
		files = append(files, written)
	}
	return files, notice, nil
}

// write writes a file whose name exists only once it is complete, and describes it.
func write(name string, content io.Reader) (archive.File, error) {
	hash, size := sha256.New(), int64(0)
	note := func(_ io.ReaderAt, n int64) error { size = n; return nil }
	if err := atomicfile.CopyDurable(name, 0o644, io.TeeReader(content, hash), note); err != nil {
		return archive.File{}, fmt.Errorf("writing the adapter: %w", err)
	}
	return archive.File{Path: name, Size: size, SHA256: hex.EncodeToString(hash.Sum(nil))}, nil
}

// adapter is what the two files of an adapter have.
type adapter struct {
	config  []byte
	tensors io.Reader
}

// convertFiles returns an adapter as it is installed, and why it is not converted if it should be.
func convertFiles(tensors *os.File, config []byte, model string) (out adapter, notice, err error) {
	info, err := tensors.Stat()
	if err != nil {
		return adapter{}, nil, err
	}
	source, begin, err := safetensors.ReadHeader(tensors, info.Size())
	switch {
	case err != nil:
		return adapter{}, nil, err
	case !isForeign(source):
		return adapter{config, tensors}, nil, nil
	case !isKnown(model):
		return adapter{config, tensors}, ErrUnknownNames, nil
	}
	converted, layers, err := convert(source)
	if err != nil {
		return adapter{}, nil, err
	}
	header, names, err := safetensors.EncodeHeader(converted)
	if err != nil {
		return adapter{}, nil, err
	}
	parts := []io.Reader{bytes.NewReader(header)}
	for _, name := range names {
		t := converted[name]
		parts = append(parts, io.NewSectionReader(tensors, begin+t.Offsets[0], t.Size()))
	}
	config, err = configOf(config, model, layers)
	return adapter{config, io.MultiReader(parts...)}, nil, err
}

// isKnown reports whether the names of a model's layers are known. A suffix of the name after a colon says how the endpoint
// serves the model.
func isKnown(model string) bool {
	name := path.Base(withoutSuffix(model))
	return families.MatchString(name) && !variants.MatchString(name)
}

func withoutSuffix(model string) string {
	name, _, _ := strings.Cut(model, ":")
	return name
}

// configOf returns the configuration for PEFT of an adapter with the layers. It keeps what the endpoint has written besides.
func configOf(text []byte, model string, layers []string) ([]byte, error) {
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", archive.ConfigFile, err)
	}
	for _, key := range []string{"r", "lora_alpha"} {
		if _, has := config[key].(float64); !has {
			return nil, fmt.Errorf("%s has no number %q, by which the adapter is scaled", archive.ConfigFile, key)
		}
	}
	for key, value := range map[string]any{
		"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": withoutSuffix(model), "bias": "none",
		"fan_in_fan_out": false, "inference_mode": true, "lora_dropout": 0.0, "target_modules": layers,
	} {
		config[key] = value
	}
	return json.MarshalIndent(config, "", "  ")
}
