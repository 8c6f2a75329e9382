// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package episode

import "github.com/tinker-operator/tinker-operator/internal/stoptext"

// cutSample cuts a sample after the first of the texts that it contains, and returns that text; empty if it contains
// none. says decodes tokens.
func cutSample(sample Sample, texts []string, says func([]int32) (string, error)) (Sample, string, error) {
	end, stop, err := stoptext.Cut(sample.Tokens, texts, says)
	if err != nil || stop == "" {
		return sample, "", err
	}
	sample.Tokens, sample.Logprobs, sample.Stopped = sample.Tokens[:end:end], sample.Logprobs[:end:end], true
	return sample, stop, nil
}
