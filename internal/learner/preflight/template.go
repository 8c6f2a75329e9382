// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"

	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// PinTemplate returns the chat template of the run's model, with its text, and its digest; nil if the model has a
// renderer. It waits until the template can be read and used, and is the template that earlier attempts used. tokenizer
// is the digest of the tokenizer's file.
func (c *Checker) PinTemplate(ctx context.Context, tokenizer string) (*contract.Template, string, error) {
	model := c.File.Fixed.Model
	if model.Template == nil {
		return nil, "", nil
	}
	if t := model.Tokenizer; t != nil {
		pinned := *t
		pinned.SHA256 = tokenizer
		model.Tokenizer = &pinned
	}
	defer c.TemplateBlocked("")
	for failures := 1; ; failures++ {
		template, digest, err := c.readTemplate(ctx, model)
		if err == nil {
			return &template, digest, nil
		}
		if ctx.Err() != nil {
			return nil, "", err
		}
		c.Logger.Warn("chat template cannot be used", "err", err)
		c.TemplateBlocked(err.Error())
		if err := c.Pause(ctx, failures); err != nil {
			return nil, "", err
		}
	}
}

func (c *Checker) readTemplate(ctx context.Context, model contract.Model) (contract.Template, string, error) {
	template, err := c.ReadTemplate(ctx, model)
	if err != nil {
		return template, "", err
	}
	digest, err := template.Digest()
	if err != nil {
		return template, "", err
	}
	if want := c.File.TemplateSHA256; want != "" && digest != want {
		return template, "", fmt.Errorf("the template with its special tokens has the digest %s, and the run began with %s: "+
			"restore the former files of %s", digest, want, template.Repository)
	}
	return template, digest, nil
}
