// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench prints how fast the tokenizers encode and decode, against the packages `tokenizers` and
// `tiktoken` in the same run: each on one thread, by the CPU time of its process, the best of three. MB are 10^6
// bytes of text. Ratios are to the faster of the two.
//
//	go run ./test/models/bench -python "$(hack/models/python.sh)" -tokenizers DIR
//
// DIR has released vocabularies; without it, the command trains smaller ones. A second row of a family
// is the speed of its vocabulary without a program for its patterns.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

func main() {
	log.SetFlags(0)
	python := flag.String("python", "python3", "interpreter that has the packages of hack/models/requirements.txt")
	folder := flag.String("tokenizers", os.Getenv("TOKENIZERS_DIR"), "folder of released vocabularies")
	reference := flag.String("reference", "test/models/reference.py", "the program that asks the packages")
	megabytes := flag.Int("mb", 10, "how much text to measure with")
	load := flag.String("load", "", "only load this file, and print how long that takes and what memory is held")
	ranks := flag.String("ranks", "", "with -load: the family of a rank file")
	flag.Parse()
	var err error
	if *load != "" {
		err = measureLoad(*load, *ranks)
	} else {
		err = compare(context.Background(), packages{python: *python, script: *reference}, *folder, *megabytes*1_000_000)
	}
	if err != nil {
		log.Fatal("bench: ", err)
	}
}

// compare prints the table.
func compare(ctx context.Context, p packages, folder string, size int) (err error) {
	scratch, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	texts, err := corpus(ctx, p, size)
	if err != nil {
		return err
	}
	documents := filepath.Join(scratch, "documents.json")
	written, err := json.Marshal(texts)
	if err != nil {
		return err
	}
	if err := os.WriteFile(documents, written, 0o600); err != nil {
		return err
	}
	vocabularies, err := released(folder, scratch)
	if folder == "" {
		fmt.Println("no -tokenizers: these vocabularies are trained here")
		vocabularies, err = trained(ctx, p, scratch)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%-14s %31s   %31s\n", "MB/s, 1 thread", "encode", "decode")
	fmt.Printf("%-14s %7s %7s %7s %7s   %7s %7s %7s %7s   %7s %8s %9s\n", "",
		"ours", "tokeniz", "tiktok", "ratio", "ours", "tokeniz", "tiktok", "ratio", "load ms", "held MB", "allocs/tok")
	for _, v := range vocabularies {
		program, err := row(ctx, p, v, texts, documents)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		if v.ranks != "" {
			continue
		}
		general, err := v.general(scratch)
		if err != nil {
			return fmt.Errorf("%s in general: %w", v.name, err)
		}
		slow, err := row(ctx, p, general, texts, documents)
		if err != nil {
			return fmt.Errorf("%s in general: %w", v.name, err)
		}
		fmt.Printf("  of the program %6.2fx %32.2fx\n", slow.Encode/program.Encode, slow.Decode/program.Decode)
	}
	return nil
}

// row measures and prints one family.
func row(ctx context.Context, p packages, v vocabulary, texts []string, documents string) (ours speed, err error) {
	loaded, err := loadElsewhere(ctx, v)
	if err != nil {
		return ours, err
	}
	if ours, err = measure(v, texts); err != nil {
		return ours, err
	}
	var theirs [2]speed
	for i, arguments := range [][]string{v.tokenizers, v.tiktoken} {
		if arguments == nil {
			continue
		}
		if theirs[i], err = p.speed(ctx, documents, arguments); err != nil {
			return ours, err
		}
	}
	encode := columns(ours.Encode, theirs[0].Encode, theirs[1].Encode)
	decode := columns(ours.Decode, theirs[0].Decode, theirs[1].Decode)
	fmt.Printf("%-14s %s   %s   %7.0f %8.1f %9.4f\n", v.name, encode, decode, loaded.Milliseconds, loaded.Megabytes,
		ours.allocations)
	return ours, nil
}

// columns returns the columns of a row: ours, theirs, and the ratio to the best of theirs.
func columns(ours float64, theirs ...float64) string {
	text := fmt.Sprintf("%7.1f", ours)
	for _, rate := range theirs {
		shown := "-"
		if rate > 0 {
			shown = strconv.FormatFloat(rate, 'f', 1, 64)
		}
		text += fmt.Sprintf(" %7s", shown)
	}
	return text + fmt.Sprintf(" %6.1fx", ours/slices.Max(theirs))
}
