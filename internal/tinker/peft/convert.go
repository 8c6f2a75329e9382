// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package peft

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/safetensors"
	"github.com/tinker-operator/tinker-operator/internal/tinker/archive"
)

// families matches the models whose layers have names that convert knows, and variants the models among them whose
// layers have other names.
var (
	families = regexp.MustCompile(`(?i)^(qwen2\.5|qwen3|llama-[23](\.\d)?|deepseek-(v3|v3\.1|r1))(-|$)`)
	variants = regexp.MustCompile(`(?i)-(vl|vision|next|omni)(-|$)`)
)

// ErrNotConverted reports that an adapter has names and shapes of the endpoint whose counterparts in PEFT are not known
// here.
var ErrNotConverted = errors.New("the adapter is as the endpoint has it, since its names and shapes in PEFT are " +
	"not known; " +
	"build_lora_adapter of the Python package tinker-cookbook may convert it")

// Convert replaces the names and shapes of a model's adapter in a folder by the names and shapes that PEFT expects,
// and describes the new files. It returns no files if the adapter has such names already, or if it cannot be
// converted; in the latter case, notice is an ErrNotConverted.
func Convert(folder, model string) (files []archive.File, notice, err error) {
	config, tensors := filepath.Join(folder, archive.ConfigFile), filepath.Join(folder, archive.TensorsFile)
	source, err := os.Open(tensors)
	if err != nil {
		return nil, nil, err
	}
	defer source.Close()
	converted, layers, err := convertTensors(source, model)
	switch {
	case errors.Is(err, ErrNotConverted):
		return nil, err, nil
	case err != nil:
		return nil, nil, fmt.Errorf("converting the adapter: %w", err)
	case converted == nil:
		return nil, nil, nil
	}
	text, err := convertConfig(config, model, layers)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNotConverted, err), nil
	}
	for _, file := range []struct {
		name    string
		content io.Reader
	}{{config, bytes.NewReader(text)}, {tensors, converted}} {
		written, err := archive.Write(file.name, file.content, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("writing the adapter: %w", err)
		}
		files = append(files, written)
	}
	return files, nil, nil
}

// convertTensors returns a converted file of tensors and the layers that it adapts; nil if it needs no conversion.
func convertTensors(tensors *os.File, model string) (io.Reader, []string, error) {
	info, err := tensors.Stat()
	if err != nil {
		return nil, nil, err
	}
	source, begin, err := safetensors.ReadHeader(tensors, info.Size())
	switch {
	case err != nil:
		return nil, nil, err
	case !isForeign(source):
		return nil, nil, nil
	case !isKnown(model):
		return nil, nil, ErrNotConverted
	}
	converted, layers, err := convert(source)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (%w)", ErrNotConverted, err)
	}
	header, names, err := safetensors.EncodeHeader(converted)
	if err != nil {
		return nil, nil, err
	}
	parts := []io.Reader{bytes.NewReader(header)}
	for _, name := range names {
		t := converted[name]
		parts = append(parts, io.NewSectionReader(tensors, begin+t.Offsets[0], t.Size()))
	}
	return io.MultiReader(parts...), layers, nil
}

// isKnown reports whether the names of a model's layers are known. A suffix of the name after a colon says how the
// endpoint serves the model.
func isKnown(model string) bool {
	name := path.Base(withoutSuffix(model))
	return families.MatchString(name) && !variants.MatchString(name)
}

func withoutSuffix(model string) string {
	name, _, _ := strings.Cut(model, ":")
	return name
}

// convertConfig returns the configuration for PEFT of an adapter with the layers. It keeps the other fields that the
// endpoint has written.
func convertConfig(name, model string, layers []string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
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
