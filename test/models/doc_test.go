// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

//go:build models

// Package models compares the tokenizers with the packages that made the ids on which models were trained:
// `tokenizers` and `tiktoken`, in the versions of hack/models/requirements.txt, installed when the tests begin.
// Texts are random, from a seed that the tests print.
//
// Without TOKENIZERS_DIR, the tests train vocabularies, with each family's own split, normaliser, added tokens and
// rules; with it, they read the released vocabularies from this folder.
//
// The interpreter of chat templates is compared with jinja2, on the templates that hack/models/templates.sh downloads,
// on edits of them, and on random templates. TEMPLATES_DIR names another folder of templates; MODELS_RECORD=1
// records the snippets of internal/renderer/chattemplate/testdata anew.
//
//	MODELS_TEXTS=100000 go test -tags models ./test/models
package models
