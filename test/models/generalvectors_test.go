// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models

package models

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recordedSettings are the settings whose files and ids are committed.
var recordedSettings = []string{
	"llama2", "llama2 first", "gemma", "metaspace always", "metaspace first", "metaspace whole", "unknown",
	"unknown fused", "some bytes", "replaces", "whole wins",
	"bytes flags", "bytes normalized", "bytes then split", "prefix space", "nested", "pattern a",
	"regex MergedWithPrevious", "string Contiguous inverted", "punctuation Removed",
	"strips", "form NFKD", "form StripAccents", "fixed length",
}

type (
	recordedText struct {
		textQuestion
		encodeAnswer
	}
	recordedIDs struct {
		idsQuestion
		decodeAnswer
	}
	generalVectors struct {
		Tokenizer json.RawMessage `json:"tokenizer"`
		Texts     []recordedText  `json:"texts"`
		Lists     []recordedIDs   `json:"lists"`
	}
)

const generalFolder = root + "/internal/tokenizer/testdata/general"

// TestGeneralVectors compares the committed vectors with the reference's answers of today; -update writes them anew.
func TestGeneralVectors(t *testing.T) {
	if *update {
		writeGeneralVectors(t)
		return
	}
	for _, name := range recordedSettings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v generalVectors
			if err := json.Unmarshal(unzip(t, vectorsFile(name)), &v); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "tokenizer.json")
			write(t, file, v.Tokenizer)
			if diff := cmp.Diff(answered(t, file, v), v, cmp.AllowUnexported(recordedText{}, recordedIDs{})); diff != "" {
				t.Errorf("the committed vectors are not the reference's; -update writes them anew (-want +got):\n%s", diff)
			}
		})
	}
}

func vectorsFile(name string) string {
	return filepath.Join(generalFolder, strings.ReplaceAll(name, " ", "_")+".json.gz")
}

// answered returns the vectors with the answers of the reference.
func answered(t *testing.T, file string, v generalVectors) generalVectors {
	out := generalVectors{Tokenizer: v.Tokenizer}
	questions := func(yield func(eitherQuestion) bool) {
		for _, one := range v.Texts {
			if !yield(eitherQuestion{Text: &one.Text}) {
				return
			}
		}
		for _, one := range v.Lists {
			if !yield(eitherQuestion{IDs: one.IDs}) {
				return
			}
		}
	}
	ask(t, []string{"tokenizer", file}, questions, func(q eitherQuestion, a eitherAnswer) {
		if q.Text != nil {
			out.Texts = append(out.Texts, recordedText{textQuestion{*q.Text}, a.encodeAnswer})
		} else {
			out.Lists = append(out.Lists, recordedIDs{idsQuestion{q.IDs}, decodeAnswer{a.Text, a.Skip}})
		}
	})
	return out
}

func writeGeneralVectors(t *testing.T) {
	folder, all := t.TempDir(), generalSettings()
	for _, name := range recordedSettings {
		s := all[name]
		s.Size, s.Like = 400, ""
		if s.Missing == nil {
			s.Missing = []int{}
		}
		write(t, filepath.Join(folder, name+".settings"), []byte(quoted(t, s)))
	}
	run(t, "reference.py", "train-all", folder)
	if err := os.MkdirAll(generalFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, name := range recordedSettings {
		file := filepath.Join(folder, name+".json")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		made := newTexts(uint64(i)+1, []string{"<s>", "<left>", "<right>", "word", "Wörd", "<Norm é>", "<NS>", "ab",
			"<|end|>", "<think>", "<both>"})
		v := generalVectors{Tokenizer: text}
		for _, one := range tricky {
			v.Texts = append(v.Texts, recordedText{textQuestion: textQuestion{one}})
		}
		for range 60 {
			v.Texts = append(v.Texts, recordedText{textQuestion: textQuestion{made.one()}})
		}
		v = answered(t, file, v)
		var used []int32
		for _, one := range v.Texts {
			used = append(used, one.IDs...)
		}
		slices.Sort(used)
		used = slices.Compact(used)
		for range 40 {
			list := make([]int32, 1+made.IntN(10))
			for j := range list {
				list[j] = used[made.IntN(len(used))]
			}
			v.Lists = append(v.Lists, recordedIDs{idsQuestion: idsQuestion{list}})
		}
		var zipped bytes.Buffer
		out, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		if err := json.NewEncoder(out).Encode(answered(t, file, v)); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		write(t, vectorsFile(name), zipped.Bytes())
	}
}
