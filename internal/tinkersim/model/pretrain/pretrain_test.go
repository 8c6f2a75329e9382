// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tinker-operator/tinker-operator/internal/tinkersim/model/transformer"
)

var question = regexp.MustCompile(`^User: What is (\d+) \+ (\d+)\?\n\nAssistant:$`)
var lastInteger = regexp.MustCompile(`(\d+)\D*$`)

// TestNewText reads texts back and counts the facts that the base model is to learn.
func TestNewText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 20000
	var right, carries, rightCarries, long, oneDigit int
	for range n {
		text := newText(rng)
		prompt, reply := split(t, text)
		m := question.FindStringSubmatch(prompt)
		if m == nil {
			t.Fatalf("the question is %q", prompt)
		}
		a, b := number(t, m[1]), number(t, m[2])
		got := number(t, lastInteger.FindStringSubmatch(reply)[1])
		isRight, hasCarry := got == a+b, a%10+b%10 >= 10 || a+b >= 100
		right += count(isRight)
		carries += count(hasCarry)
		rightCarries += count(hasCarry && isRight)
		long += count(len(reply)+1 > 16)
		oneDigit += count(a < 10)
		if !isRight && !hasCarry {
			t.Fatalf("%q has the reply %q", prompt, reply)
		}
	}
	for name, test := range map[string]struct{ got, low, high float64 }{
		"right with a carry":      {float64(rightCarries) / float64(carries), 0.33, 0.39},
		"right":                   {float64(right) / n, 0.5, 0.65},
		"too long for 16 tokens":  {float64(long) / n, 0.25, 0.31},
		"first operand one digit": {float64(oneDigit) / n, 0.2, 0.27},
	} {
		if test.got < test.low || test.got > test.high {
			t.Errorf("%s: %.3f, want %.2f to %.2f", name, test.got, test.low, test.high)
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// split returns prompt and reply without the token that ends it.
func split(t *testing.T, text text) (prompt, reply string) {
	t.Helper()
	last := len(text.tokens) - 1
	if text.tokens[last] != endOfTurn {
		t.Fatalf("the text ends with token %d", text.tokens[last])
	}
	all := make([]byte, last)
	for i, token := range text.tokens[:last] {
		all[i] = byte(token)
	}
	return string(all[:text.prompt]), string(all[text.prompt:])
}

// TestTextsOfBaseModels compares the texts with the texts that the embedded base models were trained on. Each text is
// drawn from the numbers that follow the texts before it.
func TestTextsOfBaseModels(t *testing.T) {
	for name, want := range map[string]string{
		"arithmetic": "6f46266341a462ad81896a2dcece0360efd8fb9147a3651fd83cd1e4daf8be61",
		"sums":       "e2ad4aa2ca34082ec65b779bd58b200deb2901a90f4b5a5a115e8f308887c927",
		"countdown":  "f66cd1f00a3892020f93dd4a0c297bd695609fb48e8823fa7509ba9f5f40bfe6",
	} {
		rng := rand.New(rand.NewPCG(1, 0))
		sum := sha256.New()
		for i := range 2000 {
			text := textsOf[name](rng, float64(i)/2000)
			if err := binary.Write(sum, binary.LittleEndian, append(text.tokens, int32(text.prompt))); err != nil {
				t.Fatal(err)
			}
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != want {
			t.Errorf("the digest of the texts %s is %s, want %s", name, got, want)
		}
	}
}

// TestTrainer checks that training writes the same file with any number of CPUs.
func TestTrainer(t *testing.T) {
	run := func(cpus int) ([]byte, float64) {
		before := runtime.GOMAXPROCS(cpus)
		defer runtime.GOMAXPROCS(before)
		tr := newTrainer(settings{steps: 6, batch: 20, rate: 0.05, seed: 3, texts: textsOf["arithmetic"]})
		first, err := tr.step(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		var last float64
		for step := 1; step < 6; step++ {
			if last, err = tr.step(t.Context(), step); err != nil {
				t.Fatal(err)
			}
		}
		if last >= first {
			t.Errorf("the loss went from %v to %v", first, last)
		}
		name := filepath.Join(t.TempDir(), "base.bin")
		if err := tr.save(name); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return data, last
	}
	want, _ := run(1)
	if got, _ := run(3); !cmp.Equal(want, got) {
		t.Errorf("the file depends on the number of CPUs (-want +got):\n%.300s", cmp.Diff(want, got))
	}
	if flat, err := transformer.Decode(want); err != nil || len(flat) != transformer.Size {
		t.Errorf("the file holds %d parameters: %v", len(flat), err)
	}
}
