// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"time"

	"github.com/tinker-operator/tinker-operator/internal/tinker"
)

// infoPatience is how long the server may take to name the base model of a checkpoint.
const infoPatience = 10 * time.Second

// baseOf returns the base model of the object that a request names, or "" if it is not known: the meter then uses the
// base model of the run.
func (b *Broker) baseOf(ctx context.Context, of body) string {
	for _, name := range []string{"sampling_session_id", "model_id"} {
		if id, _ := of.text(name); id != "" {
			made, _ := b.owners.get(named[name], id)
			return made.Base
		}
	}
	if name, _ := of.text("base_model"); name != "" {
		return name
	}
	for _, name := range []string{"model_path", "path"} {
		if path, _ := of.text(name); isCheckpoint(path) {
			return b.baseOfCheckpoint(ctx, path)
		}
	}
	return ""
}

func (b *Broker) baseOfCheckpoint(ctx context.Context, path string) string {
	parsed, err := tinker.ParsePath(path)
	if err != nil {
		return ""
	}
	if made, ok := b.owners.get(model, parsed.Run); ok && made.Base != "" {
		return made.Base
	}
	ctx, cancel := context.WithTimeout(ctx, infoPatience)
	defer cancel()
	info, err := b.inForce.Load().client.WeightsInfo(ctx, path)
	if err != nil {
		return "" // the server says what is wrong in its answer to the request
	}
	return info.BaseModel
}
