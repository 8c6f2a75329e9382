// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package learner

import (
	"cmp"
	"context"

	"github.com/tinker-operator/tinker-operator/internal/contract"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// pinTokenizer settles which file the vocabulary is before anything is sampled in it, and tells the workers.
// The first attempt reads the file: one that has changed, or that this program cannot read, ends the run at
// once and not in every worker. Later attempts go by the digest that it found.
func (l *learner) pinTokenizer(ctx context.Context) error {
	t := l.file.Fixed.Model.Tokenizer
	if t == nil {
		return nil
	}
	digest := cmp.Or(t.SHA256, l.file.TokenizerSHA256)
	if l.file.TokenizerSHA256 == "" {
		var err error
		if digest, err = l.readTokenizer(ctx, sourceOf(*t)); err != nil {
			return err
		}
	}
	play, err := l.encodePlay(digest)
	if err != nil {
		return err
	}
	l.board.SetPlay(play)
	l.status.update(func(p *contract.Progress) { p.TokenizerSHA256 = digest })
	return nil
}

// readTokenizer gives the digest of a file that was read and understood. While the hub does not answer there
// is nothing to do but to try again.
func (l *learner) readTokenizer(ctx context.Context, source fetch.Source) (string, error) {
	defer l.status.blockOnHub("")
	for failures := 1; ; failures++ {
		_, digest, err := l.config.Hub.Load(ctx, source)
		if err == nil || ctx.Err() != nil {
			return digest, err
		}
		if fetch.IsFinal(err) {
			return "", unsupported(reasonTokenizer, "%v", err)
		}
		l.config.Logger.Warn("tokenizer is not there", "source", source.String(), "err", err)
		l.status.blockOnHub(err.Error())
		if err := l.pause(ctx, failures); err != nil {
			return "", err
		}
	}
}

func sourceOf(t contract.Tokenizer) fetch.Source {
	return fetch.Source{
		Repository: t.Repository, Revision: t.Revision, File: t.File, URL: t.URL, Ranks: t.Ranks, SHA256: t.SHA256,
	}
}
