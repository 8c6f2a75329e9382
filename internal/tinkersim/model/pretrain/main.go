// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command pretrain trains the weights of tinkersim's base models, which package model embeds.
//
//	go run ./internal/tinkersim/model/pretrain -out internal/tinkersim/model/base.bin
//	go run ./internal/tinkersim/model/pretrain -texts countdown -steps 2400 -batch 48 -out internal/tinkersim/model/countdown.bin
//	go run ./internal/tinkersim/model/pretrain -texts sums -steps 2400 -batch 96 -out internal/tinkersim/model/sums.bin
//
// It is deterministic on one architecture: the same flags give the same file on any number of
// CPUs. On two, it takes about ten minutes for the first and five for each of the others.
package main

import (
	"context"
	"flag"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
)

// textsOf are the kinds of texts by name.
var textsOf = map[string]func(rng *rand.Rand, progress float64) text{
	"arithmetic": func(rng *rand.Rand, _ float64) text { return newText(rng) },
	"countdown":  newCountdownText,
	"sums":       newRightText,
}

func main() {
	out := flag.String("out", "base.bin", "file to write")
	steps := flag.Int("steps", 4500, "optimizer steps")
	batch := flag.Int("batch", 128, "texts in a step")
	rate := flag.Float64("rate", 4e-3, "highest learning rate")
	seed := flag.Uint64("seed", 1, "seed of weights and texts")
	name := flag.String("texts", "arithmetic", "the texts that are learned: arithmetic, countdown or sums")
	flag.Parse()
	texts, ok := textsOf[*name]
	if !ok {
		slog.Error("there are no such texts: give arithmetic, countdown or sums", "texts", *name)
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	t := newTrainer(settings{steps: *steps, batch: *batch, rate: *rate, seed: *seed, texts: texts})
	if err := t.run(ctx); err != nil {
		slog.Error("pretraining", "err", err)
		os.Exit(1)
	}
	if err := t.save(*out); err != nil {
		slog.Error("saving the base model", "err", err)
		os.Exit(1)
	}
}
