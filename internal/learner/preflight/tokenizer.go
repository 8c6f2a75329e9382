// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// PinTokenizer returns the digest of the file of the run's tokenizer, before anything is sampled; empty if the run
// has no tokenizer of its own. The first attempt reads the file. Later attempts use the digest that it found.
func (c *Checker) PinTokenizer(ctx context.Context) (string, error) {
	t := c.File.Fixed.Model.Tokenizer
	if t == nil {
		return "", nil
	}
	if c.File.TokenizerSHA256 != "" {
		return cmp.Or(t.SHA256, c.File.TokenizerSHA256), nil
	}
	return c.readTokenizer(ctx, sourceOf(*t))
}

// readTokenizer returns the digest of the file once it could be read. A user may repair the hub, the file or the spec
// while it waits; the manager replaces the learner when the spec changes.
func (c *Checker) readTokenizer(ctx context.Context, source fetch.Source) (string, error) {
	defer c.Blocked(nil)
	for failures := 1; ; failures++ {
		_, digest, err := c.Hub.Load(ctx, source)
		if err == nil || ctx.Err() != nil {
			return digest, err
		}
		c.Logger.Warn("tokenizer cannot be fetched", "source", source.String(), "err", err)
		c.Blocked(err)
		if err := c.Pause(ctx, failures); err != nil {
			return "", err
		}
	}
}

func sourceOf(t contract.Tokenizer) fetch.Source {
	return fetch.Source{
		Repository: t.Repository, Revision: t.Revision, File: t.File, URL: t.URL, Ranks: t.Ranks, SHA256: t.SHA256,
	}
}
