// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/models"
	"github.com/tinker-operator/tinker-operator/internal/plugin/cli"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer"
	"github.com/tinker-operator/tinker-operator/internal/tokenizer/fetch"
)

// tokenizerUsage describes the flag --tokenizer.
const tokenizerUsage = "`FILE|MODEL` to take the tokenizer from: a tokenizer.json, a file of ranks (tiktoken.model, " +
	"o200k_base.tiktoken), " +
	"or the name of a model, like Qwen/Qwen3-8B, or of a repository of the hub (required)"

// source is a tokenizer and the model that it belongs to.
type source struct {
	tokens tokenizer.Tokenizer
	// model is the model of the tokenizer. It is the zero value for a file, and for a model that is not known.
	model models.Model
	// repository is the repository of the hub that the tokenizer is from; "" for a file and a built-in tokenizer.
	repository string
}

// load returns the tokenizer of a file, or of a known model. It downloads the tokenizer of a model from HF_ENDPOINT,
// with HF_TOKEN, and caches it.
func load(ctx context.Context, env cli.IO, name string) (source, error) {
	if name == "" {
		return source{}, cli.Misused("--tokenizer is required: a tokenizer.json, or the name of a model")
	}
	_, err := os.Stat(name)
	switch {
	case err == nil:
		tokens, err := fetched(ctx, env, fetch.Source{Path: name, Ranks: ranksOf(name)})
		return source{tokens: tokens}, err
	case !errors.Is(err, fs.ErrNotExist):
		return source{}, fmt.Errorf("reading the tokenizer: %w", err)
	}
	model, err := models.Lookup(name)
	if err != nil && repositoryName.MatchString(name) {
		return ofRepository(ctx, env, name, err)
	}
	if err != nil {
		return source{}, fmt.Errorf("finding tokenizer %q: there is no such file, nor is it the name of a model that is "+
			"known; known are %s",
			name, strings.Join(known(err), ", "))
	}
	t := model.Tokenizer
	if t.Repository == "" {
		tokens, err := tokenizer.ForModel(model.Name)
		return source{tokens: tokens, model: model}, err
	}
	tokens, err := fetched(ctx, env, fetch.Source{Repository: t.Repository, File: t.File, SHA256: t.SHA256,
		Ranks: t.Ranks})
	if err != nil {
		err = fmt.Errorf("%w; if you have the file, set --tokenizer to its path", err)
	}
	return source{tokens: tokens, model: model, repository: t.Repository}, err
}

var repositoryName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ofRepository returns the tokenizer of a model that is not known, from the repository with the model's name.
func ofRepository(ctx context.Context, env cli.IO, name string, unknown error) (source, error) {
	tokens, err := fetched(ctx, env, fetch.Source{Repository: name})
	if err != nil {
		return source{}, fmt.Errorf("finding tokenizer %q: there is no such file, nor is it the name of a model that is "+
			"known (known are %s), and the hub gives none: %w", name, strings.Join(known(unknown), ", "), err)
	}
	return source{tokens: tokens, repository: name}, nil
}

func known(err error) []string {
	if unknown, ok := errors.AsType[*models.UnknownError](err); ok {
		return unknown.Known
	}
	return nil
}

// ranksOf returns the family of a rank file by its name.
func ranksOf(name string) string {
	base := filepath.Base(name)
	if base == "tiktoken.model" {
		return "kimi_k2"
	}
	family, ok := strings.CutSuffix(base, ".tiktoken")
	if !ok {
		return ""
	}
	return family
}

func fetched(ctx context.Context, env cli.IO, from fetch.Source) (tokenizer.Tokenizer, error) {
	tokens, _, err := fetcher(env).Load(ctx, from)
	return tokens, err
}

func fetcher(env cli.IO) *fetch.Fetcher {
	return &fetch.Fetcher{Endpoint: env.Getenv("HF_ENDPOINT"), Token: env.Getenv("HF_TOKEN"), Cache: env.TokenizerCache()}
}
