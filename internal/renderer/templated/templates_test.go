// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package templated_test

import (
	_ "embed"
)

// chatML writes the same as qwen3 of package families, with tools in JSON: reasoning stays within the current turn.
//
//go:embed testdata/chatml.jinja
var chatML string

// roleColonEnd writes the same as role_colon_end of package families.
//
//go:embed testdata/role_colon_end.jinja
var roleColonEnd string

// marked writes no token after a reply: the mark of the next message ends it, as in GLM. Reasoning is opened by the
// prompt, and stands between tags in the text of a reply.
//
//go:embed testdata/marked.jinja
var marked string
