// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/split"
)

// vocabulary is a tokenizer, with the arguments by which the packages load the same tokenizer; nil if a package cannot.
type vocabulary struct {
	name, file, ranks    string
	tokenizers, tiktoken []string
}

func (v vocabulary) open() (tokenizer.Tokenizer, error) {
	data, err := os.ReadFile(v.file)
	if err != nil {
		return nil, err
	}
	if v.ranks != "" {
		return tokenizer.ParseTiktoken(v.ranks, data, nil)
	}
	return tokenizer.Read(data)
}

// general returns the same vocabulary with its patterns in groups, so that no program is known for them.
func (v vocabulary) general(scratch string) (vocabulary, error) {
	data, err := os.ReadFile(v.file)
	if err != nil {
		return v, err
	}
	var file map[string]json.RawMessage
	var steps struct {
		Type  string           `json:"type"`
		Steps []map[string]any `json:"pretokenizers"`
	}
	if err := errors.Join(json.Unmarshal(data, &file), json.Unmarshal(file["pre_tokenizer"], &steps)); err != nil {
		return v, err
	}
	for _, step := range steps.Steps {
		if pattern, ok := step["pattern"].(map[string]any); ok {
			pattern["Regex"] = fmt.Sprintf("(?:%s)", pattern["Regex"])
		}
	}
	if file["pre_tokenizer"], err = json.Marshal(steps); err != nil {
		return v, err
	}
	if data, err = json.Marshal(file); err != nil {
		return v, err
	}
	name := filepath.Join(scratch, v.name+"-general.json")
	return vocabulary{name: "  general", file: name, tokenizers: []string{"tokenizer", name}},
		os.WriteFile(name, data, 0o600)
}

// packages runs the reference packages.
type packages struct{ python, script string }

func (p packages) run(ctx context.Context, arguments ...string) ([]byte, error) {
	output, err := exec.CommandContext(ctx, p.python, append([]string{p.script}, arguments...)...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w\n%s", err, failed.Stderr)
	}
	return output, err
}

func (p packages) speed(ctx context.Context, documents string, arguments []string) (s speed, err error) {
	output, err := p.run(ctx, append([]string{"speed", documents}, arguments...)...)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(output, &s)
}

// ofRanks are the arguments for tiktoken. Special tokens are not measured.
func ofRanks(file, name string) ([]string, error) {
	_, patterns, err := split.ByName(name)
	if err != nil {
		return nil, err
	}
	pattern, err := json.Marshal(patterns[0])
	return []string{"tiktoken", file, string(pattern), "{}"}, err
}

// released unpacks the vocabularies of a folder.
func released(folder, scratch string) ([]vocabulary, error) {
	if folder == "" {
		return nil, nil
	}
	var all []vocabulary
	for _, name := range []string{"qwen3", "qwen2_5", "qwen3_5", "llama3", "deepseek_v3_1", "nemotron3", "gpt_oss"} {
		v := vocabulary{name: name, file: filepath.Join(scratch, name+".json")}
		if err := unpack(filepath.Join(folder, name, "tokenizer.json.gz"), v.file); err != nil {
			return nil, err
		}
		v.tokenizers = []string{"tokenizer", v.file}
		all = append(all, v)
	}
	o200k, kimi := filepath.Join(scratch, "o200k"), filepath.Join(scratch, "kimi")
	if err := errors.Join(unpack(filepath.Join(folder, "gpt_oss", "o200k_base.tiktoken.gz"), o200k),
		unpack(filepath.Join(folder, "kimi_k2", "tiktoken.model.gz"), kimi)); err != nil {
		return nil, err
	}
	var err error
	if all[len(all)-1].tiktoken, err = ofRanks(o200k, "o200k"); err != nil {
		return nil, err
	}
	ranks, err := ofRanks(kimi, "kimi_k2")
	return append(all, vocabulary{name: "kimi_k2", file: kimi, ranks: "kimi_k2", tiktoken: ranks}), err
}

func unpack(from, to string) error {
	packed, err := os.Open(from)
	if err != nil {
		return err
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, unpacked)
	return errors.Join(err, file.Close())
}

// trained makes vocabularies with the settings of the committed vectors.
func trained(ctx context.Context, p packages, scratch string) ([]vocabulary, error) {
	var all []vocabulary
	for _, name := range []string{"qwen3", "qwen3_5", "deepseek_v3_1", "nemotron3", "gpt_oss"} {
		settings := filepath.Join(scratch, "settings.json")
		v := vocabulary{name: name, file: filepath.Join(scratch, name+".json")}
		if err := unpack(filepath.Join("internal/tokenizer/testdata/golden", name, "tokenizer.json.gz"),
			settings); err != nil {
			return nil, err
		}
		if _, err := p.run(ctx, "train", settings, v.file); err != nil {
			return nil, err
		}
		v.tokenizers = []string{"tokenizer", v.file}
		all = append(all, v)
	}
	for _, family := range []struct {
		name, split string
		ranks       int
	}{{"o200k_base", "o200k", 199998}, {"kimi_k2", "kimi_k2", 163584}} {
		v := vocabulary{name: family.name, file: filepath.Join(scratch, family.name), ranks: family.name}
		if _, err := p.run(ctx, "ranks", strconv.Itoa(family.ranks), v.file); err != nil {
			return nil, err
		}
		var err error
		if v.tiktoken, err = ofRanks(v.file, family.split); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
