// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// The race detector makes arithmetic many times slower, and does not change it.
//go:build !race

package model

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"runtime"
	"strings"
	"testing"
)

// goldenDigest identifies every number that TestGoldenNumbers computes. If it changes, a run that was trained on an
// earlier version cannot be reproduced.
const goldenDigest = "5e84c41d5c682bf340c3a8adbd29c192e793002070c748981039b8285b554089"

// TestEmbeddedBaseModels compares the files of the base models with the files that runs were trained on.
func TestEmbeddedBaseModels(t *testing.T) {
	for name, base := range map[string]struct {
		file []byte
		want string
	}{
		"sums":       {baseFile, "fbad767d317041bcce9338384cf47c07d9cf7ca0893ab3f0f4472b2b271add1f"},
		"countdown":  {countdownFile, "8c3904fdb6c3529453d0760c2b4a2de818172fa88aed784bb5ed337530a321fa"},
		"right sums": {sumsFile, "0ff8c3012dd62b7d8b722866c162aabfb98f375c99225d1547c989719a1cad30"},
	} {
		sum := sha256.Sum256(base.file)
		if got := hex.EncodeToString(sum[:]); got != base.want {
			t.Errorf("the digest of the model of %s is %s, want %s", name, got, base.want)
		}
	}
}

// TestGoldenNumbers compares training, sampling and log-probabilities with earlier versions, to the bit, for short
// sequences and for some that nearly fill a window.
func TestGoldenNumbers(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the digest was recorded on amd64; other processors may round differently")
	}
	sum := sha256.New()
	native, foreignAdapter := equalAdapters()
	long := strings.Repeat("User: What is 12 + 2?\n\nAssistant: 14|", 110) // 4,070 native tokens
	addTraining(t, sum, native, spell(encode(conversation)), spell(encode(long)))
	addTraining(t, sum, foreignAdapter, encode(conversation), encode(long[:len(long)/2]))
	w := foreignAdapter.Snapshot()
	var requests []SampleRequest
	for i, text := range []string{"User: What is 3 + 4?\n\nAssistant:", long, long} {
		requests = append(requests, SampleRequest{Prompt: encode(text), MaxTokens: 12, Temperature: 1, TopP: 1, Seed: 3,
			Index: i})
	}
	samples, err := w.Sample(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		addToHash(sum, s.Tokens)
		addToHash(sum, s.Logprobs)
	}
	logprobs, err := w.PromptLogprobs(t.Context(), encode(long))
	if err != nil {
		t.Fatal(err)
	}
	addToHash(sum, logprobs[1:])
	if got := hex.EncodeToString(sum.Sum(nil)); got != goldenDigest {
		t.Errorf("the digest is %s, and the digest of earlier versions is %s", got, goldenDigest)
	}
}

// addTraining adds the numbers of one training step.
func addTraining(t *testing.T, to hash.Hash, a *Adapter, sequences ...[]int32) {
	t.Helper()
	var batch []Datum
	for _, ids := range sequences {
		batch = append(batch, shifted(ids, nil))
		delete(batch[len(batch)-1].Inputs, "weights")
	}
	for _, logprobs := range mustRun(t, a, batch, Loss{Name: "cross_entropy"}).Logprobs {
		addToHash(to, logprobs)
	}
	mustStep(t, a, AdamParams{LearningRate: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, GradClipNorm: 1})
	to.Write(a.MarshalState(true))
}

func addToHash(to hash.Hash, values any) {
	if err := binary.Write(to, binary.LittleEndian, values); err != nil {
		panic(err) // the values have no fixed size
	}
}
