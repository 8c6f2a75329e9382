// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Command pretrain trains the weights of tinkersim's base model, which package model embeds.
//
//	go run ./internal/tinkersim/model/pretrain -out internal/tinkersim/model/base.bin
//
// It is deterministic on one architecture: the same flags give the same file on any number of
// CPUs. It takes about ten minutes on two.
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
)

func main() {
	out := flag.String("out", "base.bin", "file to write")
	steps := flag.Int("steps", 4500, "optimizer steps")
	batch := flag.Int("batch", 128, "texts in a step")
	rate := flag.Float64("rate", 4e-3, "highest learning rate")
	seed := flag.Uint64("seed", 1, "seed of weights and texts")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	t := newTrainer(settings{steps: *steps, batch: *batch, rate: *rate, seed: *seed})
	if err := t.run(ctx); err != nil {
		slog.Error("pretraining", "err", err)
		os.Exit(1)
	}
	if err := t.save(*out); err != nil {
		slog.Error("saving the base model", "err", err)
		os.Exit(1)
	}
}
