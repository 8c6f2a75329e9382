// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
)

// speed is a speed in 10^6 bytes of text a second.
type speed struct {
	Encode, Decode float64
	// allocations is the number of allocations for each encoded token.
	allocations float64
}

// measure encodes and decodes on one thread.
func measure(v vocabulary, texts []string) (s speed, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	tokens, err := v.open()
	if err != nil {
		return s, err
	}
	var size, count int
	lists := make([][]int32, len(texts))
	for i, text := range texts {
		lists[i] = tokens.Encode(text)
		size += len(text)
		count += len(lists[i])
	}
	var ids []int32
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.Encode = best(size, func() {
		for _, text := range texts {
			ids = tokens.AppendEncode(ids[:0], text, tokenizer.Literal)
		}
	})
	runtime.ReadMemStats(&after)
	s.allocations = float64(after.Mallocs-before.Mallocs) / float64(runs*count)
	s.Decode = best(size, func() {
		for _, list := range lists {
			if _, failed := tokens.Decode(list); failed != nil {
				err = failed
			}
		}
	})
	return s, err
}

const runs = 3

// best returns the speed of the best of some runs, by the CPU time of the process.
func best(size int, run func()) float64 {
	least := time.Duration(math.MaxInt64)
	for range runs {
		start := worked()
		run()
		least = min(least, worked()-start)
	}
	return float64(size) / 1e6 / least.Seconds()
}

func worked() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// loading is the time and the memory that a process of its own reports for loading a file.
type loading struct{ Milliseconds, Megabytes float64 }

func loadElsewhere(ctx context.Context, v vocabulary) (l loading, err error) {
	self, err := os.Executable()
	if err != nil {
		return l, err
	}
	output, err := exec.CommandContext(ctx, self, "-load", v.file, "-ranks", v.ranks).Output()
	if err != nil {
		return l, fmt.Errorf("loading %s: %w", v.file, err)
	}
	return l, json.Unmarshal(output, &l)
}

// measureLoad prints a loading: the time of the process from the file to the tokenizer, and its resident memory
// with the tokenizer alone.
func measureLoad(file, ranks string) error {
	start := worked()
	tokens, err := vocabulary{file: file, ranks: ranks}.open()
	if err != nil {
		return err
	}
	took := worked() - start
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	kilobytes, err := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
	if err != nil {
		return err
	}
	runtime.KeepAlive(tokens)
	return json.NewEncoder(os.Stdout).Encode(loading{Milliseconds: took.Seconds() * 1000,
		Megabytes: kilobytes * 1024 / 1e6})
}
